//! What is stored: where it lies, what is found, what a restart and a crash leave.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn a_response_lies_where_its_url_says_and_is_found_with_its_fields() {
    let fixture = Fixture::new(1 << 20);
    assert!(find(&fixture.store, "/a/b.html").is_none());
    put(&fixture.store, "/a/b.html", b"hello").unwrap();
    assert_eq!(std::fs::read(fixture.path("h/a/b.html")).unwrap(), b"hello");
    let hit = find(&fixture.store, "/a/b.html").unwrap();
    assert_eq!(hit.fields().get("content-type").unwrap(), "application/x-stored");
    let Source::Stored(found) = hit.source() else { panic!("not stored") };
    assert_eq!(**found, meta());
    check(&fixture.store, "/a/b.html", Some(("hello", true)));
    assert!(find(&fixture.store, "/a").is_none() && find(&fixture.store, "/a/").is_none());
}

#[test]
fn everything_that_has_a_name_can_lie_beside_everything_else() {
    let fixture = Fixture::new(1 << 22);
    let paths = [
        "/",
        "/index.html",
        "/a",
        "/a/",
        "/a/b",
        "/a/b/c",
        "/a?x=/y",
        "/a%20b",
        "/a%2Fb",
        "//",
        "/.x",
        "/a/%self",
    ];
    for path in paths {
        put(&fixture.store, path, path.as_bytes()).unwrap();
    }
    // Some were in the way of a directory and had to go; what is there is the right one.
    for path in paths {
        if let Some((body, _)) = read(&fixture.store, path) {
            assert_eq!(body, path.as_bytes());
        }
        put(&fixture.store, path, path.as_bytes()).unwrap();
    }
    for path in paths {
        check(&fixture.store, path, Some((path, true)));
    }
}

#[test]
fn a_file_makes_way_for_a_directory_and_then_lies_within_it() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"file").unwrap();
    put(&fixture.store, "/a/b", b"below").unwrap();
    check(&fixture.store, "/a", None);
    put(&fixture.store, "/a", b"again").unwrap();
    check(&fixture.store, "/a", Some(("again", true)));
    check(&fixture.store, "/a/b", Some(("below", true)));
    assert_eq!(std::fs::read(fixture.path("h/a/%self")).unwrap(), b"again");
}

#[test]
fn a_new_response_takes_the_place_of_the_old_one() {
    let fixture = Fixture::new(1 << 20);
    for body in ["one", "two", "three"] {
        put(&fixture.store, "/a", body.as_bytes()).unwrap();
        check(&fixture.store, "/a", Some((body, true)));
    }
    assert_eq!(fixture.store.usage().files, 1);
    assert_eq!(files(&fixture.path(".larder/tmp")).len(), 0);
}

#[test]
fn what_was_stored_for_one_scheme_is_no_answer_in_the_other() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"plain").unwrap();
    let secure = TargetUri { scheme: Scheme::Https, ..uri("/a") };
    assert!(find_uri(&fixture.store, &secure).is_none());
    put_uri(&fixture.store, &secure, b"secure").unwrap();
    assert!(find_uri(&fixture.store, &secure).is_some());
    check(&fixture.store, "/a", None);
}

#[test]
fn a_restart_finds_everything_and_removes_what_was_half_written() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"kept").unwrap();
    std::fs::write(fixture.path(".larder/tmp/999-1"), "half").unwrap();
    let usage = fixture.store.usage();
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/a", Some(("kept", true)));
    assert_eq!(files(&fixture.path(".larder/tmp")).len(), 0);
    assert_eq!((fixture.store.usage().files, fixture.store.usage().bytes), (usage.files, usage.bytes));
}

#[test]
fn a_second_larder_goes_without_until_the_first_has_ended() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"there").unwrap();
    let again = FileStore::open(&FilesSettings::new(fixture.path(""), 1 << 20)).unwrap();
    assert!(matches!(again.take_absence(), Some(FilesAbsence::Absent(FilesError::InUse { .. }))));
    assert!(again.usage().is_absent && find(&again, "/a").is_none());
    fixture.store.close();
    wait(|| find(&again, "/a").is_some());
    again.close();
}

#[test]
fn a_dropped_fill_leaves_nothing() {
    let fixture = Fixture::new(1 << 20);
    let before = fixture.store.usage();
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    fill.write(Bytes::from_static(b"half")).unwrap();
    assert!(fixture.store.flush());
    assert_eq!(files(&fixture.path(".larder/tmp")).len(), 1);
    drop(fill);
    assert!(fixture.store.flush());
    assert_eq!(files(&fixture.path(".larder/tmp")).len(), 0);
    assert_eq!(fixture.store.usage().bytes, before.bytes);
    check(&fixture.store, "/a", None);
}

#[test]
fn a_body_that_is_not_what_was_declared_is_not_stored() {
    let fixture = Fixture::new(1 << 20);
    let mut fill = fixture.store.begin(&uri("/a"), Some(5)).unwrap();
    fill.write(Bytes::from_static(b"four")).unwrap();
    assert_eq!(commit(fill), Err(Refused::Incomplete));
    let mut fill = fixture.store.begin(&uri("/a"), Some(3)).unwrap();
    assert_eq!(fill.write(Bytes::from_static(b"four")), Err(Refused::TooLarge));
    assert_eq!(commit(fill), Err(Refused::TooLarge));
    check(&fixture.store, "/a", None);
}

#[test]
fn an_invalidation_is_never_overtaken() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"old").unwrap();
    fixture.store.invalidate(&uri("/a"));
    check(&fixture.store, "/a", None);
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    fill.write(Bytes::from_static(b"fetched before")).unwrap();
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(meta(), || false, Box::new(move |done| tell.send(done).unwrap()));
    assert_eq!(told.recv().unwrap(), Err(Refused::Invalidated));
    put(&fixture.store, "/a", b"new").unwrap();
    check(&fixture.store, "/a", Some(("new", true)));
    assert!(fixture.store.remove(&uri("/a")).unwrap());
    assert!(!fixture.store.remove(&uri("/a")).unwrap());
    check(&fixture.store, "/a", None);
    assert!(!fixture.path("h").exists());
}

#[test]
fn permissions_are_the_operators_whatever_the_umask() {
    for (mode, directories) in [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750)] {
        let fixture = Fixture::with(1 << 20, |settings| settings.mode = mode);
        put(&fixture.store, "/a/b", b"x").unwrap();
        let of = |name| std::fs::metadata(fixture.path(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((of("h/a/b"), of("h/a"), of("h")), (mode, directories, directories));
        assert_eq!(of(".larder"), 0o700);
    }
}

/// A meta with so many bytes in one field.
fn large(bytes: usize) -> Meta {
    let mut meta = meta();
    meta.fields.insert("x-large", HeaderValue::from_bytes(&vec![b'x'; bytes]).unwrap());
    meta
}

/// Stores `/a` with such a meta.
fn put_with(fixture: &Fixture, meta: Meta) -> Result<(), Refused> {
    let mut fill = fixture.store.begin(&uri("/a"), None)?;
    fill.write(Bytes::from_static(b"body"))?;
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(meta, || true, Box::new(move |done| tell.send(done).unwrap()));
    told.recv().unwrap()
}

/// Its file would be taken for a person's, and served for as long as it lies there.
#[test]
fn what_would_not_be_read_again_is_not_stored() {
    let fixture = Fixture::new(1 << 22);
    put_with(&fixture, large(70_000)).unwrap_err();
    check(&fixture.store, "/a", None);
    assert!(!fixture.path("h/a").exists());
}

#[test]
fn a_file_whose_meta_is_lost_stands_for_nothing_and_is_nobodys() {
    let fixture = Fixture::new(1 << 22);
    put_with(&fixture, large(60_000)).unwrap();
    std::fs::remove_dir_all(fixture.path(".larder/meta")).unwrap();
    let fixture = fixture.reopened(1 << 22);
    if !fixture.store.shared().tree.has_attributes() {
        return check(&fixture.store, "/a", Some(("body", false)));
    }
    check(&fixture.store, "/a", None);
    put(&fixture.store, "/a", b"again").unwrap();
    check(&fixture.store, "/a", Some(("again", true)));
}

/// It has the mark of the file that it was.
#[test]
fn a_file_that_was_moved_with_its_attributes_is_a_persons() {
    let fixture = Fixture::new(1 << 22);
    put_with(&fixture, large(60_000)).unwrap();
    std::fs::rename(fixture.path("h/a"), fixture.path("h/b")).unwrap();
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/b", Some(("body", false)));
}

#[test]
fn large_fields_count_against_the_cap_also_after_a_restart() {
    use std::os::unix::fs::MetadataExt;
    fn taken(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let take = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => taken(&entry.path()),
            metadata => metadata.blocks() * 512,
        };
        entries.map(take).sum()
    }
    let mut fixture = Fixture::new(1 << 20);
    for round in 0..2 {
        for number in 0..40 {
            let path = format!("/{round}-{number}");
            let mut fill = fixture.store.begin(&uri(&path), None).unwrap();
            fill.write(Bytes::from_static(b"body")).unwrap();
            let (tell, told) = mpsc::sync_channel(1);
            fill.commit(large(60_000), || true, Box::new(move |done| tell.send(done).unwrap()));
            told.recv().unwrap().unwrap();
            let (all, usage) = (taken(&fixture.path("")), fixture.store.usage());
            assert!(all <= 1 << 20 && usage.high_water_bytes <= 1 << 20, "{number}: {all} {usage:?}");
        }
        assert!(fixture.store.usage().evicted > 20);
        fixture = fixture.reopened(1 << 20);
    }
}

#[test]
fn large_fields_lie_in_a_file_of_their_own() {
    let fixture = Fixture::new(1 << 22);
    let large = large(60_000);
    put_with(&fixture, large.clone()).unwrap();
    let hit = find(&fixture.store, "/a").unwrap();
    assert!(matches!(hit.source(), Source::Stored(found) if **found == large));
    put(&fixture.store, "/a", b"small").unwrap();
    check(&fixture.store, "/a", Some(("small", true)));
    let metas = fixture.path(".larder/meta");
    assert!(!metas.exists() || files(&metas).is_empty());
}

#[test]
fn nobody_ever_reads_half_of_a_file() {
    let fixture = Fixture::new(1 << 24);
    let is_over = AtomicBool::new(false);
    let body = |round: u8| vec![round; 40_000 + usize::from(round) * 100];
    put(&fixture.store, "/a", &body(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..100 {
                put(&fixture.store, "/a", &body(round)).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            let (found, is_stored) = read(&fixture.store, "/a").unwrap();
            let round = found[0];
            assert!(is_stored && found == body(round), "round {round}");
            let plain = std::fs::read(fixture.path("h/a")).unwrap();
            assert_eq!(plain, body(plain[0]));
        }
    });
}

#[test]
fn a_full_queue_refuses_and_never_waits() {
    let fixture = Fixture::new(1 << 30);
    // The writing thread is held up.
    let release = hold_up(&fixture.store);
    let mut fill = fixture.store.begin(&uri("/a"), None).unwrap();
    let piece = Bytes::from(vec![0; 1 << 20]);
    let taken = (0..40).map_while(|_| fill.write(piece.clone()).ok()).count();
    assert_eq!(taken, queue::QUEUE_BYTES_MAX >> 20);
    assert_eq!(fill.write(piece), Err(Refused::QueueFull));
    drop(release);
    drop(fill);
    assert!(fixture.store.flush());
    let own = [".larder/lock", ".larder/journal", ".larder/journal.new"].map(|name| fixture.path(name));
    assert!(files(&fixture.path("")).iter().all(|path| own.contains(path)));
}

#[test]
fn storing_the_same_again_and_again_keeps_the_queue_short() {
    let fixture = Fixture::new(1 << 20);
    for round in 0..1500_u32 {
        put(&fixture.store, "/a", &round.to_le_bytes()).unwrap();
    }
    let shared = fixture.store.shared();
    let index = &shared.index;
    assert!(index.queued() < 1100, "{}", index.queued());
    assert_eq!(index.victim().map(|name| name.uri().unwrap().1), Some("/a".to_owned()));
    assert!(index.victim().is_none());
}

#[test]
fn what_is_about_to_be_removed_is_not_found_any_more() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"old").unwrap();
    let release = hold_up(&fixture.store);
    fixture.store.invalidate(&uri("/a"));
    assert!(fixture.path("h/a").exists());
    assert!(matches!(fixture.store.look(&uri("/a")), Look::Absent));
    assert!(fixture.store.look_blocking(&uri("/a")).is_none());
    drop(release);
    assert!(fixture.store.flush());
    assert!(!fixture.path("h/a").exists());
    put(&fixture.store, "/a", b"new").unwrap();
    check(&fixture.store, "/a", Some(("new", true)));
}

#[test]
fn a_survey_sees_everything_and_changes_nothing() {
    let fixture = Fixture::new(1 << 20);
    for path in ["/a", "/a/b", "/c/?q"] {
        put(&fixture.store, path, b"x").unwrap();
    }
    std::fs::write(fixture.path("h/by hand"), "y").unwrap();
    std::fs::write(fixture.path("h/.swp"), "y").unwrap();
    std::os::unix::fs::symlink("by hand", fixture.path("h/link")).unwrap();
    put(&fixture.store, "/a", b"x").unwrap();
    let before = files(&fixture.path(""));
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    let mut each = |file: Listed| {
        let (_, path, query) = file.uri.unwrap();
        found.push((path, query.is_some(), file.meta.is_some()));
    };
    let mut note = |path: &[u8], why| odd.push((String::from_utf8(path.to_vec()).unwrap(), why));
    survey(&fixture.path(""), &mut each, &mut note).unwrap();
    found.sort();
    odd.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        [("/a", false, true), ("/a/b", false, true), ("/by%20hand", false, false), ("/c/", true, true)];
    assert_eq!(found, expected.map(|(path, query, stored)| (path.to_owned(), query, stored)));
    assert_eq!(odd, [("h/.swp".to_owned(), Odd::NoUrl), ("h/link".to_owned(), Odd::NotAFile)]);
    assert_eq!(files(&fixture.path("")), before);
    assert!(survey(&fixture.path("missing"), &mut |_| {}, &mut |_, _| {}).is_err());
}
