//! What a process that ends between a write and all that follows it leaves behind.
//!
//! The writer has no thread here: the test puts its batch together, takes objects out meanwhile, and has the batch written. What
//! is opened then is the journal as it was before the write, and the segments as they are after it.

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
            writer: Mutex::default(),
            readers: Mutex::default(),
            findings: Vec::new(),
            notes: Mutex::default(),
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
        self.disk.remove_identity(&self.disk.address(&key(1)), 0);
        self.disk.write_journal();
    }

    /// The number of what is there for who starts after a kill right behind the next write.
    fn found_after_kill(mut self) -> Option<u64> {
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
        self.writer.flush();
        copy(|name| !name.ends_with(".journal"));
        let disk = open(killed.path(), DISK_BYTES);
        assert!(disk.findings().is_empty(), "{:?}", disk.findings());
        Some(look(&disk, 1)?.0)
    }
}

/// What is being written, and how it comes to that.
type Case = (&'static str, fn(&mut Hand));

#[test]
fn what_was_removed_while_it_was_written_stays_so_after_a_kill() {
    let cases: [Case; 7] = [
        ("a new object", |hand| hand.put_and_stage(1)),
        ("a new version", |hand| {
            hand.put_and_write(1);
            hand.put_and_stage(2);
        }),
        ("a version that another has replaced", |hand| {
            hand.put_and_stage(1);
            hand.put(2);
        }),
        ("a second life", |hand| {
            hand.put_and_write(1);
            hand.rescue();
        }),
        ("a second life of what another has replaced", |hand| {
            hand.put_and_write(1);
            hand.rescue();
            hand.put(2);
        }),
        ("a list of pieces that have moved", |hand| {
            hand.put_and_write(1);
            hand.put_again(1);
        }),
        ("a list of what another has replaced", |hand| {
            hand.put_and_write(1);
            hand.put_again(1);
            hand.put(2);
        }),
    ];
    let mut back = Vec::new();
    for (what, stage) in cases {
        let mut hand = Hand::new();
        stage(&mut hand);
        hand.remove();
        back.extend(hand.found_after_kill().map(|_| what));
        // What was not removed is there, or was replaced by what is not there yet.
        let mut hand = Hand::new();
        stage(&mut hand);
        let is_replaced = what.contains("another has replaced");
        assert_eq!(hand.found_after_kill().is_some(), !is_replaced, "{what}, not removed");
    }
    assert!(back.is_empty(), "{back:?}");
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
    assert_eq!(hand.found_after_kill(), Some(1));
}
