//! New fields and times for a file that stays what it is.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use larder_cache::{Freshness, LifetimeSource};
use larder_http::time::Now;

use super::*;

/// What another web server makes an ETag from, and the content.
fn identity(path: &Path) -> (u64, i64, i64, Vec<u8>) {
    let found = std::fs::metadata(path).unwrap();
    (found.ino(), found.mtime(), found.mtime_nsec(), std::fs::read(path).unwrap())
}

fn newer(value: &[u8]) -> Meta {
    let mut newer = Meta { number: 2, ..meta() };
    newer.fields.insert("x-newer", HeaderValue::from_bytes(value).unwrap());
    newer
}

/// Renews what `hit` is, and waits for the end of it; `meanwhile` runs when it was asked for and not done yet.
fn renew(fixture: &Fixture, hit: &FileHit, meta: &Meta, meanwhile: impl FnOnce()) -> Result<(), Refused> {
    let release = hold_up(&fixture.store);
    let (tell, told) = mpsc::sync_channel(1);
    let done = Box::new(move |done| tell.send(done).unwrap());
    fixture.store.renew(&uri("/a"), hit.stamp(), meta.clone(), || true, done);
    meanwhile();
    drop(release);
    told.recv().unwrap()
}

#[track_caller]
fn is_renewed(fixture: &Fixture, expected: &Meta) {
    let hit = find(&fixture.store, "/a").unwrap();
    assert!(matches!(hit.source(), Source::Stored(found) if **found == *expected), "{:?}", hit.source());
}

#[test]
fn a_renewal_leaves_inode_and_modification_time_and_content() {
    for length in [4, 200_000] {
        let fixture = Fixture::new(1 << 22);
        put(&fixture.store, "/a", &vec![b'x'; length]).unwrap();
        let before = identity(&fixture.path("h/a"));
        let usage = fixture.store.usage();
        for value in [b"1", b"2"] {
            let hit = find(&fixture.store, "/a").unwrap();
            renew(&fixture, &hit, &newer(value), || {}).unwrap();
            assert!(identity(&fixture.path("h/a")) == before, "{length}");
            is_renewed(&fixture, &newer(value));
            // Who was reading goes on.
            assert_eq!(hit.read_at(0, 4).unwrap(), "xxxx");
        }
        let after = fixture.store.usage();
        assert_eq!((after.bytes, after.inodes, after.renewed), (usage.bytes, usage.inodes, 2));
        assert_eq!(files(&fixture.path(".larder/tmp")).len(), 0);
        is_renewed(&fixture.reopened(1 << 22), &newer(b"2"));
    }
}

#[test]
fn a_file_that_somebody_changes_meanwhile_is_theirs() {
    type Change = fn(&Path);
    let changes: [(&str, Change, Option<&str>); 5] = [
        ("in place", |path| std::fs::write(path, "edited").unwrap(), Some("edited")),
        (
            "by another file",
            |path| {
                std::fs::write(path.with_file_name(".b"), "copied").unwrap();
                std::fs::rename(path.with_file_name(".b"), path).unwrap();
            },
            Some("copied"),
        ),
        ("touched", age, Some("stored")),
        ("removed", |path| std::fs::remove_file(path).unwrap(), None),
        (
            "a directory",
            |path| {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            },
            None,
        ),
    ];
    for (what, change, left) in changes {
        let fixture = Fixture::new(1 << 20);
        put(&fixture.store, "/a", b"stored").unwrap();
        let (hit, path) = (find(&fixture.store, "/a").unwrap(), fixture.path("h/a"));
        assert_eq!(renew(&fixture, &hit, &newer(b"1"), || change(&path)), Err(Refused::Changed), "{what}");
        check(&fixture.store, "/a", left.map(|body| (body, false)));
        assert_eq!(fixture.store.usage().refused[NotFiled::Changed as usize], 1);
    }
}

#[test]
fn a_newer_response_is_not_renewed_by_what_was_said_of_an_older_one() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"older").unwrap();
    let older = find(&fixture.store, "/a").unwrap();
    put(&fixture.store, "/a", b"newer").unwrap();
    assert_eq!(renew(&fixture, &older, &newer(b"1"), || {}), Err(Refused::Changed));
    is_renewed(&fixture, &meta());
    let secure = TargetUri { scheme: Scheme::Https, ..uri("/a") };
    put_uri(&fixture.store, &secure, b"secure").unwrap();
    let hit = find_uri(&fixture.store, &secure).unwrap();
    assert_eq!(
        renew(&fixture, &hit, &newer(b"1"), || {}),
        Err(Refused::Changed),
        "it is of the other scheme"
    );
}

#[test]
fn an_invalidation_is_not_overtaken_by_a_renewal() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"stored").unwrap();
    let hit = find(&fixture.store, "/a").unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    let done = Box::new(move |done| tell.send(done).unwrap());
    fixture.store.renew(&uri("/a"), hit.stamp(), newer(b"1"), || false, done);
    assert_eq!(told.recv().unwrap(), Err(Refused::Invalidated));
    assert_eq!(renew(&fixture, &hit, &newer(b"1"), || fixture.store.invalidate(&uri("/a"))), Ok(()));
    assert!(fixture.store.flush());
    check(&fixture.store, "/a", None);
}

#[test]
fn meta_in_a_file_of_its_own_is_renewed_there_and_goes_where_it_fits_an_attribute() {
    let fixture = Fixture::new(1 << 22);
    let large = newer(&[b'x'; 60_000]);
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    fill.write(Bytes::from_static(b"body")).unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(large.clone(), || true, Box::new(move |done| tell.send(done).unwrap()));
    told.recv().unwrap().unwrap();
    let before = identity(&fixture.path("h/a"));
    let metas = || files(&fixture.path(".larder/meta")).len();
    let was_beside = fixture.path(".larder/meta").exists() && metas() == 1;
    for (renewed, beside) in [(newer(&[b'y'; 60_000]), was_beside), (newer(b"1"), false)] {
        let hit = find(&fixture.store, "/a").unwrap();
        renew(&fixture, &hit, &renewed, || {}).unwrap();
        is_renewed(&fixture, &renewed);
        assert!(identity(&fixture.path("h/a")) == before);
        assert!(!was_beside || metas() == usize::from(beside));
    }
    // For a file of its own where there was none nothing is reserved.
    let hit = find(&fixture.store, "/a").unwrap();
    match renew(&fixture, &hit, &large, || {}) {
        Ok(()) => is_renewed(&fixture, &large),
        Err(why) => {
            assert_eq!(why, Refused::NoRoom);
            is_renewed(&fixture, &newer(b"1"));
        }
    }
}

#[test]
fn a_file_by_hand_is_fresh_for_as_long_as_it_lies_there() {
    let now = Now { wall: WallTime(1_700_000_000_000), monotonic: Duration::from_secs(1) };
    let Freshness { lifetime, source, .. } = freshness_by_hand(now);
    assert_eq!((source, source.is_configured()), (LifetimeSource::ByHand, true));
    assert!(lifetime > Duration::from_secs(50 * 365 * 24 * 3600));
}
