//! A directory that is replaced, gone for a while, or not there at the start.

use super::*;

/// What the operator hears next of the directory.
fn told(store: &FileStore) -> FilesAbsence {
    let told = std::cell::RefCell::new(None);
    wait(|| {
        let event = store.take_absence();
        event.map(|event| told.replace(Some(event))).is_some()
    });
    told.into_inner().unwrap()
}

/// Stores what came a moment ago, as soon as anything is stored.
fn put_soon(store: &FileStore, path: &str, body: &[u8]) {
    wait(|| {
        let times = StoredTimes { received: Clock::default().now().wall, ..meta().times };
        let Ok(mut fill) = store.begin(&uri(path), Some(body.len() as u64)) else { return false };
        // The directory may be found to be another one at this very moment.
        if fill.write(Bytes::copy_from_slice(body)).is_err() {
            return false;
        }
        let (tell, told) = mpsc::sync_channel(1);
        let done = Box::new(move |done| tell.send(done).unwrap());
        fill.commit(Meta { times, ..meta() }, || true, done);
        told.recv().unwrap().is_ok()
    });
}

#[test]
fn what_was_in_a_directory_that_is_replaced_is_not_served() {
    let fixture = Fixture::new(1 << 20);
    let store = &fixture.store;
    let (path, old) = (fixture.path(""), fixture.folder.path().join("old"));
    put(store, "/a", b"old").unwrap();
    std::fs::write(fixture.path("h/b"), "old by hand").unwrap();
    let kept = find(store, "/a").unwrap();
    // Renamed away, and another put in its place.
    let new = fixture.folder.path().join("new");
    std::fs::create_dir_all(new.join("h")).unwrap();
    std::fs::write(new.join("h/c"), "new by hand").unwrap();
    std::fs::rename(&path, &old).unwrap();
    std::fs::rename(&new, &path).unwrap();
    assert!(matches!(told(store), FilesAbsence::Replaced));
    check(store, "/a", None);
    check(store, "/b", None);
    check(store, "/c", Some(("new by hand", false)));
    assert_eq!(&kept.read_at(0, 3).unwrap()[..], b"old", "who reads it reads on");
    put_soon(store, "/a", b"new");
    check(store, "/a", Some(("new", true)));
    assert_eq!(std::fs::read(old.join("h/a")).unwrap(), b"old");
    assert_eq!(store.usage().stored, 2, "counters go on");
    // Removed, and made anew at once.
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    wait(|| path.join(".larder").exists());
    wait(|| !store.usage().is_absent && find(store, "/a").is_none());
    put_soon(store, "/a", b"anew");
    check(store, "/a", Some(("anew", true)));
}

#[test]
fn a_link_that_is_switched_leads_to_another_store() {
    let folder = tempfile::tempdir().unwrap();
    let release = |number: u32| folder.path().join(format!("release-{number}"));
    for number in [1, 2] {
        std::fs::create_dir_all(release(number).join("h")).unwrap();
        std::fs::write(release(number).join("h/mine"), number.to_string()).unwrap();
    }
    let (current, next) = (folder.path().join("current"), folder.path().join("next"));
    std::os::unix::fs::symlink(release(1), &current).unwrap();
    let store = open(&current, 1 << 20, |_| {});
    put(&store, "/a", b"one").unwrap();
    let switch = |number: u32| {
        std::os::unix::fs::symlink(release(number), &next).unwrap();
        std::fs::rename(&next, &current).unwrap();
        assert!(matches!(told(&store), FilesAbsence::Replaced));
        check(&store, "/mine", Some((&number.to_string(), false)));
    };
    check(&store, "/mine", Some(("1", false)));
    switch(2);
    check(&store, "/a", None);
    // What larder stored there before may be what was invalidated meanwhile.
    store.invalidate(&uri("/a"));
    switch(1);
    assert!(release(1).join("h/a").exists());
    check(&store, "/a", None);
    assert!(store.list(FilesCursor::default(), 10, &|_| true).files.iter().all(|file| file.meta.is_none()));
    put_soon(&store, "/a", b"new");
    check(&store, "/a", Some(("new", true)));
}

#[test]
fn a_directory_that_comes_back_is_used_without_what_it_has_missed() {
    let fixture = Fixture::new(1 << 20);
    let store = &fixture.store;
    let (path, away) = (fixture.path(""), fixture.folder.path().join("away"));
    for path in ["/kept", "/invalidated", "/newer"] {
        put(store, path, path.as_bytes()).unwrap();
    }
    std::fs::rename(&path, &away).unwrap();
    let FilesAbsence::Absent(error) = told(store) else { panic!("it is there") };
    assert!(error.to_string().contains("the directory is gone"), "{error}");
    let usage = store.usage();
    assert!(usage.is_absent && usage.is_failing && usage.state() == "absent", "{usage:?}");
    check(store, "/kept", None);
    assert_eq!(store.refuses(), Some(Refused::Absent));
    store.invalidate(&uri("/invalidated"));
    assert_eq!(store.begin(&uri("/newer"), None).unwrap_err(), Refused::Absent);
    assert!(
        matches!(store.remove(&uri("/kept2")), Err(FilesError::Absent { .. })),
        "a purge is not acknowledged"
    );
    assert!(!path.exists(), "what somebody removed is not made: another may be about to take its place");
    std::fs::rename(&away, &path).unwrap();
    assert!(matches!(told(store), FilesAbsence::Back { is_anew: false }));
    check(store, "/kept", Some(("/kept", true)));
    check(store, "/invalidated", None);
    check(store, "/newer", None);
    wait(|| !path.join("h/newer").exists());
    put_soon(store, "/newer", b"new");
}

#[test]
fn a_store_is_opened_without_its_directory_and_uses_it_as_soon_as_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let above = folder.path().join("above");
    std::fs::write(&above, "in the way").unwrap();
    let path = above.join("store");
    let store = FileStore::open(&FilesSettings::new(&path, 1 << 20)).unwrap();
    assert!(matches!(told(&store), FilesAbsence::Absent(_)));
    assert!(probe(&path).is_err());
    check(&store, "/a", None);
    assert_eq!(put(&store, "/a", b"x"), Err(Refused::Absent));
    assert!(store.take_absence().is_none(), "said once");
    std::fs::remove_file(&above).unwrap();
    std::fs::create_dir(&above).unwrap();
    assert!(probe(&path).is_ok() && !path.exists(), "a probe changes nothing");
    assert!(matches!(told(&store), FilesAbsence::Back { is_anew: false }));
    put_soon(&store, "/a", b"x");
    check(&store, "/a", Some(("x", true)));
    store.close();
}

#[test]
fn a_directory_that_takes_the_place_of_another_while_the_store_is_closed_is_let_go_of() {
    let fixture = Fixture::new(1 << 20);
    fixture.store.close();
    std::fs::rename(fixture.path(""), fixture.folder.path().join("old")).unwrap();
    std::fs::create_dir(fixture.path("")).unwrap();
    fixture.store.look_after();
    let other = open(&fixture.path(""), 1 << 20, |_| {});
    assert!(!other.usage().is_absent);
    other.close();
}
