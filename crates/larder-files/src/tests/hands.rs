//! What people and other programs do to the files, and when it is seen.

use http::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED};
use std::time::Duration;

use super::*;

/// A store in which `/a` is stored, old enough to be kept in memory, and found once.
fn warmed() -> Fixture {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"stored").unwrap();
    check(&fixture.store, "/a", Some(("stored", true)));
    fixture
}

#[test]
fn rm_purges() {
    let fixture = warmed();
    std::fs::remove_file(fixture.path("h/a")).unwrap();
    check(&fixture.store, "/a", None);
    put(&fixture.store, "/a", b"again").unwrap();
    check(&fixture.store, "/a", Some(("again", true)));
}

#[test]
fn an_edit_is_seen_at_the_next_look_and_is_a_persons_file() {
    let fixture = warmed();
    // In place, with the same length.
    std::fs::write(fixture.path("h/a"), "edited").unwrap();
    check(&fixture.store, "/a", Some(("edited", false)));
    // By a new file under the name, as most editors do.
    std::fs::write(fixture.path("h/.a.swp"), "again!").unwrap();
    std::fs::rename(fixture.path("h/.a.swp"), fixture.path("h/a")).unwrap();
    check(&fixture.store, "/a", Some(("again!", false)));
    std::fs::write(fixture.path("other"), "copied").unwrap();
    std::fs::copy(fixture.path("other"), fixture.path("h/a")).unwrap();
    check(&fixture.store, "/a", Some(("copied", false)));
}

#[test]
fn a_kept_file_is_compared_with_the_file_system_at_every_look() {
    let fixture = Fixture::new(1 << 20);
    std::fs::create_dir_all(fixture.path("h/d")).unwrap();
    std::fs::write(fixture.path("h/d/a"), "old").unwrap();
    // Only a clock of the file system's can say that nothing has changed for 2 s: it is told that it has not.
    let name = Name::of(&uri("/d/a")).unwrap();
    let keep = |hit: &Arc<FileHit>| {
        fixture.store.shared().index.keep(&name, hit, SystemTime::now() + Duration::from_secs(10));
        assert!(fixture.store.shared().index.kept(&name).is_some());
    };
    let hit = find(&fixture.store, "/d/a").unwrap();
    assert!(fixture.store.shared().index.kept(&name).is_none(), "it was modified a moment ago");
    keep(&hit);
    let Look::Found(again) = fixture.store.look(&uri("/d/a")) else { panic!("it is kept") };
    assert!(Arc::ptr_eq(&hit, &again));
    // Its directory gives way to another: nothing of the file itself has changed.
    std::fs::rename(fixture.path("h/d"), fixture.path("h/old")).unwrap();
    check(&fixture.store, "/d/a", None);
    keep(&find(&fixture.store, "/old/a").and(find_kept(&fixture, &hit)).unwrap());
    std::fs::create_dir_all(fixture.path("h/d")).unwrap();
    std::fs::write(fixture.path("h/d/a"), "new").unwrap();
    check(&fixture.store, "/d/a", Some(("new", false)));
}

/// Notes a hit under its old name again, as if nobody had looked meanwhile.
fn find_kept(fixture: &Fixture, hit: &Arc<FileHit>) -> Option<Arc<FileHit>> {
    let name = Name::of(&uri("/d/a")).unwrap();
    let noted = IndexedFile { inode: hit.inode(), bytes: 1, is_by_hand: true, is_use: true };
    fixture.store.shared().index.note(&name, &noted, room::Claim::default);
    Some(Arc::clone(hit))
}

#[test]
fn a_file_that_nobody_stored_is_served_with_fields_of_its_own() {
    let fixture = Fixture::with(1 << 20, |settings| {
        settings.default_type = Some(HeaderValue::from_static("application/json"));
    });
    std::fs::create_dir_all(fixture.path("h/users")).unwrap();
    for (file, path, media) in [
        ("h/users/5", "/users/5", "application/json"),
        ("h/style.css", "/style.css", "text/css"),
        ("h/users/index.html", "/users/", "text/html"),
        ("h/q.svg?v=1.css", "/q.svg?v=1.css", "image/svg+xml"),
    ] {
        std::fs::write(fixture.path(file), "by hand").unwrap();
        check(&fixture.store, path, Some(("by hand", false)));
        let hit = find(&fixture.store, path).unwrap();
        assert_eq!(hit.fields().get(CONTENT_TYPE).unwrap(), media);
        assert!(hit.fields().get(ETAG).unwrap().as_bytes().starts_with(b"W/"), "it may still change unseen");
        age(&fixture.path(file));
    }
    let hit = find(&fixture.store, "/users/5").unwrap();
    assert!(hit.fields().contains_key(LAST_MODIFIED));
    let before = hit.fields().get(ETAG).cloned();
    std::fs::write(fixture.path("h/users/5"), "by HAND").unwrap();
    assert_ne!(find(&fixture.store, "/users/5").unwrap().fields().get(ETAG).cloned(), before);
}

#[test]
fn what_a_person_put_there_is_neither_replaced_nor_invalidated_nor_evicted() {
    let fixture = warmed();
    std::fs::write(fixture.path("h/a"), "by hand").unwrap();
    assert_eq!(put(&fixture.store, "/a", b"fetched"), Err(Refused::InTheWay));
    assert_eq!(put(&fixture.store, "/a/b", b"fetched"), Err(Refused::InTheWay));
    fixture.store.invalidate(&uri("/a"));
    assert!(fixture.store.flush());
    check(&fixture.store, "/a", Some(("by hand", false)));
    fixture.store.resize(1, 1, 1);
    assert!(fixture.store.flush());
    check(&fixture.store, "/a", Some(("by hand", false)));
    assert!(fixture.store.remove(&uri("/a")).unwrap(), "unless somebody says so");
    check(&fixture.store, "/a", None);
}

#[test]
fn a_file_that_was_moved_or_touched_is_a_persons() {
    let fixture = warmed();
    std::fs::rename(fixture.path("h/a"), fixture.path("h/b")).unwrap();
    check(&fixture.store, "/b", Some(("stored", false)));
    check(&fixture.store, "/a", None);
    put(&fixture.store, "/a", b"stored").unwrap();
    age(&fixture.path("h/a"));
    check(&fixture.store, "/a", Some(("stored", false)));
}

#[test]
fn permissions_alone_change_nothing_that_was_stored() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = warmed();
    std::fs::set_permissions(fixture.path("h/a"), std::fs::Permissions::from_mode(0o600)).unwrap();
    check(&fixture.store, "/a", Some(("stored", true)));
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_cut() {
    let fixture = Fixture::new(1 << 24);
    put(&fixture.store, "/a", &vec![b'x'; 300_000]).unwrap();
    let hit = find(&fixture.store, "/a").unwrap();
    assert!(hit.whole().is_none());
    assert_eq!(hit.read_at(0, 1000).unwrap().len(), 1000);
    // Replaced, removed, evicted: the open file goes on to its end.
    put(&fixture.store, "/a", b"other").unwrap();
    assert!(hit.read_at(1000, 1000).is_ok());
    let hit = find(&fixture.store, "/a").unwrap();
    std::fs::remove_file(fixture.path("h/a")).unwrap();
    assert!(hit.read_at(0, 5).is_ok());
    // Written to in place: cut, longer or shorter or just different.
    put(&fixture.store, "/b", &vec![b'x'; 300_000]).unwrap();
    let hit = find(&fixture.store, "/b").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(fixture.path("h/b")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"y", 200_000).unwrap();
    assert!(hit.read_at(0, 1000).is_err());
    assert!(matches!(hit.read_now(0, 1000), Err(_) | Ok(None)));
    file.set_len(10).unwrap();
    assert!(hit.read_at(1000, 1000).is_err());
}

#[test]
fn hidden_files_and_larders_own_are_never_served() {
    let fixture = warmed();
    std::fs::write(fixture.path("h/.hidden"), "x").unwrap();
    check(&fixture.store, "/.hidden", None);
    for authority in [".larder", ".", "..", ".larder/tmp"] {
        for path in ["/lock", "/../h/a", "/"] {
            assert!(find_uri(&fixture.store, &TargetUri { authority, ..uri(path) }).is_none());
        }
    }
}

#[test]
fn files_of_others_are_counted_when_the_directory_is_walked() {
    let fixture = Fixture::with(1 << 24, |settings| settings.recount = Duration::from_millis(20));
    std::fs::create_dir_all(fixture.path("h/x")).unwrap();
    std::fs::write(fixture.path("h/x/y"), vec![1; 100_000]).unwrap();
    wait(|| fixture.store.usage().files == 1 && fixture.store.usage().bytes > 100_000);
    std::fs::remove_dir_all(fixture.path("h")).unwrap();
    wait(|| fixture.store.usage().files == 0 && fixture.store.usage().bytes < 100_000);
}

#[test]
fn a_store_whose_own_folder_was_removed_makes_it_anew() {
    let fixture = warmed();
    std::fs::remove_dir_all(fixture.path(".larder/tmp")).unwrap();
    put(&fixture.store, "/b", b"stored").unwrap();
    check(&fixture.store, "/b", Some(("stored", true)));
}

#[test]
fn a_file_put_in_place_while_larder_writes_there_is_never_lost() {
    let fixture = Fixture::new(1 << 22);
    let is_over = Arc::new(AtomicBool::new(false));
    std::fs::create_dir_all(fixture.path("h")).unwrap();
    // An empty directory goes with the last file that larder removes from it.
    std::fs::write(fixture.path("h/other"), "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = put(&fixture.store, "/a", b"stored");
                fixture.store.invalidate(&uri("/a"));
                let _ = put(&fixture.store, "/a", b"stored again");
            }
        });
        let _over = Over(Arc::clone(&is_over));
        for round in 0..300 {
            let mine = format!("mine {round}");
            std::fs::write(fixture.path("h/.mine"), &mine).unwrap();
            std::fs::rename(fixture.path("h/.mine"), fixture.path("h/a")).unwrap();
            // Larder may have had the name in its hand for a moment, and has to give it back.
            wait(|| std::fs::read_to_string(fixture.path("h/a")).is_ok_and(|found| found == mine));
            assert!(fixture.store.flush());
            assert_eq!(std::fs::read_to_string(fixture.path("h/a")).unwrap(), mine);
            std::fs::remove_file(fixture.path("h/a")).unwrap();
        }
    });
}

#[test]
fn the_last_handle_of_a_large_file_is_let_go_of_under_no_lock() {
    let fixture = Fixture::new(1 << 24);
    let path = fixture.path("h/large");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, vec![b'x'; 2 << 20]).unwrap();
    let (shared, name) = (fixture.store.shared(), name::Name::of(&uri("/large")).unwrap());
    let kept = || {
        let hit = find(&fixture.store, "/large").unwrap();
        shared.index.keep(&name, &hit, SystemTime::now() + Duration::from_secs(3600));
        hit.inode()
    };
    // Each closes the one before, by way of the queue.
    let inode = kept();
    let hit = shared.index.kept(&name).unwrap();
    shared.index.unkeep(&name);
    kept();
    shared.index.keep(&name, &hit, SystemTime::now() + Duration::from_secs(3600));
    drop(hit);
    let other = IndexedFile { inode: inode + 1, bytes: 1, is_by_hand: true, is_use: false };
    shared.index.note(&name, &other, room::Claim::default);
    assert!(shared.index.kept(&name).is_none());
}
