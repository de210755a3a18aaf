//! What was invalidated is served from no file, whatever becomes of the file: it is noted, and written down for the next start.

use std::cell::RefCell;

use super::*;

/// Stores a body that was fetched after this number.
fn put_after(store: &FileStore, path: &str, body: &[u8], number: u64) -> Result<(), Refused> {
    let mut fill = store.begin(&uri(path), Some(body.len() as u64))?;
    fill.write(Bytes::copy_from_slice(body))?;
    let (tell, told) = mpsc::sync_channel(1);
    fill.commit(Meta { number, ..meta() }, || true, Box::new(move |done| tell.send(done).unwrap()));
    told.recv().unwrap()
}

/// What a run leaves that noted an invalidation, and was killed before it removed the file.
fn note_only(store: &FileStore, path: &str, number: u64) {
    let shared = store.shared();
    shared.journal.note_name(&Name::of(&uri(path)).unwrap(), number, journal::Owed::Yes);
    assert!(shared.journal.sync());
}

fn journal(fixture: &Fixture) -> PathBuf {
    fixture.path(".larder/journal")
}

#[test]
fn what_was_invalidated_before_a_kill_is_not_found_by_the_next_run() {
    let fixture = Fixture::new(1 << 20);
    for path in ["/old", "/newer", "/other", "/mine"] {
        put_after(&fixture.store, path, b"stored", 3).unwrap();
    }
    put_after(&fixture.store, "/newer", b"newer", 4).unwrap();
    ["/old", "/newer", "/mine", "/none"].iter().for_each(|path| note_only(&fixture.store, path, 4));
    std::fs::write(fixture.path("h/mine"), "by hand").unwrap();
    let fixture = fixture.reopened(1 << 20);
    assert!(fixture.store.last_number() > 4, "numbers go on above it");
    check(&fixture.store, "/old", None);
    check(&fixture.store, "/newer", Some(("newer", true)));
    check(&fixture.store, "/other", Some(("stored", true)));
    check(&fixture.store, "/mine", Some(("by hand", false)));
    wait(|| !fixture.path("h/old").exists() && fixture.store.usage().invalidated == 0);
    put_after(&fixture.store, "/old", b"anew", 4).unwrap();
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/old", Some(("anew", true)));
}

#[test]
fn a_file_whose_fetch_was_overtaken_is_not_found_by_the_next_run() {
    let fixture = Fixture::new(1 << 20);
    fixture.store.invalidate_below(&uri("/a"), 5);
    assert!(fixture.store.flush());
    put_after(&fixture.store, "/a", b"older", 4).unwrap();
    put_after(&fixture.store, "/b", b"older", 4).unwrap();
    check(&fixture.store, "/a", Some(("older", true)));
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/b", Some(("older", true)));
}

#[test]
fn a_journal_that_cannot_be_believed_makes_files_be_doubted() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage, bool); 4] = [
        ("missing", |path| std::fs::remove_file(path).unwrap(), false),
        ("empty", |path| std::fs::write(path, b"").unwrap(), false),
        (
            "a hole",
            |path| {
                let mut bytes = std::fs::read(path).unwrap();
                bytes[larder_tier::format::log::LOG_HEAD_BYTES + 9] ^= 1;
                std::fs::write(path, bytes).unwrap();
            },
            false,
        ),
        (
            "a torn end",
            |path| {
                let mut bytes = std::fs::read(path).unwrap();
                bytes.truncate(bytes.len() - 3);
                std::fs::write(path, bytes).unwrap();
            },
            true,
        ),
    ];
    for (what, damage, is_believed) in damages {
        let fixture = Fixture::new(1 << 20);
        put(&fixture.store, "/a", b"stored").unwrap();
        std::fs::write(fixture.path("h/mine"), "by hand").unwrap();
        note_only(&fixture.store, "/b", 4);
        note_only(&fixture.store, "/c", 5);
        fixture.store.close();
        damage(&journal(&fixture));
        let fixture = fixture.reopened(1 << 20);
        check(&fixture.store, "/a", is_believed.then_some(("stored", true)));
        check(&fixture.store, "/mine", Some(("by hand", false)));
        // It holds for the run after that as well, and not for what comes from now on.
        note_only(&fixture.store, "/d", 6);
        let fixture = fixture.reopened(1 << 20);
        check(&fixture.store, "/a", is_believed.then_some(("stored", true)));
        let times = StoredTimes { received: Clock::default().now().wall, ..meta().times };
        let mut fill = fixture.store.begin(&uri("/new"), Some(1)).unwrap();
        fill.write(Bytes::from_static(b"x")).unwrap();
        let (tell, told) = mpsc::sync_channel(1);
        let done = Box::new(move |done| tell.send(done).unwrap());
        // As a process does that begins to count above all that the directory knows of.
        let number = fixture.store.last_number() + 1;
        fill.commit(Meta { times, number, ..meta() }, || true, done);
        assert_eq!(told.recv().unwrap(), Ok(()), "{what}");
        let fixture = fixture.reopened(1 << 20);
        check(&fixture.store, "/new", Some(("x", true)));
        check(&fixture.store, "/a", is_believed.then_some(("stored", true)));
    }
}

#[test]
fn what_is_doubted_is_not_used_either_where_the_clock_is_behind_it() {
    let fixture = Fixture::new(1 << 20);
    let now = Clock::default().now().wall;
    let ahead = StoredTimes { received: WallTime(now.0 + 3_600_000), ..meta().times };
    let store_at = |store: &FileStore, path: &str, number: u64| {
        let fill = store.begin(&uri(path), Some(0)).unwrap();
        let (tell, told) = mpsc::sync_channel(1);
        let done = Box::new(move |done| tell.send(done).unwrap());
        fill.commit(Meta { times: ahead, number, ..meta() }, || true, done);
        told.recv().unwrap().unwrap();
    };
    store_at(&fixture.store, "/a", 3);
    let reached = fixture.store.last_number();
    fixture.store.close();
    // Sound, and from the future.
    let head = larder_tier::format::log::LogHead { begun: now.0 + 1_800_000, reached };
    std::fs::write(journal(&fixture), head.write()).unwrap();
    let fixture = fixture.reopened(1 << 20);
    assert_eq!(fixture.store.last_number(), reached, "numbers go on above it");
    check(&fixture.store, "/a", None);
    store_at(&fixture.store, "/b", reached + 1);
    check(&fixture.store, "/b", Some(("", true)));
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/b", Some(("", true)));
}

#[test]
fn what_cannot_be_removed_is_not_served_and_said_once() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m") else { return };
    let store = open(&mounted.path(), 1 << 20, |_| {});
    for path in ["/a", "/b", "/c"] {
        put(&store, path, b"there").unwrap();
    }
    std::fs::write(mounted.path().join("h/mine"), "by hand").unwrap();
    check(&store, "/mine", Some(("by hand", false)));
    mounted.remount("remount,ro");
    for _ in 0..3 {
        store.invalidate_below(&uri("/a"), 7);
        store.invalidate(&uri("/b"));
    }
    assert!(store.flush());
    check(&store, "/a", None);
    check(&store, "/b", None);
    check(&store, "/c", Some(("there", true)));
    assert!(store.remove(&uri("/mine")).is_err(), "it cannot be removed");
    check(&store, "/mine", None);
    wait(|| store.usage().is_journal_behind);
    let usage = store.usage();
    assert!(usage.journal_failures > 0 && usage.is_failing && usage.invalidated == 3, "{usage:?}");
    let first = RefCell::new(None);
    wait(|| {
        *first.borrow_mut() = store.take_journal_event();
        first.borrow().is_some()
    });
    let told: Vec<_> = first.take().into_iter().chain(store.take_journal_event()).collect();
    assert!(told.len() == 1 && told[0].contains("cannot be written down"), "{told:?}");
    mounted.remount("remount,rw");
    wait(|| !store.usage().is_journal_behind);
    wait(|| !mounted.path().join("h/a").exists() && !mounted.path().join("h/b").exists());
    wait(|| put_after(&store, "/a", b"new", 7).is_ok());
    check(&store, "/a", Some(("new", true)));
    std::fs::write(mounted.path().join("h/mine"), "another").unwrap();
    check(&store, "/mine", Some(("another", false)));
    store.close();
}

#[test]
fn what_was_written_down_while_the_file_system_was_read_only_holds_after_a_kill() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m") else { return };
    let store = open(&mounted.path(), 1 << 20, |_| {});
    put(&store, "/a", b"there").unwrap();
    let release = hold_up(&store);
    mounted.remount("remount,ro");
    store.invalidate_below(&uri("/a"), 7);
    wait(|| store.usage().is_journal_behind);
    mounted.remount("remount,rw");
    // Its file is still there, and the journal has caught up.
    wait(|| !store.usage().is_journal_behind);
    let bytes = std::fs::read(mounted.path().join(".larder/journal")).unwrap();
    let log = larder_tier::format::log::read_log(&bytes).unwrap();
    assert!(log.is_whole && log.notes.iter().any(|note| note.number == 7), "{log:?}");
    drop(release);
    store.close();
}

#[test]
fn a_purge_that_fails_makes_no_start_doubt_anything() {
    let Some(mounted) = Mounted::new("tmpfs", "size=2m") else { return };
    let store = open(&mounted.path(), 1 << 20, |_| {});
    put(&store, "/a", b"there").unwrap();
    put(&store, "/b", b"there").unwrap();
    mounted.remount("remount,ro");
    store.purge_below(&uri("/a"), 7);
    assert!(store.remove(&uri("/a")).is_err(), "it is not acknowledged");
    assert!(!store.shared().journal.sync());
    check(&store, "/a", None);
    assert!(!store.usage().is_journal_behind && !store.is_behind());
    // Somebody else is answered: now the next start has to know.
    store.invalidate_below(&uri("/none"), 8);
    wait(|| store.usage().is_journal_behind);
    assert!(store.shared().witness.is_there() && store.is_behind());
    mounted.remount("remount,rw");
    wait(|| !store.usage().is_journal_behind && !store.shared().witness.is_there());
    store.close();
}

#[test]
fn a_full_file_system_has_room_for_what_is_invalidated_or_is_doubted() {
    let Some(mounted) = Mounted::new("tmpfs", "size=1m") else { return };
    let store = open(&mounted.path(), 1 << 19, |_| {});
    put(&store, "/a", b"there").unwrap();
    put(&store, "/b", b"there").unwrap();
    let filler = mounted.0.path().join("filler");
    assert!(std::fs::write(&filler, vec![7; 2 << 20]).is_err());
    // The first have room, the last have not.
    let release = hold_up(&store);
    for number in 0..2000_u64 {
        store.invalidate_below(&uri(&format!("/{number}/{}", "x".repeat(100))), number + 2);
    }
    store.invalidate_below(&uri("/a"), 3000);
    assert!(!store.shared().journal.sync() && store.usage().is_journal_behind);
    check(&store, "/a", None);
    check(&store, "/b", Some(("there", true)));
    // As a kill would leave it: what cannot be written down makes the next start doubt everything.
    let bytes = std::fs::read(mounted.path().join(".larder/journal")).unwrap_or_default();
    assert!(
        larder_tier::format::log::read_log(&bytes).is_none_or(|log| !log.is_whole),
        "{} bytes",
        bytes.len()
    );
    std::fs::remove_file(&filler).unwrap();
    wait(|| !store.usage().is_journal_behind);
    drop(release);
    store.close();
}

#[test]
fn a_journal_does_not_grow_with_what_is_done() {
    let fixture = Fixture::new(1 << 22);
    for number in 0..6000_u64 {
        fixture.store.invalidate_below(&uri(&format!("/{}", number % 3000)), number + 1);
        if number % 100 == 0 {
            assert!(fixture.store.flush() && fixture.store.shared().journal.sync());
        }
    }
    assert!(fixture.store.flush());
    fixture.store.invalidate_below(&uri("/last"), 7000);
    assert!(fixture.store.shared().journal.sync());
    let length = std::fs::metadata(journal(&fixture)).unwrap().len();
    assert!(length < 64 << 10, "{length} bytes");
    assert!(fixture.store.usage().invalidated <= 1);
}

#[test]
fn predicates_are_found_again_and_bounded() {
    let fixture = Fixture::new(1 << 20);
    let note = |number: u64, what: &str| Note { number, moment: 9, what: what.into() };
    fixture.store.note(&note(3, "g-one"));
    fixture.store.note(&note(4, "g-two"));
    let fixture = fixture.reopened(1 << 20);
    assert_eq!(fixture.store.notes(), [note(3, "g-one"), note(4, "g-two")]);
    assert!(fixture.store.notes().is_empty(), "once");
    let long = "x".repeat(4000);
    (0..6000).for_each(|number| fixture.store.note(&note(number + 5, &format!("g-{number}{long}"))));
    let fixture = fixture.reopened(1 << 20);
    let notes = fixture.store.notes();
    let floor = notes.iter().find(|note| note.what.is_empty()).unwrap();
    assert!(notes.len() < 4200 && floor.number > 5, "{} {floor:?}", notes.len());
    assert!(std::fs::metadata(journal(&fixture)).unwrap().len() < 48 << 20);
}

#[test]
fn somebody_who_removes_the_journal_while_it_is_used_loses_nothing() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"there").unwrap();
    note_only(&fixture.store, "/b", 3);
    std::fs::remove_dir_all(fixture.path(".larder")).unwrap();
    note_only(&fixture.store, "/c", 4);
    assert!(journal(&fixture).exists());
}

#[test]
fn what_is_doubted_stays_doubted() {
    let fixture = Fixture::new(1 << 20);
    put(&fixture.store, "/a", b"there").unwrap();
    std::fs::write(fixture.path("h/mine"), "by hand").unwrap();
    fixture.store.distrust();
    assert!(matches!(fixture.store.take_absence(), Some(FilesAbsence::Back { is_anew: true })));
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/mine", Some(("by hand", false)));
    let fixture = fixture.reopened(1 << 20);
    check(&fixture.store, "/a", None);
    check(&fixture.store, "/mine", Some(("by hand", false)));
}
