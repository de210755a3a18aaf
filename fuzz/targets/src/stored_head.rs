//! The head of a stored response as it lies on disks: what is read and written again is read as the same, is never fresh
//! because of what a clock said, and allocates no more than it says.
//!
//! The first byte of an input chooses the clock; the rest are the bytes.

use std::time::Duration;

use crate::allocated::in_proportion;
use larder_cache::{StoredHead, TagFields};
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::time::{Now, WallTime};

/// The version of a head that had no list of names at its end, and what an empty one takes.
const VERSION_BEFORE: u8 = 1;
const NO_NAMES_BYTES: usize = 4;
/// The version that names the fields of its tags.
const VERSION_WITH_TAGS: u8 = 3;

/// Wall and monotonic time, in milliseconds.
const CLOCKS: &[(u64, u64)] =
    &[(1_700_000_000_000, 1_700_000_000_000), (1_700_000_000_000, 5), (0, 0), (u64::MAX, u64::MAX)];

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let Some((clock, bytes)) = input.split_first() else { return };
    let (wall, monotonic) = CLOCKS[usize::from(*clock) % CLOCKS.len()];
    let now = Now { wall: WallTime(wall), monotonic: Duration::from_millis(monotonic) };
    let authority = Authority::parse("example.org".into(), Scheme::Http).expect("a host");
    let read = |bytes: &[u8]| StoredHead::from_bytes(bytes, now, (Scheme::Http, &authority));
    // A field of three bytes is a few hundred in a map.
    let Ok(head) = in_proportion(bytes.len() * 2, || read(bytes)) else { return };
    let _ = head.freshness.age(now);
    assert!(head.freshness.remaining(now) <= head.freshness.lifetime);
    assert!(head.freshness.received.monotonic <= now.monotonic, "from the future");

    let again = head.to_bytes();
    let more = match bytes.first() {
        Some(&VERSION_WITH_TAGS) => 0,
        Some(&VERSION_BEFORE) => NO_NAMES_BYTES + default_names_bytes(),
        _ => default_names_bytes(),
    };
    assert!(again.len() <= bytes.len() + more, "longer than what it was read from");
    let second = read(&again).expect("what is written is read");
    assert_eq!((second.status, &second.fields.http1), (head.status, &head.fields.http1));
    assert!(second.tags == head.tags || head.tags.is_none(), "tags are missed");
    // Numbers that nothing writes have become ones that are written; from here on nothing changes.
    let twice = second.to_bytes();
    let third = read(&twice).expect("what is written is read");
    assert_eq!(format!("{third:?}"), format!("{second:?}"));
    assert_eq!(third.to_bytes(), twice, "changed by writing it again");
    // What would be sent is what was judged: the lines and the map are two views of one thing.
    let mut lines = Vec::new();
    larder_http::message::write_http1_fields(&head.fields.map, &mut lines);
    assert_eq!(sorted(&lines), sorted(&head.fields.http1));
}

/// What the names of tag fields take at most in a head that had none.
fn default_names_bytes() -> usize {
    let fields = TagFields::default();
    let names = fields.names();
    NO_NAMES_BYTES + names.iter().map(|name| name.as_str().len() + 1).sum::<usize>()
}

/// The lines, whatever their order and the case of their names.
fn sorted(lines: &[u8]) -> Vec<Vec<u8>> {
    let lines = lines.split(|byte| *byte == b'\n').map(|line| {
        let mut line = line.to_vec();
        let name = line.iter().position(|byte| *byte == b':').unwrap_or(0);
        line[..name].make_ascii_lowercase();
        line
    });
    let mut lines: Vec<Vec<u8>> = lines.collect();
    lines.sort();
    lines
}
