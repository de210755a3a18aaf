//! Random operations, restarts and crashes against a plain map.
//!
//! The map knows for each key which number may still be found: the last that was put in, unless it was taken out since. Whatever
//! else is found is wrong; nothing found is always right, for the disk is small and gives up its oldest segments all the time. A kill
//! before the journal is written may undo the last change, and no other. The seed is in the message of a failure.

use super::*;

const KEYS: u64 = 40;
const DISK_BYTES: u64 = 12 * MIB;

struct Model {
    seed: u64,
    dice: Dice,
    disk: Arc<Disk>,
    folder: tempfile::TempDir,
    /// Numbers that may be found, and their lengths, oldest first.
    may_be: Vec<Vec<(u64, usize)>>,
    number: u64,
    found: u64,
    /// Changes that a kill before the write of the journal has undone.
    undone: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = open(folder.path(), DISK_BYTES);
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let may_be = (0..KEYS).map(|_| Vec::new()).collect();
        Self { seed, dice, disk, folder, may_be, number: 0, found: 0, undone: 0 }
    }

    fn put(&mut self, k: u64) {
        self.number += 1;
        let number = self.number;
        let stored = if self.dice.below(5) == 0 {
            let length = 300_000 + self.dice.below(700_000) as usize;
            let stored = pieces(&self.disk, k, number, length)
                .and_then(|parts| self.disk.put(object(k, number, RecordContent::Pieces(parts))));
            stored.map(|_| length)
        } else {
            let length = self.dice.below(60_000) as usize;
            self.disk.put(object(k, number, inline(number, length))).map(|_| length)
        };
        match stored {
            // What it replaced does not come back, although it is not written yet.
            Ok(length) => self.may_be[k as usize] = vec![(number, length)],
            // A piece was refused, and the record never put in: what was there before stays.
            Err(Refused::QueueFull | Refused::NoRoom) => {}
            Err(why) => panic!("refused: {why:?}, seed {}", self.seed),
        }
    }

    fn invalidate(&mut self, k: u64) {
        self.number += 1;
        self.disk.invalidate(&self.disk.address(&key(k)), self.number);
        self.may_be[k as usize].clear();
    }

    fn remove(&mut self, k: u64) {
        let at = self.disk.address(&key(k));
        for place in self.disk.find(&at) {
            self.disk.remove(&at, place);
            if !self.disk.holds(&at, place) && self.disk.shared.index.of_base(at.base).is_empty() {
                self.may_be[k as usize].clear();
            }
        }
    }

    fn check(&mut self, k: u64) {
        let seen = look(&self.disk, k);
        let may_be = &mut self.may_be[k as usize];
        let Some((number, content)) = seen else { return };
        self.found += 1;
        let known = may_be.iter().position(|(one, _)| *one == number);
        let known = known.unwrap_or_else(|| panic!("seed {}: {k} is {number}, not of {may_be:?}", self.seed));
        assert_eq!(content, bytes_of(number, may_be[known].1), "seed {}", self.seed);
        may_be.drain(..known);
    }

    /// Everything is written or lost: what is found now is all that may be found later.
    fn check_all(&mut self) {
        settled(&self.disk);
        for k in 0..KEYS {
            self.check(k);
            let is_there = look(&self.disk, k).is_some();
            let may_be = &mut self.may_be[k as usize];
            match is_there {
                true => may_be.truncate(1),
                false => may_be.clear(),
            }
        }
    }

    fn reopen(&mut self, is_killed: bool) {
        match is_killed {
            true => self.disk.kill(),
            false => self.disk.close(),
        }
        let shared = Arc::downgrade(&self.disk.shared);
        let path = self.folder.path().to_owned();
        let elsewhere = tempfile::tempdir().unwrap();
        // The place of the disk is taken by another one, so that the first is gone before it is opened again.
        self.disk = open(elsewhere.path(), 10 * MIB);
        wait(|| shared.strong_count() == 0);
        self.disk = open(&path, DISK_BYTES);
        assert!(self.disk.last_number() <= self.number, "seed {}", self.seed);
    }

    /// The process is killed after a change was collected for the journal, and before that is written: the next start finds a
    /// copy of the folder from that moment. That change may be undone there, and no other.
    fn kill_before_journal(&mut self, k: u64) {
        settled(&self.disk);
        let (at, mut may_be) = (self.disk.address(&key(k)), self.may_be.clone());
        let own = &mut self.may_be[k as usize];
        self.number += 1;
        match self.dice.below(3) {
            0 => {
                let length = self.dice.below(60_000) as usize;
                if self.disk.take_in(object(k, self.number, inline(self.number, length))).is_ok() {
                    *own = vec![(self.number, length)];
                    may_be[k as usize].push((self.number, length));
                }
            }
            1 => {
                self.disk.take_out(&at, self.number);
                own.clear();
            }
            _ => {
                self.disk.remove_identity(&at, 0);
                own.clear();
            }
        }
        let is_gone = own.is_empty();
        let copied = tempfile::tempdir().unwrap();
        copy(self.folder.path(), copied.path());
        self.disk.write_journal();
        let other = open(copied.path(), DISK_BYTES);
        for (other_k, may_be) in (0..).zip(may_be) {
            let Some((number, content)) = look(&other, other_k) else { continue };
            let known = may_be.iter().find(|(one, _)| *one == number);
            let Some((_, length)) = known else {
                panic!("seed {}: {other_k} is {number}, not of {may_be:?}, after {k}", self.seed)
            };
            assert_eq!(content, bytes_of(number, *length), "seed {}", self.seed);
            self.undone += u64::from(is_gone && other_k == k);
        }
        other.close();
    }

    fn step(&mut self) {
        let k = self.dice.below(KEYS);
        match self.dice.below(100) {
            0..55 => self.put(k),
            55..65 => self.invalidate(k),
            65..70 => self.remove(k),
            70..85 => self.check(k),
            85..92 => {
                let at = self.disk.address(&key(k));
                self.disk.find(&at).iter().for_each(|place| self.disk.note_use(&at, *place));
            }
            92..94 => self.check_all(),
            94 => self.reopen(false),
            95 | 96 => {
                self.reopen(true);
                self.check_all();
            }
            97 => {
                // Enough to make journal compaction due.
                for other in 0..800 {
                    self.number += 1;
                    self.disk.invalidate(&self.disk.address(&key(1000 + other)), self.number);
                }
            }
            98 => self.kill_before_journal(k),
            _ => settled(&self.disk),
        }
        let usage = self.disk.usage();
        assert!(usage.high_water_bytes <= DISK_BYTES, "seed {}: {usage:?}", self.seed);
        assert!(taken(self.folder.path()) <= DISK_BYTES, "seed {}: {usage:?}", self.seed);
    }
}

/// How often a response was found, and how often a kill undid a change.
fn run(seed: u64, steps: usize) -> (u64, u64) {
    let mut model = Model::new(seed);
    for _ in 0..steps {
        model.step();
    }
    model.check_all();
    model.reopen(true);
    model.check_all();
    (model.found, model.undone)
}

#[test]
fn nothing_wrong_and_nothing_old_is_ever_found() {
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(1..=6, |seed| seed..=seed);
    let runs = seeds.map(|seed| run(seed, 400));
    let (found, undone) = runs.fold((0, 0), |all, run| (all.0 + run.0, all.1 + run.1));
    assert!(found > 100, "only {found} were found at all");
    assert!(undone > 0, "no kill came between an entry and its write");
}

#[test]
fn a_copy_taken_while_it_is_written_to_holds_nothing_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), 64 * MIB);
    let mut dice = Dice(77);
    for round in 0..12 {
        let gone = 1000 + round;
        disk.put(object(gone, round + 1, inline(gone, 500))).unwrap();
        settled(&disk);
        disk.invalidate(&disk.address(&key(gone)), round + 2);
        for k in 0..400 {
            // A queue that is full costs this test nothing.
            let _ = disk.put(object(k, round + 2, inline(k, 3000 + k as usize)));
        }
        wait(|| disk.shared.queue.bytes() < 400_000 - dice.below(400_000) + 20_000);
        let copied = tempfile::tempdir().unwrap();
        copy(folder.path(), copied.path());
        let other = open(copied.path(), 64 * MIB);
        let mut found = 0;
        for k in 0..400 {
            if let Some((_, content)) = look(&other, k) {
                assert_eq!(content, bytes_of(k, 3000 + k as usize));
                found += 1;
            }
        }
        // All but what waits: that is there no more as it was before.
        assert!(round == 0 || found > 200, "{found} in round {round}");
        assert_eq!(look(&other, gone), None, "round {round}");
        other.close();
    }
}
