//! Stock of the journal, and walks that miss nothing.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::mpsc;
use std::{fs, thread};

use larder_tier::note::Needed;

use super::damage::files;
use super::*;
use crate::engine::format::journal::JournalEntry;

/// Has stock taken, and waits until the old notes are gone.
fn compacted(disk: &Disk) {
    disk.take_stock();
    wait(|| disk.shared.journal.bytes() < 64 * 1024);
}

#[test]
fn stock_keeps_what_its_caller_needs() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    disk.take_stock_by(&Needed::new(|notes, _| {
        notes.into_iter().filter(|note| note.what != b"retired").collect()
    }));
    [note(1, b"retired"), note(2, b"kept")].iter().for_each(|note| disk.note(note));
    (0..5000).for_each(|k| disk.note(&note(3 + k, b"again")));
    compacted(&disk);
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    assert_eq!(disk.notes(), [note(2, b"kept"), note(5002, b"again")]);
}

#[test]
fn what_is_needed_of_a_journal_is_written_in_slices_under_no_lock_and_a_crash_meanwhile_loses_nothing() {
    const NOTES: u64 = 40_000;
    let (folder, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let of = |k: u64| note(k, format!("{k:0>100}").as_bytes());
    let disk = open(folder.path(), 64 * MIB);
    (1..100).for_each(|k| disk.note(&of(k)));
    block_on(disk.sync_journal()).unwrap();
    // Its writer, which would compact it as well, has ended.
    disk.kill();
    let shared = Arc::clone(&disk.shared);
    shared.journal.turn(&shared.space, &shared.health).unwrap();
    let lengths = |kind: &str| -> Vec<u64> {
        files(folder.path(), &[kind]).iter().map(|path| fs::metadata(path).unwrap().len()).collect()
    };
    let now_bytes = *lengths(".journal").last().unwrap();
    let halfway = || {
        let (tell, told) = mpsc::channel();
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.journal.collect(&[JournalEntry::Note(note(NOTES + 1, b"meanwhile"))]);
            shared.journal.write(&shared.space, &shared.health);
            tell.send(()).unwrap();
        });
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(*lengths(".journal").last().unwrap() < now_bytes + 1000, "all goes where others write");
        let unfinished = lengths(".journal.new");
        assert!(unfinished[0] > MIB && unfinished[0] < 4 * MIB, "{unfinished:?}");
        copy(folder.path(), crashed.path());
    };
    let entries = (1..=NOTES).inspect(|k| {
        if *k == NOTES / 2 {
            halfway()
        }
    });
    shared
        .journal
        .drop_old(entries.map(|k| JournalEntry::Note(of(k))), &shared.space, &shared.health)
        .unwrap();
    assert_eq!(files(folder.path(), &[".journal", ".new"]).len(), 2);
    drop((disk, shared));
    for (path, kept) in [(crashed.path(), 99), (folder.path(), NOTES)] {
        let disk = open(path, 64 * MIB);
        assert_eq!(disk.findings(), []);
        let notes = disk.notes();
        assert_eq!(notes.len() as u64, kept + 1);
        assert_eq!((&notes[0], &*notes.last().unwrap().what), (&of(1), &b"meanwhile"[..]));
        assert_eq!(files(path, &[".new"]), [] as [PathBuf; 0]);
    }
}

#[test]
fn what_is_needed_of_a_journal_and_has_no_room_leaves_the_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    disk.note(&note(1, b"kept"));
    block_on(disk.sync_journal()).unwrap();
    disk.kill();
    let shared = Arc::clone(&disk.shared);
    shared.journal.turn(&shared.space, &shared.health).unwrap();
    let all = shared.space.reserve(shared.space.free() - 300_000).unwrap();
    let (before, many) =
        (shared.space.free(), (0..10_000).map(|k| JournalEntry::Note(note(k, &[b'x'; 100]))));
    assert!(shared.journal.drop_old(many, &shared.space, &shared.health).is_err());
    assert_eq!(shared.space.free(), before);
    // What others write still has its place, and is durable.
    shared.journal.collect(&[JournalEntry::Note(note(2, b"later"))]);
    shared.journal.sync(&shared.space, &shared.health).unwrap();
    assert_eq!(files(folder.path(), &[".journal", ".new"]).len(), 2);
    drop((all, disk, shared));
    assert_eq!(open(folder.path(), 64 * MIB).notes(), [note(1, b"kept"), note(2, b"later")]);
}

#[test]
fn notes_that_were_lost_leave_one_that_stands_for_everything() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    disk.note(&note(1, b"kept"));
    disk.shared.note_number(7);
    // As where there was no room for more of them than are kept.
    disk.shared.journal.note_lost();
    wait(|| block_on(disk.sync_journal()).is_ok());
    disk.kill();
    drop(disk);
    let disk = open(folder.path(), 64 * MIB);
    assert_eq!(disk.notes(), [note(1, b"kept"), Note { number: 7, ..Note::default() }]);
}

#[test]
fn a_walk_meets_all_that_was_put_in_before() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    for k in 0..300 {
        disk.put(object(k, 1, inline(k, 100))).unwrap();
    }
    assert!(disk.settle() && disk.shared.index.pending() == 0);
    for most in [1, 7, 1000] {
        let (mut met, mut from) = (HashSet::new(), None);
        loop {
            let page = disk.list_all(from, most);
            assert!(page.places.len() <= most);
            met.extend(page.places.iter().map(|place| disk.read_head(*place).unwrap().base));
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(met.len(), 300, "{most}");
    }
    // One that is not written yet.
    let pending = crate::engine::Location::pending;
    let index = &disk.shared.index;
    index.insert_pending(1, 1, pending(1000), 0, drop, &mut Default::default());
    assert_eq!([999, 1000, 1001].map(|last| index.awaits_up_to(pending(last))), [false, true, true]);
}
