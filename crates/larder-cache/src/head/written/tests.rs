//! What is read again is what was written, and nothing else is taken for it.

#![allow(clippy::unwrap_used)]
#![allow(clippy::single_range_in_vec_init, reason = "gaps are a list of ranges, often of one")]

use proptest::prelude::*;

use super::*;
use crate::example::{at_ms, fields, request, stored};
use crate::policy::{CachePolicy, Controls};

const SAID: [(&str, &str); 9] = [
    ("cache-control", "max-age=60, stale-while-revalidate=5, must-revalidate, s-maxage=70"),
    ("content-type", "text/html"),
    ("etag", "\"a\""),
    ("last-modified", "Sun, 06 Nov 1994 08:49:30 GMT"),
    ("vary", "accept-encoding, x-a"),
    ("cache-groups", "\"one\", \"two\""),
    ("x-b", "1"),
    ("x-b", "2"),
    ("content-encoding", "gzip"),
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

/// `head` as the version before wrote it: without its last block.
fn as_before(head: &StoredHead) -> Vec<u8> {
    let mut bytes = head.to_bytes();
    assert!(head.relieved.is_empty());
    bytes.truncate(bytes.len() - 4);
    bytes[0] = VERSION_BEFORE;
    bytes[2] &= !(OLDER_RULES | OWN_COOKIES);
    bytes
}

#[test]
fn what_the_version_before_wrote_gives_nobodys_cookie_out() {
    let store = CachePolicy { set_cookie: crate::SetCookiePolicy::Store, ..CachePolicy::default() };
    let said = [
        ("cache-control", "public, max-age=60"),
        ("set-cookie", "connect.sid=s%3Aabc; Path=/; HttpOnly"),
        ("set-cookie", "lang=de"),
        ("x-a", "1"),
    ];
    let authority = request("GET", &[]).authority;
    let read = |head: &StoredHead, now| {
        StoredHead::from_bytes(&as_before(head), now, (Scheme::Http, &authority)).unwrap()
    };
    let head = read(&stored(&[], &said, &store), at_ms(1_000));
    assert!(!String::from_utf8_lossy(&head.fields.http1).contains("connect.sid"));
    assert_eq!(head.fields.map.get_all("set-cookie").iter().collect::<Vec<_>>(), ["lang=de"]);
    assert_eq!(head.relieved.names().collect::<Vec<_>>(), ["connect.sid"]);
    assert_eq!(head.caution, Caution::default(), "the application gave its lifetime");
    let asked = request("GET", &[]);
    assert!(matches!(
        crate::reuse(&head, &asked, at_ms(1_000), &CachePolicy::default()),
        crate::Reuse::Fresh { .. }
    ));
    assert_eq!(format!("{head:?}"), format!("{:?}", again(&head, at_ms(1_000)).unwrap()), "written anew");
}

#[test]
fn what_lives_by_no_word_of_the_application_is_confirmed_first_where_the_version_before_wrote_it() {
    use crate::{Reuse, StaleCause, StaleForbidden, ValidateReason, may_serve_stale, reuse};
    let lifetimes = || crate::Lifetimes { any: Some(Duration::from_secs(60)), by_status: Vec::new() };
    let behind = Some(Duration::from_secs(600));
    let base =
        CachePolicy { stale_while_revalidate: behind, stale_if_error: behind, ..CachePolicy::default() };
    let ttl = CachePolicy { ttl: lifetimes(), ..base.clone() };
    let override_ttl = CachePolicy { override_ttl: lifetimes(), ..base.clone() };
    let (tag, modified) = (("etag", "\"a\""), ("last-modified", "Fri, 04 Nov 1994 08:49:37 GMT"));
    let authority = request("GET", &[]).authority;
    for (policy, said, is_cautious) in [
        (&ttl, &[tag][..], true),
        (&override_ttl, &[tag, ("cache-control", "max-age=9")], true),
        (&base, &[tag, modified], true),
        (&ttl, &[tag, ("cache-control", "max-age=60")], false),
    ] {
        let was = stored(&[], said, policy);
        let head = StoredHead::from_bytes(&as_before(&was), at_ms(0), (Scheme::Http, &authority)).unwrap();
        assert_eq!(head.caution.older_rules, is_cautious, "{said:?}");
        // It is written anew where it is moved on a disk, and stays what it is.
        let head = again(&head, at_ms(0)).unwrap();
        let asked = request("GET", &[]);
        for ms in [1_000, 86_400_000] {
            let found = reuse(&head, &asked, at_ms(ms), policy);
            assert_eq!(found == Reuse::Validate(ValidateReason::OtherRules), is_cautious, "{said:?} {ms}");
            for cause in [StaleCause::OriginDead, StaleCause::OriginError] {
                let may = may_serve_stale(&head, at_ms(ms), cause, policy);
                assert_eq!(may == Err(StaleForbidden::OtherRules), is_cautious, "{said:?} {ms}");
            }
            assert!(!is_cautious || !crate::may_refresh_behind(&head, at_ms(ms), policy));
        }
        let times = crate::ExchangeTimes { request: at_ms(1_000), response: at_ms(1_000) };
        match crate::update(&head, &asked, &fields(&[]), times, policy) {
            crate::Updated::Stored(renewed) => assert!(!renewed.caution.older_rules),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn cookies_that_were_left_out_and_allowed_ones_come_back() {
    let cc = ("cache-control", "public, max-age=60");
    let own = [cc, ("set-cookie", "sid=1"), ("set-cookie", "user=2")];
    let head = again(&stored(&[], &own, &CachePolicy::default()), at_ms(0)).unwrap();
    assert_eq!(head.relieved.names().collect::<Vec<_>>(), ["sid", "user"]);
    let store = CachePolicy { set_cookie: crate::SetCookiePolicy::Store, ..CachePolicy::default() };
    let head = again(&stored(&[], &own, &store), at_ms(0)).unwrap();
    assert!(head.caution.own_cookies);
    assert_eq!(head.fields.map.get_all("set-cookie").iter().count(), 2);
}

#[test]
fn a_head_without_tags_is_written_as_before_there_were_any() {
    let bytes = example().to_bytes();
    assert_eq!(bytes[0], VERSION);
    let tagged = stored(&[], &[("cache-control", "max-age=60"), ("xkey", "a")], &CachePolicy::default());
    let bytes = tagged.to_bytes();
    assert_eq!(bytes[0], VERSION_WITH_TAGS);
    assert!(bytes.ends_with(b"\x04\0\0\0xkey"));
}

#[test]
fn the_head_of_a_template_has_a_version_of_its_own_and_comes_back() {
    let cc = ("cache-control", "max-age=60");
    for (said, end) in [
        (&[cc, ("surrogate-control", "content=\"ESI/1.0\"")][..], &b"\0\0\0\0\x03\0\0\0esi"[..]),
        (
            &[cc, ("etag", "\"a\""), ("xkey", "a"), ("surrogate-control", "content=\"SSI/1.0\"")],
            b"\x04\0\0\0xkey\x03\0\0\0ssi",
        ),
    ] {
        let head = stored(&[], said, &CachePolicy::default());
        let bytes = head.to_bytes();
        assert_eq!(bytes[0], VERSION_WITH_LANGUAGE);
        assert!(bytes.ends_with(end), "{}", bytes.escape_ascii());
        let read = again(&head, at_ms(0)).unwrap();
        assert_eq!(format!("{head:?}"), format!("{read:?}"));
        // The rest is what is written of no template.
        let mut plain = head.clone().with_language(None).to_bytes();
        plain[0] = VERSION_WITH_LANGUAGE;
        assert!(bytes.starts_with(&plain), "{}", bytes.escape_ascii());
    }
}

#[test]
fn heads_from_before_there_were_templates_are_of_none() {
    let said = [("cache-control", "max-age=60"), ("surrogate-control", "content=\"ESI/1.0\"")];
    let head = stored(&[], &said, &CachePolicy::default());
    assert!(head.language().is_some());
    let was = head.with_language(None);
    let authority = request("GET", &[]).authority;
    for bytes in [was.to_bytes(), as_before(&was)] {
        let read = StoredHead::from_bytes(&bytes, at_ms(0), (Scheme::Http, &authority)).unwrap();
        assert_eq!((read.language(), &read.fields.http1), (None, &was.fields.http1));
    }
}

#[test]
fn a_language_that_is_none_is_refused() {
    let said = [("cache-control", "max-age=60"), ("surrogate-control", "content=\"ESI/1.0\"")];
    let whole = stored(&[], &said, &CachePolicy::default()).to_bytes();
    let authority = request("GET", &[]).authority;
    let read = |bytes: &[u8]| StoredHead::from_bytes(bytes, at_ms(0), (Scheme::Http, &authority));
    let with = |language: &[u8]| {
        let mut bytes = whole[..whole.len() - 7].to_vec();
        push(&mut bytes, language);
        read(&bytes).map(|head| head.language())
    };
    assert_eq!(with(b"ssi"), Ok(Some(Language::Ssi)));
    for language in [&b""[..], b"ESI", b"esi ", b"xml"] {
        assert_eq!(with(language), Err(HeadError::Malformed), "{}", language.escape_ascii());
    }
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]).err(), Some(HeadError::Malformed), "{length}");
    }
    assert_eq!(read(&[&whole[..], &[0]].concat()).err(), Some(HeadError::Malformed));
    let mut part = whole.clone();
    part[3..5].copy_from_slice(&206_u16.to_le_bytes());
    assert_eq!(read(&part).err(), Some(HeadError::Malformed), "no part is a template");
}

#[test]
fn tags_come_back_from_the_fields_that_they_were_read_from() {
    let said = [("cache-control", "max-age=60"), ("xkey", "a"), ("x-tags", "b c"), ("x-more", "d")];
    let names = ["x-tags", "x-more", "x-none"].map(HeaderName::from_static).to_vec();
    for pass in [false, true] {
        let controls = Controls { tags: crate::TagFields::new(names.clone(), pass), ..Controls::default() };
        let policy = CachePolicy { controls, ..CachePolicy::default() };
        let head = stored(&[], &said, &policy);
        assert_eq!(head.tags.as_ref().map(|tags| tags.hashes().len()), Some(3));
        assert_eq!(format!("{head:?}"), format!("{:?}", again(&head, at_ms(0)).unwrap()));
    }
}

#[test]
fn heads_from_before_there_were_tags_have_those_of_the_default_names() {
    let untagged = Controls { tags: crate::TagFields::new(Vec::new(), false), ..Controls::default() };
    let policy = CachePolicy { controls: untagged, ..CachePolicy::default() };
    let said = [("cache-control", "max-age=60"), ("cache-tag", "a,b"), ("x-tags", "c")];
    let was = stored(&[], &said, &policy);
    assert!(was.tags.is_none() && was.to_bytes()[0] == VERSION);
    let authority = request("GET", &[]).authority;
    let now = stored(&[], &said, &CachePolicy::default());
    for bytes in [was.to_bytes(), as_before(&was)] {
        let read = StoredHead::from_bytes(&bytes, at_ms(0), (Scheme::Http, &authority)).unwrap();
        assert_eq!(read.tags, now.tags);
        assert_eq!(read.fields.http1, was.fields.http1, "sent as before");
        assert_eq!(again(&read, at_ms(0)).unwrap().tags, now.tags, "written anew");
    }
}

#[test]
fn names_of_tag_fields_that_are_none_are_refused() {
    let head = stored(&[], &[("cache-control", "max-age=60"), ("xkey", "a")], &CachePolicy::default());
    let whole = head.to_bytes();
    let authority = request("GET", &[]).authority;
    let with = |names: &[u8]| {
        let mut bytes = whole[..whole.len() - 8].to_vec();
        push(&mut bytes, names);
        StoredHead::from_bytes(&bytes, at_ms(0), (Scheme::Http, &authority)).map(|head| head.tags.is_some())
    };
    assert_eq!(with(b"xkey"), Ok(true));
    assert_eq!(with(b"x-other\nxkey"), Ok(true));
    assert_eq!(with(b"x-other"), Ok(false));
    for names in [&b""[..], b"xkey\nxkey", b"xkey\n", b"x key", b"xkey\nXKEY"] {
        assert_eq!(with(names), Err(HeadError::Malformed), "{}", names.escape_ascii());
    }
    for length in 0..whole.len() {
        let read = StoredHead::from_bytes(&whole[..length], at_ms(0), (Scheme::Http, &authority));
        assert_eq!(read.err(), Some(HeadError::Malformed), "{length}");
    }
}

#[test]
fn the_holes_of_a_part_come_back_and_none_that_no_part_has() {
    let head = |holes: &[std::ops::Range<u64>]| {
        let said = [("content-range", "bytes 10-19/30"), ("cache-control", "max-age=60")];
        let mut head = stored(&[], &said, &CachePolicy::default());
        head.status = StatusCode::PARTIAL_CONTENT;
        head.part = Part::of(&head.fields.map);
        head.with_holes(holes.to_vec())
    };
    for holes in [&[][..], &[11..12][..], &[11..12, 13..19][..]] {
        let read = again(&head(holes), at_ms(0)).unwrap();
        assert_eq!(read.part, head(holes).part);
        assert_eq!(read.part.unwrap().holes, holes);
    }
    for odd in [&[10..12][..], &[11..11][..], &[11..20][..], &[11..13, 13..14][..], &[15..16, 11..12][..]] {
        assert!(again(&head(odd), at_ms(0)).is_err(), "{odd:?}");
    }
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
    fn no_bytes_panic(
        mut changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8),
        language in proptest::option::of(prop_oneof![Just(Language::Ssi), Just(Language::Esi)])
    ) {
        let mut bytes = example().with_language(language).to_bytes();
        let length = bytes.len();
        for (at, to) in changes.drain(..) {
            bytes[usize::from(at) % length] = to;
        }
        let authority = request("GET", &[]).authority;
        let _ = StoredHead::from_bytes(&bytes, at_ms(0), (Scheme::Http, &authority));
    }
}

proptest! {
    #[test]
    fn any_head_comes_back(
        language in proptest::option::of(prop_oneof![Just(Language::Ssi), Just(Language::Esi)]),
        tags in proptest::option::of("[a-z]{1,8}"),
        values in proptest::collection::vec("[!-~]{0,20}", 0..6),
        lifetime in 0..100_000_u32,
    ) {
        let control = format!("max-age={lifetime}, stale-if-error=9");
        let mut said = vec![("cache-control", control.as_str()), ("etag", "\"a\""), ("vary", "x-a")];
        said.extend(tags.as_deref().map(|tags| ("xkey", tags)));
        said.extend(values.iter().map(|value| ("x-b", value.as_str())));
        let head = stored(&[("x-a", "1")], &said, &CachePolicy::default()).with_language(language);
        prop_assert_eq!(format!("{head:?}"), format!("{:?}", again(&head, at_ms(0)).unwrap()));
    }
}
