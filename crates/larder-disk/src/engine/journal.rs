//! The journal: what leaves the index for good is written down in order, without waiting for the disk.
//!
//! In: entries, from any thread. They are collected in memory, also under locks of memory's, and go to the file by one
//! `write` as soon as those are released ([`Journal::write`]): then they are in the page cache and survive the process.
//! [`Journal::sync`] makes them survive the machine. A process that is killed in between has told nobody of them. Entries that cannot be written (no room, a
//! failing disk) are kept for a while, and nobody is told that they are durable.
//!
//! When the file is long, the writer compacts it: from then on entries go to a new generation ([`Journal::turn`]), tables
//! are written anew from the index, and then the old generations go ([`Journal::drop_old`]). What is still needed of them is written to a
//! generation of its own, which nobody else writes to, under no lock. It has its name once it is whole. Both orders of loss are
//! harmless: while old and new generations are there, an entry is only said twice.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::journal::{JOURNAL_HEAD_BYTES, JournalEntry, JournalHead, read_entries};
use super::health::Health;
use super::space::Space;
use super::sys::{self, Existing};
use larder_tier::budget::Reservation;
use larder_tier::rank::{Rank, RankedMutex};

/// A journal longer than this is compacted, on all but tiny disks.
const LONG_BYTES: u64 = 1 << 20;
/// Room is reserved in steps of this.
const ROOM_STEP_BYTES: u64 = 64 * 1024;
/// Entries that could not be written are kept up to so many bytes.
const BACKLOG_BYTES_MAX: usize = 1 << 20;
/// What is needed of old generations is encoded and written in slices of this.
const SLICE_BYTES: usize = 256 * 1024;
/// So much of it is written before that has to be on the disk.
const SYNC_EVERY_BYTES: u64 = 8 << 20;

/// Files, and how much of each counts, in bytes.
pub(super) type JournalFiles = Vec<(Arc<File>, u64)>;

/// A file of the journal.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) number: u32,
    pub(super) file: Arc<File>,
    pub(super) room: Reservation,
    pub(super) length: u64,
    pub(super) is_synced: bool,
}

#[derive(Debug)]
struct State {
    now: Generation,
    /// Those before, oldest first, that are still needed.
    old: Vec<Generation>,
    /// Encoded entries that could not be written.
    backlog: Vec<u8>,
    /// Entries were lost; compaction makes good for them.
    has_lost: bool,
    /// The same of those before the last turn: the old ones cannot go before they are made good for. Until then nobody is told
    /// that anything is durable.
    had_lost: bool,
    /// Much of it is not needed any more: compaction is due whatever its length.
    is_stock_due: bool,
    /// Compaction is due above this length.
    long_bytes: u64,
}

/// The journal of a disk. The lock of the files is held for one `write`, and the lock of the collected entries never for a
/// system call. Where both are held, the second is taken inside the first: entries are written in the order of their
/// arrival.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    disk: u64,
    /// Compaction is due above this, where not more than half of it is needed anyway.
    long_bytes: u64,
    collected: RankedMutex<Collected>,
    /// Up to which number of [`Collected`] all is written.
    written: AtomicU64,
    state: RankedMutex<State>,
}

/// Which lost entries stand against a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    AtAnyTime,
    /// Those before are made good for by what is about to take the place of the old generations.
    SinceTurn,
}

/// What one sync brings to the disk.
#[derive(Debug)]
struct Unsynced {
    /// The old generations, to which nothing is added any more: when they are synced, they are so for good.
    old: Vec<Arc<File>>,
    /// The one that takes entries. More may come while it is synced, also as the last before a turn, so that this says nothing of
    /// it once it is old itself.
    now: Arc<File>,
}

/// What is to be written.
#[derive(Debug, Default)]
struct Collected {
    /// Encoded entries.
    bytes: Vec<u8>,
    /// How often entries came.
    number: u64,
}

/// The name of a generation's file.
pub(super) fn path(folder: &Path, generation: u32) -> PathBuf {
    folder.join(format!("{generation:08x}.journal"))
}

/// The same while it is not whole; a crash may leave it behind.
fn unfinished(folder: &Path, generation: u32) -> PathBuf {
    path(folder, generation).with_extension("journal.new")
}

/// Makes the file of a generation, with its head on the disk.
pub(super) fn create(folder: &Path, disk: u64, number: u32, space: &Space) -> io::Result<Generation> {
    let room = space.reserve(ROOM_STEP_BYTES).ok_or(io::ErrorKind::StorageFull)?;
    let file = sys::make(&path(folder, number), Existing::Emptied)?;
    sys::write_at(&file, &JournalHead { disk, generation: number }.write(), 0)?;
    sys::sync(&file)?;
    space.sync_folder()?;
    let length = JOURNAL_HEAD_BYTES as u64;
    Ok(Generation { number, file: Arc::new(file), room, length, is_synced: true })
}

impl Journal {
    /// A journal that goes on in the generation that is named first, and begins with those named second.
    pub(super) fn new(
        folder: &Path,
        disk: u64,
        (now, old): (Generation, Vec<Generation>),
        space: &Space,
    ) -> Self {
        let (_, cap, _) = space.figures();
        let long_bytes = LONG_BYTES.min(cap / 256).max(16 * 1024);
        let state = State {
            now,
            old,
            backlog: Vec::new(),
            has_lost: false,
            had_lost: false,
            is_stock_due: false,
            long_bytes,
        };
        Self {
            folder: folder.to_owned(),
            disk,
            long_bytes,
            collected: RankedMutex::default(),
            written: AtomicU64::new(0),
            state: RankedMutex::new(Rank::Journal, state),
        }
    }

    /// Takes entries, which [`Journal::write`] writes down: a plain call, for use under any lock.
    pub(super) fn collect(&self, entries: &[JournalEntry]) {
        let mut collected = self.collected.lock();
        collected.number += 1;
        entries.iter().for_each(|entry| entry.write(&mut collected.bytes));
    }

    /// Writes down what was collected before this call. Never waits for the disk; what cannot be written is kept for later.
    pub(super) fn write(&self, space: &Space, health: &Health) {
        let number = self.collected.lock().number;
        // Another thread may have taken them and be about to write them: then that is waited for.
        if self.written.load(Ordering::Acquire) < number {
            self.write_into(&mut self.state.lock(), space, health);
        }
    }

    fn write_into(&self, state: &mut State, space: &Space, health: &Health) {
        // Taken under the lock of the files: who comes later has later entries.
        let (bytes, number) = {
            let mut collected = self.collected.lock();
            (std::mem::take(&mut collected.bytes), collected.number)
        };
        state.write(&bytes, space, health);
        self.written.store(number, Ordering::Release);
    }

    /// Makes what was appended before this call durable.
    ///
    /// # Errors
    /// Where the disk fails, or entries are missing.
    pub(super) fn sync(&self, space: &Space, health: &Health) -> io::Result<()> {
        self.sync_unless(Lost::AtAnyTime, space, health)
    }

    /// The same, where only those that are missing count which were lost then.
    fn sync_unless(&self, lost: Lost, space: &Space, health: &Health) -> io::Result<()> {
        let unsynced = self.unsynced(lost, space, health)?;
        for file in unsynced.old.iter().chain([&unsynced.now]) {
            if let Err(error) = sys::sync(file) {
                // What the kernel could not write it forgets; asking again would be answered with "done".
                self.note_lost();
                return Err(error);
            }
        }
        self.note_synced(&unsynced);
        Ok(())
    }

    /// Writes down what was collected, and says which files are to be synced for all of it to be durable.
    fn unsynced(&self, lost: Lost, space: &Space, health: &Health) -> io::Result<Unsynced> {
        let mut state = self.state.lock();
        self.write_into(&mut state, space, health);
        let had_lost = state.had_lost && lost == Lost::AtAnyTime;
        if state.has_lost || had_lost || !state.backlog.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let old = state.old.iter().filter(|old| !old.is_synced).map(|old| Arc::clone(&old.file)).collect();
        Ok(Unsynced { old, now: Arc::clone(&state.now.file) })
    }

    fn note_synced(&self, synced: &Unsynced) {
        let mut state = self.state.lock();
        for old in &mut state.old {
            old.is_synced |= synced.old.iter().any(|file| Arc::ptr_eq(file, &old.file));
        }
    }

    /// Whether it has to be compacted.
    pub(super) fn is_long(&self) -> bool {
        let state = self.state.lock();
        state.has_lost || state.had_lost || state.is_stock_due || state.now.length > state.long_bytes
    }

    /// Whether it was asked for stock that was not taken yet.
    pub(super) fn is_stock_due(&self) -> bool {
        self.state.lock().is_stock_due
    }

    /// Bytes of all generations.
    pub(super) fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.now.length + state.old.iter().map(|old| old.length).sum::<u64>()
    }

    /// From now on entries go to a new generation. What could not be written goes there first. Gives the files of the
    /// old ones, and whether entries were lost up to here. Where some were, syncing fails until the old ones are dropped.
    pub(super) fn turn(&self, space: &Space, health: &Health) -> io::Result<(JournalFiles, bool)> {
        // The one in between is for what is needed of the old ones.
        let number = self.state.lock().now.number + 2;
        // Made outside of the lock: it waits for the disk. Only the writer's thread turns.
        let next = create(&self.folder, self.disk, number, space)?;
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.now, next);
        state.old.push(Generation { is_synced: false, ..before });
        state.is_stock_due = false;
        // What was lost up to here the index knows, and tables will. For notes one stands that names everything.
        state.had_lost |= std::mem::take(&mut state.has_lost);
        self.write_into(&mut state, space, health);
        Ok((state.old.iter().map(|old| (Arc::clone(&old.file), old.length)).collect(), state.had_lost))
    }

    /// Notes that entries were lost: it has to be compacted.
    pub(super) fn note_lost(&self) {
        self.state.lock().has_lost = true;
    }

    /// Has it compacted soon.
    pub(super) fn ask_for_stock(&self) {
        self.state.lock().is_stock_due = true;
    }

    /// Does away with the old generations, once `entries`, which is all that is still needed of them, are durable in a generation of
    /// their own. On the writer's thread, as [`Journal::turn`].
    pub(super) fn drop_old(
        &self,
        entries: impl IntoIterator<Item = JournalEntry>,
        space: &Space,
        health: &Health,
    ) -> io::Result<()> {
        let number = self.state.lock().now.number - 1;
        let written = self.write_needed(number, entries, space);
        let synced = written.and_then(|needed| {
            self.sync_unless(Lost::SinceTurn, space, health)?;
            sys::rename(&unfinished(&self.folder, number), &path(&self.folder, number))?;
            // Segments that were removed must not come back either.
            space.sync_folder()?;
            Ok(needed)
        });
        let needed = synced.inspect_err(|_| {
            // Nobody counts the room that it takes. Where it stays it says nothing that is wrong.
            let _ = sys::remove(&unfinished(&self.folder, number));
            let _ = sys::remove(&path(&self.folder, number));
        })?;
        let old = {
            let mut state = self.state.lock();
            // As much as is needed anyway has to come before the next turn.
            state.long_bytes = self.long_bytes.max(needed.length);
            state.had_lost = false;
            std::mem::replace(&mut state.old, vec![needed])
        };
        for old in old {
            sys::remove(&path(&self.folder, old.number))?;
        }
        Ok(())
    }

    /// Makes a generation of these entries, on the disk and without its name.
    fn write_needed(
        &self,
        number: u32,
        entries: impl IntoIterator<Item = JournalEntry>,
        space: &Space,
    ) -> io::Result<Generation> {
        let file = sys::make(&unfinished(&self.folder, number), Existing::Emptied)?;
        let mut room = space.reserve(0).ok_or(io::ErrorKind::StorageFull)?;
        let (mut length, mut unsynced) = (0, 0);
        let mut write = |bytes: &mut Vec<u8>| {
            room.absorb(space.reserve(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?);
            sys::write_at(&file, bytes, length)?;
            length += bytes.len() as u64;
            unsynced += bytes.len() as u64;
            bytes.clear();
            if unsynced >= SYNC_EVERY_BYTES {
                unsynced = 0;
                sys::sync(&file)?;
            }
            io::Result::Ok(())
        };
        let mut bytes = JournalHead { disk: self.disk, generation: number }.write();
        for entry in entries {
            entry.write(&mut bytes);
            if bytes.len() >= SLICE_BYTES {
                write(&mut bytes)?;
            }
        }
        write(&mut bytes)?;
        sys::sync(&file)?;
        Ok(Generation { number, file: Arc::new(file), room, length, is_synced: true })
    }

    /// The entries of a file of it, and whether some are missing among them.
    pub(super) fn read(file: &File, length: u64) -> io::Result<(Vec<JournalEntry>, bool)> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(JOURNAL_HEAD_BYTES);
        let bytes = sys::read_up_to(file, length, JOURNAL_HEAD_BYTES as u64)?;
        let read = read_entries(&bytes);
        let is_short = read.end < length;
        Ok((read.entries, is_short || read.lost_up_to.is_some()))
    }
}

impl State {
    fn write(&mut self, bytes: &[u8], space: &Space, health: &Health) {
        let joined;
        let bytes = if self.backlog.is_empty() {
            bytes
        } else {
            self.backlog.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.backlog);
            &joined[..]
        };
        if bytes.is_empty() {
            return;
        }
        match self.try_write(bytes, space) {
            Ok(()) => {}
            Err(error) => {
                if error.kind() != io::ErrorKind::StorageFull {
                    health.failed("cannot write the journal", &error);
                }
                if bytes.len() > BACKLOG_BYTES_MAX {
                    self.has_lost = true;
                } else {
                    self.backlog = bytes.to_vec();
                }
            }
        }
    }

    fn try_write(&mut self, bytes: &[u8], space: &Space) -> io::Result<()> {
        let end = self.now.length + bytes.len() as u64;
        if end > self.now.room.bytes() {
            let more = (end - self.now.room.bytes()).next_multiple_of(ROOM_STEP_BYTES);
            self.now.room.absorb(space.reserve(more).ok_or(io::ErrorKind::StorageFull)?);
        }
        sys::write_at(&self.now.file, bytes, self.now.length)?;
        self.now.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
