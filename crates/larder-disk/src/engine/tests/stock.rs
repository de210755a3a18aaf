//! Stock of the journal, and walks that miss nothing.

use std::collections::HashSet;

use larder_tier::note::Needed;

use super::*;

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
