//! What a sync may be answered with, at the moments at which a compaction turns to another generation.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::engine::settings::DiskSize;

struct Fixture {
    _folder: tempfile::TempDir,
    space: Space,
    health: Health,
    journal: Journal,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::new(DiskSize::Bytes(64 << 20), sys::open_folder(folder.path()).unwrap(), 64 << 20);
        let first = create(folder.path(), 1, 1, &space).unwrap();
        let journal = Journal::new(folder.path(), 1, (first, Vec::new()), &space);
        Self { _folder: folder, space, health: Health::default(), journal }
    }

    fn write(&self, entries: u64) {
        (0..entries).for_each(|base| {
            self.journal.collect(&[JournalEntry::Invalidated { base, number: 1 }]);
        });
        self.journal.write(&self.space, &self.health);
    }

    /// Entries come while the disk has no room, more than are kept.
    fn lose(&self) {
        let all = self.space.reserve(self.space.free()).unwrap();
        self.write(BACKLOG_BYTES_MAX as u64 / 8);
        drop(all);
    }

    fn turn(&self) -> bool {
        self.journal.turn(&self.space, &self.health).unwrap().1
    }

    fn is_durable(&self) -> bool {
        self.journal.sync(&self.space, &self.health).is_ok()
    }

    fn drop_old(&self) -> io::Result<()> {
        self.journal.drop_old([], &self.space, &self.health)
    }
}

#[test]
fn what_came_while_the_file_was_synced_is_synced_again_after_a_turn() {
    let fixture = Fixture::new();
    let journal = &fixture.journal;
    fixture.write(1);
    let under_way = journal.unsynced(Lost::AtAnyTime, &fixture.space, &fixture.health).unwrap();
    // It may come behind the sync of its file, and before that is noted.
    fixture.write(1);
    fixture.turn();
    journal.note_synced(&under_way);
    let next = journal.unsynced(Lost::AtAnyTime, &fixture.space, &fixture.health).unwrap();
    assert_eq!(next.old.len(), 1, "the file that has the second entry");
    assert!(Arc::ptr_eq(&next.old[0], &under_way.now));
    journal.note_synced(&next);
    let last = journal.unsynced(Lost::AtAnyTime, &fixture.space, &fixture.health).unwrap();
    assert!(last.old.is_empty(), "nothing is added to it any more");
}

#[test]
fn nothing_is_durable_between_the_loss_of_entries_and_the_end_of_the_compaction() {
    let fixture = Fixture::new();
    fixture.write(1);
    assert!(fixture.is_durable());
    fixture.lose();
    assert!(!fixture.is_durable());
    assert!(fixture.turn());
    assert!(!fixture.is_durable() && fixture.journal.is_long());
    // That compaction came to nothing: the next hears of the loss too.
    assert!(fixture.turn());
    assert!(!fixture.is_durable());
    fixture.drop_old().unwrap();
    assert!(fixture.is_durable() && !fixture.journal.is_long());
}

#[test]
fn what_is_lost_during_a_compaction_is_for_the_next() {
    let fixture = Fixture::new();
    fixture.lose();
    assert!(fixture.turn());
    fixture.lose();
    fixture.drop_old().unwrap_err();
    assert!(!fixture.is_durable());
    assert!(fixture.turn());
    fixture.drop_old().unwrap();
    assert!(fixture.is_durable() && !fixture.turn());
}
