//! What a process that is killed at the worst moment leaves behind: between two writes, or between collecting an entry of the
//! journal and writing it.
//!
//! The writer has no thread here: the test puts its batch together, takes objects out meanwhile, and has the batch written. A
//! copy of the folder is opened then: the journal as it was before that write, and the segments as they are before or after it.

use super::*;
use crate::engine::writer::Writer;

const DISK_BYTES: u64 = 16 * MIB;

/// A disk, and its writer in the test's hands.
struct Hand {
    folder: tempfile::TempDir,
    disk: Arc<Disk>,
    writer: Writer,
}

impl Hand {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recovered = recover::open(settings(folder.path(), DISK_BYTES), Clock::default(), Contents::Kept);
        let shared = Arc::new(recovered.unwrap_or_else(|error| panic!("{error}")).shared);
        let writer = Writer::new(&shared).unwrap();
        let disk = Disk {
            shared,
            writer: RankedMutex::default(),
            readers: RankedMutex::default(),
            findings: Vec::new(),
            notes: RankedMutex::default(),
        };
        Self { folder, disk: Arc::new(disk), writer }
    }

    fn put(&self, number: u64) {
        self.disk.put(object(1, number, inline(number, 1000))).unwrap();
    }

    fn put_and_stage(&mut self, number: u64) {
        self.put(number);
        self.writer.stage_queued();
    }

    fn put_and_write(&mut self, number: u64) {
        self.put_and_stage(number);
        self.writer.flush();
    }

    /// It is written again where it is, as one whose segment goes.
    fn rescue(&mut self) {
        let [place] = self.disk.find(&self.disk.address(&key(1)))[..] else { panic!("one is there") };
        self.writer.write_again(place).unwrap();
    }

    /// It is to be written again, as one whose pieces have moved.
    fn put_again(&mut self, number: u64) {
        let at = self.disk.address(&key(1));
        let [place] = self.disk.find(&at)[..] else { panic!("one is there") };
        let object = object(1, number, inline(number, 1000));
        let at = (at.base, at.tag(object.identity), place);
        self.disk.shared.put_again(object, at, Arc::default()).unwrap();
        self.writer.stage_queued();
    }

    fn remove(&self) {
        self.remove_unwritten();
        self.disk.write_journal();
    }

    /// The entry of the removal is collected, and its thread is killed before it writes that.
    fn remove_unwritten(&self) {
        self.disk.remove_identity(&self.disk.address(&key(1)), 0);
    }

    /// The same for an invalidation.
    fn invalidate_unwritten(&self) {
        self.disk.take_out(&self.disk.address(&key(1)), 5);
    }

    /// The number of the response that a start finds after a crash of the machine, which loses what is written and not synced.
    fn found_after_crash(self) -> Option<u64> {
        let crashed = tempfile::tempdir().unwrap();
        copy(self.folder.path(), crashed.path());
        if let Some((segment, end)) = self.writer.unsynced() {
            let path = files::segment_path(crashed.path(), segment);
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len(end).and_then(|()| file.set_len(length)).unwrap();
        }
        Some(look(&open(crashed.path(), DISK_BYTES), 1)?.0)
    }

    /// The number of the response that a start finds after a kill, before or behind the write of the batch.
    fn found_after_kill(mut self, kill: Kill) -> Option<u64> {
        let killed = tempfile::tempdir().unwrap();
        let copy = |is_wanted: fn(&str) -> bool| {
            for file in std::fs::read_dir(self.folder.path()).unwrap().map(Result::unwrap) {
                let name = file.file_name().into_string().unwrap();
                if is_wanted(&name) {
                    std::fs::copy(file.path(), killed.path().join(name)).unwrap();
                }
            }
        };
        copy(|name| name.ends_with(".journal"));
        if kill == Kill::BehindWrite {
            self.writer.flush();
        }
        copy(|name| !name.ends_with(".journal"));
        let disk = open(killed.path(), DISK_BYTES);
        assert!(disk.findings().is_empty(), "{:?}", disk.findings());
        Some(look(&disk, 1)?.0)
    }
}

/// When the process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    BeforeWrite,
    BehindWrite,
}

/// What is being written, and how it comes to that.
struct Case {
    what: &'static str,
    stage: fn(&mut Hand),
    /// The responses that two kills bring back, before and behind the write, where the entry of a removal was only collected.
    back: [Option<u64>; 2],
}

const CASES: [Case; 8] = [
    Case { what: "a new object", stage: |hand| hand.put_and_stage(3), back: [None, Some(3)] },
    Case {
        what: "a new version",
        stage: |hand| {
            hand.put_and_write(3);
            hand.put_and_stage(4);
        },
        back: [None, Some(4)],
    },
    Case {
        what: "what another has replaced that waits",
        stage: |hand| {
            hand.put_and_write(3);
            hand.put(4);
        },
        back: [None, None],
    },
    Case {
        what: "a version that another has replaced",
        stage: |hand| {
            hand.put_and_stage(3);
            hand.put(4);
        },
        back: [None, None],
    },
    Case {
        what: "a second life",
        stage: |hand| {
            hand.put_and_write(3);
            hand.rescue();
        },
        back: [Some(3), Some(3)],
    },
    Case {
        what: "a second life of what another has replaced",
        stage: |hand| {
            hand.put_and_write(3);
            hand.rescue();
            hand.put(4);
        },
        back: [None, None],
    },
    Case {
        what: "a list of pieces that have moved",
        stage: |hand| {
            hand.put_and_write(3);
            hand.put_again(3);
        },
        back: [Some(3), Some(3)],
    },
    Case {
        what: "a list of what another has replaced",
        stage: |hand| {
            hand.put_and_write(3);
            hand.put_again(3);
            hand.put(4);
        },
        back: [None, None],
    },
];

#[test]
fn what_was_removed_while_it_was_written_stays_so_after_a_kill() {
    let mut back = Vec::new();
    for Case { what, stage, .. } in CASES {
        let mut hand = Hand::new();
        stage(&mut hand);
        hand.remove();
        back.extend(hand.found_after_kill(Kill::BehindWrite).map(|_| what));
        // What was not removed is there, or was replaced by what is not there yet.
        let mut hand = Hand::new();
        stage(&mut hand);
        let is_replaced = what.contains("another has replaced");
        let found = hand.found_after_kill(Kill::BehindWrite);
        assert_eq!(found.is_some(), !is_replaced, "{what}, not removed");
    }
    assert!(back.is_empty(), "{back:?}");
}

#[test]
fn a_kill_before_the_journal_is_written_undoes_that_change_and_none_before_it() {
    let changes =
        [("removed", Hand::remove_unwritten as fn(&Hand)), ("invalidated", Hand::invalidate_unwritten)];
    for (how, change) in changes {
        for Case { what, stage, back } in CASES {
            for (kill, back) in [Kill::BeforeWrite, Kill::BehindWrite].into_iter().zip(back) {
                let mut hand = Hand::new();
                // Two responses of one base, which an invalidation has taken out and written down.
                hand.put_and_write(1);
                hand.disk.put(Object { identity: 1, ..object(1, 1, inline(1, 1000)) }).unwrap();
                hand.writer.stage_queued();
                hand.writer.flush();
                hand.disk.invalidate(&hand.disk.address(&key(1)), 2);
                stage(&mut hand);
                change(&hand);
                assert_eq!(hand.found_after_kill(kill), back, "{what}, {how}, {kill:?}");
            }
        }
    }
}

#[test]
fn what_covers_an_earlier_record_is_on_the_disk_before_the_journal_relies_on_it() {
    let mut hand = Hand::new();
    hand.put_and_write(3);
    // The table of its segment says that it is alive, and nothing else dies there.
    hand.writer.seal();
    hand.rescue();
    hand.writer.flush();
    hand.disk.invalidate(&hand.disk.address(&key(1)), 5);
    hand.writer.compact();
    assert_eq!(hand.found_after_crash(), None);
}

#[test]
fn a_segment_that_could_not_be_synced_gets_its_table_before_the_journal_is_made_short() {
    let mut hand = Hand::new();
    hand.put_and_write(3);
    let journal = files::segment_path(hand.folder.path(), 1).with_extension("journal");
    let table = files::toc_path(hand.folder.path(), 1);
    hand.writer.doubt_open();
    hand.writer.compact();
    assert!(hand.writer.unsynced().is_none() && table.exists() && journal.exists());
    hand.writer.compact();
    assert!(!journal.exists(), "the next has nothing to doubt");
    assert_eq!(hand.found_after_crash(), Some(3));
}

#[test]
fn a_record_that_comes_too_late_is_not_written_and_covers_nothing() {
    let mut hand = Hand::new();
    hand.put_and_write(1);
    // By two disks that move pieces of it at once.
    hand.put_again(1);
    hand.put_again(1);
    hand.writer.flush();
    assert_eq!(hand.disk.usage().queued_bytes, 0);
    assert_eq!(hand.found_after_kill(Kill::BehindWrite), Some(1));
}
