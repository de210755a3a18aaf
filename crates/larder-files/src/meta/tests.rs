//! Meta: written and read back, void for any other file, and never a panic.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rustix::fs::FileType;

use super::*;

fn file(size: u64, nanoseconds: u32, inode: u64) -> Status {
    Status {
        device: (0, 1),
        inode,
        size,
        modified: (1_700_000_000, nanoseconds),
        changed: (0, 0),
        allocated: 4096,
        links: 1,
        kind: FileType::RegularFile,
    }
}

fn uri(scheme: Scheme) -> TargetUri<'static> {
    TargetUri { scheme, authority: "example.com", path: "/a%20b", query: Some("c") }
}

fn meta() -> Meta {
    let mut fields = HeaderMap::new();
    fields.insert("content-type", HeaderValue::from_static("text/html"));
    fields.append("x-a", HeaderValue::from_static("1: 2"));
    fields.append("x-a", HeaderValue::from_bytes(b"\xe9").unwrap());
    fields.append("x-empty", HeaderValue::from_static(""));
    let times = StoredTimes {
        received: WallTime(1_700_000_000_123),
        lifetime: Duration::from_secs(60),
        source: LifetimeSource::MaxAge,
        initial_age: Duration::from_millis(1500),
    };
    Meta {
        status: StatusCode::OK,
        fields,
        times,
        took: Duration::from_millis(7),
        number: 42,
        relieved: Relieved::default(),
        older: false,
    }
}

fn stored(judged: JudgedMeta) -> Option<Meta> {
    match judged {
        JudgedMeta::Stored(meta) => Some(*meta),
        JudgedMeta::OtherScheme | JudgedMeta::Torn | JudgedMeta::ByHand => None,
    }
}

#[test]
fn what_is_written_is_read_back() {
    let (meta, of) = (meta(), file(10, 5, 99));
    let lines = meta.write(&uri(Scheme::Http), &of);
    assert_eq!(stored(judge(&lines, &uri(Scheme::Http), &of)).unwrap(), meta);
    assert_eq!(read(&lines, &of).unwrap(), ("http://example.com/a%20b?c", meta));
}

#[test]
fn meta_is_void_for_any_other_file() {
    let of = file(10, 5, 99);
    let lines = meta().write(&uri(Scheme::Http), &of);
    for other in [file(11, 5, 99), file(10, 6, 99), file(10, 5, 98)] {
        assert!(judge(&lines, &uri(Scheme::Http), &other).is_by_hand());
    }
    let renamed = TargetUri { path: "/b", ..uri(Scheme::Http) };
    assert!(judge(&lines, &renamed, &of).is_by_hand());
    assert!(read(&beside("a"), &of).is_none());
    assert!(judge(&beside("a"), &uri(Scheme::Http), &of).is_by_hand());
}

#[test]
fn what_lacks_its_end_and_nothing_else_is_torn_and_no_persons() {
    let of = file(10, 5, 99);
    let lines = meta().write(&uri(Scheme::Http), &of);
    let judged = |file: &Status| judge(&lines, &uri(Scheme::Http), file);
    assert!(matches!(judged(&file(0, 5, 99)), JudgedMeta::Torn));
    assert!(matches!(judged(&file(9, 5, 99)), JudgedMeta::Torn));
    for edited in [file(9, 6, 99), file(11, 5, 99), file(9, 5, 98)] {
        assert!(judged(&edited).is_by_hand());
    }
    assert!(
        matches!(judge(b"", &uri(Scheme::Http), &of), JudgedMeta::Torn),
        "lines of their own are torn, too"
    );
}

#[test]
fn what_was_stored_for_one_scheme_is_not_for_the_other() {
    let of = file(10, 5, 99);
    let lines = meta().write(&uri(Scheme::Http), &of);
    assert!(matches!(judge(&lines, &uri(Scheme::Https), &of), JudgedMeta::OtherScheme));
}

#[test]
fn freshness_goes_on_after_a_restart_by_the_wall_clock() {
    let times = |source| StoredTimes { source, ..meta().times };
    let now = |wall_secs: u64, monotonic: u64| Now {
        wall: WallTime(1_700_000_000_123 + wall_secs * 1000),
        monotonic: Duration::from_secs(monotonic),
    };
    let left = |source, now: Now| times(source).freshness(now).remaining(now);
    // 60 s, of which 1.5 s had passed on arrival where those count.
    for monotonic in [0, 5, 100] {
        let at = now(20, monotonic);
        assert_eq!(left(LifetimeSource::MaxAge, at), Duration::from_millis(38_500));
        assert_eq!(left(LifetimeSource::Ttl, at), Duration::from_secs(40));
        assert_eq!(times(LifetimeSource::Ttl).freshness(at).age(at), Duration::from_millis(21_500));
        assert_eq!(left(LifetimeSource::Ttl, now(61, monotonic)), Duration::ZERO);
    }
    let before = Now { wall: WallTime(1_600_000_000_000), monotonic: Duration::from_secs(9) };
    assert_eq!(left(LifetimeSource::MaxAge, before), Duration::ZERO);
}

proptest! {
    #[test]
    fn any_bytes_are_void_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes, &file(1, 2, 3)).is_none());
    }

    #[test]
    fn damaged_lines_never_panic(at in 0_usize..400, byte: u8, cut in 0_usize..400) {
        let of = file(10, 5, 99);
        let mut lines = meta().write(&uri(Scheme::Http), &of);
        if let Some(damaged) = lines.get_mut(at) {
            *damaged = byte;
        }
        lines.truncate(lines.len().saturating_sub(cut));
        let _ = judge(&lines, &uri(Scheme::Http), &of);
    }

    #[test]
    fn every_meta_is_read_back(
        size: u64, nanoseconds in 0_u32..1_000_000_000, inode: u64, number: u64, received in 0_u64..u64::MAX / 2,
        lifetime in 0_u64..u64::MAX, values in proptest::collection::vec("[ -~]{0,20}", 0..8),
    ) {
        let of = file(size, nanoseconds, inode);
        let mut fields = HeaderMap::new();
        for value in &values {
            fields.append("x-value", HeaderValue::from_str(value).unwrap());
        }
        let times = StoredTimes {
            received: WallTime(received),
            lifetime: Duration::from_millis(lifetime),
            ..meta().times
        };
        let meta = Meta { fields, times, number, ..meta() };
        let lines = meta.write(&uri(Scheme::Https), &of);
        prop_assert_eq!(stored(judge(&lines, &uri(Scheme::Https), &of)), Some(meta));
    }
}
