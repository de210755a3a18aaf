//! The one thread that changes the directory.
//!
//! In: the queue. Out: files with their names, and room made for them by taking others away. One thread, because the order
//! of what is stored and what is removed is the order in which it was asked for, and nothing here has to be guarded
//! against itself. Room is reserved before a byte is written, for the whole body where its length is known. Data is
//! handed to the disk after every [`SYNC_EVERY_BYTES`], so that no storm of dirty pages gathers. Nothing here is seen by a
//! client: whatever fails, its response was served and is not stored.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::io::Errno;

use super::calls;
use super::directory::Directory;
use super::error::Refused;
use super::filling::{FillWork, Filling};
use super::index::IndexedFile;
use super::journal::Owed;
use super::meta::{Meta, lines_bytes_max};
use super::name::Name;
use super::place::{PlaceError, Placed, Spare, TakenOut};
use super::queue::FileJob;
use super::room::{self, Claim, DIRECTORY_BYTES, META_BYTES, beside_bytes};
use super::sys::{Status, is_absent, is_of_one_place};
use larder_tier::budget::Budget;

/// Bytes that may be written before all of them are handed to the disk.
const SYNC_EVERY_BYTES: u64 = 32 * 1024 * 1024;

/// What is reserved at a time for a body whose length nobody knows, in bytes.
const GROWTH_BYTES_MAX: u64 = 1024 * 1024;

/// Files evicted for one reservation beyond those that would have been enough, had nobody them open.
const EVICTED_IN_VAIN_MAX: u64 = 64;

/// Works until the queue is closed and empty.
pub(super) fn run(shared: &Directory) {
    let mut unsynced_bytes = 0;
    while let Some(job) = shared.queue.next() {
        match job {
            FileJob::Write(filling, bytes) => {
                unsynced_bytes += bytes.len() as u64;
                shared.write(&filling, &bytes);
            }
            FileJob::Finish(filling, meta, done) => {
                let finished = shared.finish(&filling, &meta);
                shared.count(&finished, &shared.base.counts.stored);
                done(finished);
            }
            FileJob::Renew(renewal, done) => {
                let renewed = shared.renew(&renewal);
                shared.count(&renewed, &shared.base.counts.renewed);
                done(renewed);
            }
            FileJob::Abandon(filling) => filling.give_up(&mut filling.work.lock()),
            FileJob::Remove(name, spare, done) => {
                let removed = shared.remove_now(&name, spare, done.is_some());
                shared.removed(&name, spare, &removed);
                if let Some(done) = done {
                    done(removed);
                }
            }
            FileJob::Run(run) => run(),
        }
        if unsynced_bytes >= SYNC_EVERY_BYTES {
            unsynced_bytes = 0;
            if !shared.tree.is_in_memory()
                && let Err(error) = calls::syncfs(shared.tree.root())
            {
                shared.base.health.fails("cannot write to the disk", &error.into());
            }
        }
    }
}

impl Directory {
    fn count(&self, outcome: &Result<(), Refused>, of_good: &AtomicU64) {
        let counter = if outcome.is_ok() { of_good } else { &self.base.counts.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = outcome {
            self.base.counts.refusals.note(why.reason());
        }
    }

    fn write(&self, filling: &Arc<Filling>, bytes: &Bytes) {
        let mut work = filling.work.lock();
        if filling.failure().is_none()
            && let Err(why) = self.write_piece(filling, &mut work, bytes)
        {
            filling.fail(why);
        }
        if filling.failure().is_some() {
            filling.give_up(&mut work);
        }
    }

    fn write_piece(&self, filling: &Filling, work: &mut FillWork, bytes: &Bytes) -> Result<(), Refused> {
        let name_len = filling.name.bytes().len();
        let end = work.written + bytes.len() as u64;
        let claimed = work.claim.as_ref().map_or(0, Claim::bytes);
        let needed = room::expected(filling.declared.unwrap_or(end).max(end), name_len);
        if claimed < needed || work.claim.is_none() {
            let ahead = if filling.declared.is_none() { claimed.min(GROWTH_BYTES_MAX) } else { 0 };
            let inodes = if work.claim.is_none() { 2 } else { 0 };
            let missing = needed - claimed;
            let more = self.make_room(missing + ahead, inodes).or_else(|| self.make_room(missing, inodes));
            work.claim.get_or_insert_default().absorb(more.ok_or(Refused::NoRoom)?);
        }
        let temp = match &mut work.temp {
            Some(temp) => temp,
            none => none.insert(self.tree.temp().map_err(|error| self.failed("cannot make a file", &error))?),
        };
        calls::write_all(&temp.file, bytes).map_err(|error| self.failed("cannot write", &error))?;
        work.written = end;
        if !bytes.is_empty() {
            filling.content.wrote(&temp.file);
        }
        Ok(())
    }

    fn finish(&self, filling: &Arc<Filling>, meta: &Meta) -> Result<(), Refused> {
        let mut work = filling.work.lock();
        let finished = self.put_in_place(filling, &mut work, meta);
        if finished.is_err() {
            filling.give_up(&mut work);
        }
        finished
    }

    fn put_in_place(&self, filling: &Filling, work: &mut FillWork, meta: &Meta) -> Result<(), Refused> {
        if let Some(why) = filling.failure() {
            return Err(why);
        }
        // Of a body without a byte nothing was written yet.
        self.write_piece(filling, work, &Bytes::new())?;
        // Room is given back behind the file that it is for.
        let mut claim = work.claim.take().unwrap_or_default();
        let temp = work.temp.take().ok_or(Refused::Incomplete)?;
        let look = || Status::of(&temp.file).map_err(|error| self.failed("cannot look at a file", &error));
        filling.content.name(look()?);
        let mut room = |path: &[u8]| {
            self.index.sees_directory(path)
                || self
                    .make_room(DIRECTORY_BYTES, 1)
                    .map(|claim| self.index.note_directory(path, claim))
                    .is_some()
        };
        let (name, uri) = (&filling.name, filling.uri.borrow());
        // Most meta is small, and room for that was reserved with the file.
        let large = beside_bytes(lines_bytes_max(&meta.fields, &uri)) - META_BYTES;
        if large > 0 {
            claim.absorb(self.make_room(large, 0).ok_or(Refused::NoRoom)?);
        }
        self.write_before_placing(name, meta)?;
        let placed = self.tree.put(&temp, name, &uri, meta, &mut room);
        let Placed { removed, beside } = placed.map_err(|error| self.not_placed(error))?;
        for name in &removed {
            self.index.forget(name);
        }
        let status = look()?;
        let taken = self.taken(&status, name, beside);
        if let Some(missing) = taken.checked_sub(claim.bytes()).filter(|missing| *missing > 0) {
            // The file system took more than it usually does; it is there, so it is counted.
            claim.absorb(self.make_room(missing, 0).unwrap_or_else(|| self.room.take(missing, 0)));
        }
        claim.shrink_to(taken, 1 + u64::from(beside > 0));
        self.index.forget(name);
        let noted = IndexedFile { inode: status.inode, bytes: taken, is_by_hand: false, is_use: false };
        filling.content.hold(self.index.note(name, &noted, || claim));
        self.noted.placed(name, meta.number);
        self.index.tidy();
        self.base.health.works();
        Ok(())
    }

    /// What the next start has to know before it finds a file, or new meta of one: a number that none of its own may have, and
    /// an invalidation that came during the fetch.
    pub(super) fn write_before_placing(&self, name: &Name, meta: &Meta) -> Result<(), Refused> {
        let overtaken = self.noted.overtaken(name, meta.number);
        let is_written = match overtaken {
            Some(number) => {
                self.journal.note_name(name, number, Owed::No);
                self.journal.sync()
            }
            None => true,
        };
        (is_written && self.journal.reach(meta.number)).then_some(()).ok_or(Refused::Failing)
    }

    /// Why a file, or new meta, is not where it should be.
    pub(super) fn not_placed(&self, error: PlaceError) -> Refused {
        match error {
            PlaceError::InTheWay => Refused::InTheWay,
            PlaceError::NoRoom => Refused::NoRoom,
            PlaceError::Outdated => Refused::Changed,
            PlaceError::Io(error) if is_of_one_place(&error) => Refused::InTheWay,
            PlaceError::Io(error) => self.failed("cannot put a file in its place", &error),
        }
    }

    /// What a file takes that was found: bytes and inodes.
    pub(super) fn found_to_take(&self, status: &Status, name: &Name) -> (u64, u64) {
        let beside = if self.tree.has_attributes() { 0 } else { META_BYTES };
        (self.taken(status, name, beside), 1 + u64::from(beside > 0))
    }

    /// What a file takes whose meta takes so much in a file of its own.
    pub(super) fn taken(&self, status: &Status, name: &Name, beside: u64) -> u64 {
        room::taken(status, name.bytes().len()) + beside
    }

    pub(super) fn failed(&self, step: &str, error: &io::Error) -> Refused {
        self.base.health.fails(step, error);
        match Errno::from_io_error(error) {
            Some(Errno::NOSPC | Errno::DQUOT) => Refused::NoRoom,
            _ => Refused::Failing,
        }
    }

    /// Reserves room, by evicting where there is none. What is evicted and still open gives back nothing yet: where much was
    /// evicted for nothing there is no room.
    pub(super) fn make_room(&self, bytes: u64, inodes: u64) -> Option<Claim> {
        if bytes > self.room.bytes.cap() {
            return None;
        }
        let (mut evicted_bytes, mut evicted) = (0, 0);
        loop {
            if let Some(claim) = self.room.reserve(bytes, inodes) {
                return Some(claim);
            }
            let over = self.room.bytes.used().saturating_sub(self.room.bytes.cap());
            if evicted > EVICTED_IN_VAIN_MAX && evicted_bytes > bytes.saturating_mul(2).saturating_add(over) {
                return None;
            }
            evicted_bytes += self.evict_one()?;
            evicted += 1;
        }
    }

    /// Removes the file that is next; what it took. `None` where nothing is left that may go.
    pub(super) fn evict_one(&self) -> Option<u64> {
        let candidates = self.index.files().saturating_add(1);
        for _ in 0..candidates {
            let name = self.index.victim()?;
            let bytes = self.index.bytes(&name);
            match self.remove_now(&name, Spare::ByHand, false) {
                Ok(TakenOut::Removed) => {
                    self.base.counts.evicted.fetch_add(1, Ordering::Relaxed);
                    return Some(bytes);
                }
                Ok(TakenOut::Absent | TakenOut::Spared) => {}
                Err(_) => {
                    self.index.spare(&name);
                    return None;
                }
            }
        }
        None
    }

    /// Evicts what is over the caps: others have written, or the caps were lowered.
    pub(super) fn evict_surplus(&self) {
        let is_over = |budget: &Budget| budget.used() > budget.cap();
        for _ in 0..self.index.files() {
            if !(is_over(&self.room.bytes) || is_over(&self.room.inodes)) || self.evict_one().is_none() {
                return;
            }
        }
    }

    /// Removes a file and what is empty without it. `sync`: for good, also after a crash.
    pub(super) fn remove_now(&self, name: &Name, spare: Spare, sync: bool) -> io::Result<TakenOut> {
        let removed = match self.tree.remove(name, spare, sync) {
            Err(error) if is_absent(&error) => Ok(TakenOut::Absent),
            Err(error) if spare == Spare::ByHand && is_of_one_place(&error) => Ok(TakenOut::Spared),
            removed => removed,
        };
        match &removed {
            Ok(TakenOut::Removed | TakenOut::Absent) => {
                self.index.forget(name);
                self.noted.gone(name);
                self.tree.prune(name, &mut |path| self.index.forget_directory(path));
            }
            Err(error) if !is_of_one_place(error) => self.base.health.fails("cannot remove a file", error),
            Ok(TakenOut::Spared) | Err(_) => {}
        }
        removed
    }
}
