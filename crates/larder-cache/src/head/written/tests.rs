//! What is read again is what was written, and nothing else is taken for it.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::example::{at_ms, fields, request, stored};
use crate::policy::{CachePolicy, Controls};

const SAID: [(&str, &str); 8] = [
    ("cache-control", "max-age=60, stale-while-revalidate=5, must-revalidate, s-maxage=70"),
    ("content-type", "text/html"),
    ("etag", "\"a\""),
    ("last-modified", "Sun, 06 Nov 1994 08:49:30 GMT"),
    ("vary", "accept-encoding, x-a"),
    ("cache-groups", "\"one\", \"two\""),
    ("x-b", "1"),
    ("x-b", "2"),
];

fn example() -> StoredHead {
    stored(&[("accept-encoding", "gzip;q=0.5, br"), ("x-a", "  1 , 2")], &SAID, &CachePolicy::default())
}

fn again(head: &StoredHead, now: Now) -> Result<StoredHead, HeadError> {
    let authority = request("GET", &[]).authority;
    StoredHead::from_bytes(&head.to_bytes(), now, (Scheme::Http, &authority))
}

#[test]
fn a_head_comes_back_as_it_was() {
    let head = example();
    let read = again(&head, at_ms(5_000)).unwrap();
    assert_eq!(format!("{head:?}"), format!("{read:?}"));
    assert_eq!(read.freshness.age(at_ms(5_000)), head.freshness.age(at_ms(5_000)));
    assert!(read.vary.selects(&fields(&[("accept-encoding", "br, gzip;q=0.5"), ("x-a", "1,2")])));
    assert!(!read.vary.selects(&fields(&[("accept-encoding", "br"), ("x-a", "1,2")])));
}

#[test]
fn what_only_this_cache_was_told_comes_back() {
    let controls = Controls { surrogate_control: true, ..Controls::default() };
    let policy = CachePolicy { controls, ..CachePolicy::default() };
    let head = stored(&[], &[("surrogate-control", "max-age=9"), ("x-a", "1")], &policy);
    assert!(head.controls.is_some());
    assert_eq!(format!("{head:?}"), format!("{:?}", again(&head, at_ms(0)).unwrap()));
}

#[test]
fn what_comes_from_the_future_is_stale() {
    let head = example();
    let past = Now { wall: WallTime(at_ms(0).wall.0 - 1), ..at_ms(0) };
    let read = again(&head, past).unwrap();
    assert!(read.freshness.remaining(past).is_zero());
}

#[test]
fn every_source_has_a_number_of_its_own() {
    for number in 0..=u8::MAX {
        assert!(LifetimeSource::of_number(number).is_none_or(|source| source.number() == number));
    }
    assert_eq!(LifetimeSource::of_number(LifetimeSource::Nothing.number()), Some(LifetimeSource::Nothing));
}

#[test]
fn a_cut_or_longer_head_is_refused() {
    let whole = example().to_bytes();
    let authority = request("GET", &[]).authority;
    let read = |bytes: &[u8]| StoredHead::from_bytes(bytes, at_ms(0), (Scheme::Http, &authority));
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]).err(), Some(HeadError::Malformed), "{length}");
    }
    assert_eq!(read(&[&whole[..], &[0]].concat()).err(), Some(HeadError::Malformed));
    assert_eq!(read(&[&[9], &whole[1..]].concat()).err(), Some(HeadError::Version(9)));
}

proptest! {
    #[test]
    fn no_bytes_panic(mut changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8)) {
        let mut bytes = example().to_bytes();
        let length = bytes.len();
        for (at, to) in changes.drain(..) {
            bytes[usize::from(at) % length] = to;
        }
        let authority = request("GET", &[]).authority;
        let _ = StoredHead::from_bytes(&bytes, at_ms(0), (Scheme::Http, &authority));
    }
}
