//! What changes a disk: objects and pieces go in, objects go out, and the journal hears of it.
//!
//! Called from event loops, so nothing here waits: what is to be written goes to the queue or is refused, and the
//! journal takes a `write` of a few bytes, behind every lock of memory's. The order is always the same: first the index, then
//! the tables are out of date, then the journal; journal compaction, which goes the other way, then misses nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use smallvec::SmallVec;

use super::address::Owner;
use super::address::{Address, Location};
use super::error::{DiskError, Refused};
use super::format::journal::JournalEntry;
use super::format::record::PIECE_BYTES_MAX;
use super::format::record::{HEADER_BYTES, PIECE_REF_BYTES};
use super::index::Locations;
use super::object::{INLINE_BYTES_MAX, Object, RecordContent};
use super::piece::{Assembly, Piece};
use super::queue::{JOB_BYTES, RecordJob, WriteJob, WriteQueue};
use super::{Disk, DiskState};
use larder_tier::Note;

use larder_tier::CacheKey;

impl DiskState {
    /// Writes down what the journal has collected: behind every lock, and before anybody is told.
    pub(super) fn write_journal(&self) {
        self.journal.write(&self.space, &self.health);
        if self.journal.is_long() {
            self.queue.call();
        }
    }

    /// Counts a record out that left the index for good, and writes down that it did. Where it was not written yet, so
    /// is what it had replaced; where it is being written, so is where it will be.
    pub(super) fn remove_for_good(&self, place: Location) {
        let to_come = self.in_flight.of(place);
        let written = match place.is_pending() {
            true => self.replaced.before(place),
            false => Some(place),
        };
        if !place.is_pending() {
            self.segments.count_out(place.segment(), false);
        }
        self.bury(&written.into_iter().chain(to_come).collect::<Locations>());
        if place.is_pending() {
            self.replaced.forget(place);
        }
    }

    /// Counts out what `pending` took the place of in the index, and writes down that it is dead. The record of `pending` would say
    /// so too, but is not in the file yet, and clients get the new response meanwhile: after a kill they must not get the one
    /// before.
    fn bury_replaced(&self, before: Location, pending: Location) {
        let to_come = self.in_flight.of(before);
        if !before.is_pending() {
            self.segments.count_out(before.segment(), false);
        }
        // Where that one was not written either, who put it in may not have come to name what it had replaced itself.
        let written = self.replaced.before(pending);
        self.bury(&written.into_iter().chain(to_come).collect::<Locations>());
    }

    /// Writes down that what lies, or will lie, at these places is dead.
    fn bury(&self, places: &[Location]) {
        if places.is_empty() {
            return;
        }
        let bury = |place: &Location| {
            self.segments.note_death(place.segment());
            JournalEntry::Removed { place: place.0 }
        };
        self.journal.collect(&places.iter().map(bury).collect::<SmallVec<[_; 2]>>());
    }

    /// Writes the record of an object once more that is at a place already; it stays there until that is done, and `again` is
    /// held as long.
    ///
    /// # Errors
    /// As [`Disk::put`].
    pub(super) fn put_again(
        &self,
        object: Object,
        (base, tag, pending): (u64, u32, Location),
        again: Arc<()>,
    ) -> Result<(), Refused> {
        let list = match &object.content {
            RecordContent::Inline(parts) => parts.iter().map(Bytes::len).sum(),
            RecordContent::Pieces(pieces) => size_of_val(&pieces[..]),
        };
        let key = object.key.base().len() + object.key.variant().len();
        let cost = (key + object.head.len() + list) as u64 + JOB_BYTES;
        if self.health.is_failing() {
            return Err(Refused::Failing);
        }
        self.queue.admit_again(cost)?;
        let again = Some(again);
        let job = RecordJob { object, base, tag, pending, replaces: false, again, cost };
        self.enqueue(WriteJob::Record(Box::new(job)));
        Ok(())
    }

    pub(super) fn note_number(&self, number: u64) {
        self.highest.fetch_max(number, Ordering::Relaxed);
    }

    /// Hands what was admitted to the writer; where that has ended meanwhile, it is lost.
    pub(super) fn enqueue(&self, job: WriteJob) {
        if let Some(job) = self.queue.push(job) {
            self.lose_job(&job, Refused::Closed);
        }
    }

    /// Whether anything may be written at this moment; a refusal is counted.
    fn admit(&self, into: impl FnOnce(&WriteQueue) -> Result<(), Refused>) -> Result<(), Refused> {
        self.try_admit(into).map_err(|why| self.counts.refuse(why))
    }

    fn try_admit(&self, into: impl FnOnce(&WriteQueue) -> Result<(), Refused>) -> Result<(), Refused> {
        if self.health.is_failing() && self.health.pause().is_some() {
            return Err(Refused::Failing);
        }
        if self.health.is_without_room() {
            return Err(Refused::NoRoom);
        }
        into(&self.queue)
    }
}

/// The right to put a piece into the queue of a disk; given back on drop.
#[derive(Debug)]
pub(crate) struct Admitted {
    shared: Arc<DiskState>,
    cost: u64,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.cost > 0 {
            self.shared.queue.give_back(self.cost);
        }
    }
}

impl Disk {
    /// Stores an object; returns at once. It is found as soon as it is written. One of the same key and identity
    /// goes, also where the new one is refused or lost later: a store never goes back to what came before.
    ///
    /// # Errors
    /// Where the queue is full, the disk failing or without room, or the object too large.
    pub fn put(self: &Arc<Self>, object: Object) -> Result<Location, Refused> {
        let put = self.take_in(object);
        self.write_journal();
        put
    }

    /// The same for use under a lock: [`Disk::write_journal`] is to be called behind it.
    ///
    /// # Errors
    /// As [`Disk::put`].
    pub(crate) fn take_in(self: &Arc<Self>, object: Object) -> Result<Location, Refused> {
        let shared = &self.shared;
        let at = self.address(&object.key);
        let (base, tag) = (at.base, at.tag(object.identity));
        let admitted = self.admit_object(&object);
        let cost = match admitted {
            Ok(cost) => cost,
            Err(why) => {
                if let Some(old) = shared.index.remove_tag(base, tag) {
                    shared.remove_for_good(old);
                }
                return Err(why);
            }
        };
        shared.note_number(object.number);
        let pending = Location::pending(shared.last_pending.fetch_add(1, Ordering::Relaxed) + 1);
        let (seconds, mut surplus) = (shared.seconds(), Locations::new());
        let note = |before| shared.replaced.note(pending, before);
        let replaced = shared.index.insert_pending(base, tag, pending, seconds, note, &mut surplus);
        surplus.into_iter().for_each(|place| shared.remove_for_good(place));
        if let Some(before) = replaced {
            shared.bury_replaced(before, pending);
        }
        let replaces = replaced.is_some();
        let job = Box::new(RecordJob { object, base, tag, pending, replaces, again: None, cost });
        match &job.object.content {
            RecordContent::Inline(_) => shared.enqueue(WriteJob::Record(job)),
            RecordContent::Pieces(pieces) => {
                let (pieces, weak) = (pieces.clone(), Arc::downgrade(shared));
                Assembly::await_all(&pieces, move |is_whole| {
                    let Some(shared) = weak.upgrade() else { return };
                    match is_whole {
                        true => shared.enqueue(WriteJob::Record(job)),
                        // On another disk's thread, or under a lock: the writer of this one writes it down.
                        false => {
                            shared.lose(&job, Refused::PieceLost);
                            shared.queue.call();
                        }
                    }
                });
            }
        }
        Ok(pending)
    }

    /// What an object costs the queue, if it is let in.
    fn admit_object(&self, object: &Object) -> Result<u64, Refused> {
        let shared = &self.shared;
        let (content, is_right, in_memory) = match &object.content {
            RecordContent::Inline(parts) => {
                let length: usize = parts.iter().map(Bytes::len).sum();
                (length, length <= INLINE_BYTES_MAX, length)
            }
            RecordContent::Pieces(pieces) => {
                let is_lost = pieces.iter().any(Piece::is_lost);
                if is_lost {
                    return Err(shared.counts.refuse(Refused::PieceLost));
                }
                (pieces.len() * PIECE_REF_BYTES, true, size_of_val(&pieces[..]))
            }
        };
        let key = object.key.base().len() + object.key.variant().len();
        let total = (HEADER_BYTES + key + object.head.len() + content) as u64;
        if !is_right || total > shared.record_bytes_max {
            return Err(shared.counts.refuse(Refused::TooLarge));
        }
        let cost = (key + object.head.len() + in_memory) as u64 + JOB_BYTES;
        let admitted = match &object.content {
            RecordContent::Inline(_) => shared.admit(|queue| queue.admit(cost)),
            RecordContent::Pieces(_) => shared.admit(|queue| queue.admit_list(cost)),
        };
        admitted.map(|()| cost)
    }

    /// Writes a piece of a large content, at most [`PIECE_BYTES_MAX`]; returns at once. A piece that nobody holds any more
    /// when its turn comes is not written.
    ///
    /// # Errors
    /// Where the queue is full, the disk failing or without room, or the piece too large.
    pub fn put_piece(self: &Arc<Self>, key: &CacheKey, bytes: Bytes) -> Result<Piece, Refused> {
        self.put_piece_of(self.owner(key), bytes)
    }

    /// The same for an object whose record may lie on another disk.
    ///
    /// # Errors
    /// As [`Disk::put_piece`].
    pub(crate) fn put_piece_of(self: &Arc<Self>, owner: Owner, bytes: Bytes) -> Result<Piece, Refused> {
        let admitted = self.admit_piece(bytes.len()).map_err(|why| self.shared.counts.refuse(why))?;
        Ok(self.put_admitted(owner, bytes, admitted))
    }

    /// Counts a piece of so many bytes in, if it is taken at this moment. A refusal is not counted.
    pub(crate) fn admit_piece(self: &Arc<Self>, bytes: usize) -> Result<Admitted, Refused> {
        if bytes > PIECE_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let cost = bytes as u64 + JOB_BYTES;
        self.shared.try_admit(|queue| queue.admit(cost))?;
        Ok(Admitted { shared: Arc::clone(&self.shared), cost })
    }

    /// Writes a piece that was counted in; as [`Disk::put_piece`].
    pub(crate) fn put_admitted(&self, owner: Owner, bytes: Bytes, mut admitted: Admitted) -> Piece {
        let piece = Piece::queued(self.id(), bytes);
        let cost = std::mem::take(&mut admitted.cost);
        self.shared.enqueue(WriteJob::Piece { owner, piece: piece.clone(), cost });
        piece
    }

    /// Counts a piece that was left out because the disk does not keep up.
    pub(crate) fn count_left_out(&self) {
        self.shared.counts.refuse(Refused::QueueFull);
    }

    /// Takes one response out; written down without waiting.
    pub fn remove(&self, at: &Address, place: Location) {
        if self.shared.index.remove(at.base, place) {
            self.shared.remove_for_good(place);
            self.shared.write_journal();
        }
    }

    /// Writes down what was taken out or replaced before this call, without waiting for the disk. Not under a lock of memory's.
    pub(crate) fn write_journal(&self) {
        self.shared.write_journal();
    }

    /// Takes everything under a base out, whatever its variant, and says how much that was; written down without waiting.
    /// What was stored with a smaller number does not come back at a restart.
    pub fn invalidate(&self, at: &Address, number: u64) -> u64 {
        let gone = self.take_out(at, number);
        self.write_journal();
        gone
    }

    /// The same for use under a lock: [`Disk::write_journal`] is to be called behind it.
    pub(crate) fn take_out(&self, at: &Address, number: u64) -> u64 {
        let shared = &self.shared;
        shared.note_number(number);
        let gone = shared.index.remove_base(at.base);
        for place in &gone {
            // Tables are out of date before the journal says why, so that a compaction in between misses nothing.
            match place.is_pending() {
                true => shared.replaced.before(*place).into_iter().for_each(|before| {
                    shared.segments.note_death(before.segment());
                }),
                false => shared.segments.count_out(place.segment(), true),
            }
        }
        shared.journal.collect(&[JournalEntry::Invalidated { base: at.base, number }]);
        gone.iter().filter(|place| place.is_pending()).for_each(|place| shared.replaced.forget(*place));
        gone.len() as u64
    }

    /// Writes a predicate of the caller's down; it is among [`Disk::notes`] at the next start. One of more than 16 KiB stands
    /// for everything with a smaller number.
    pub fn note(&self, note: &Note) {
        self.shared.note_number(note.number);
        self.shared.journal.collect(&[JournalEntry::Note(note.clone().bounded())]);
        self.shared.write_journal();
    }

    /// The notes that were found when the disk was opened, in the order of their numbers. Handed out once.
    pub fn notes(&self) -> Vec<Note> {
        std::mem::take(&mut *self.notes.lock())
    }

    /// Shows them, and keeps them to be handed out.
    pub(crate) fn show_notes(&self, look: &mut dyn FnMut(u64, &[Note])) {
        let notes = self.notes();
        look(self.last_number(), &notes);
        *self.notes.lock() = notes;
    }

    /// Makes everything durable that was taken out or noted before this call.
    ///
    /// # Errors
    /// Where the disk fails, or the journal had no room: then it may come back at a restart.
    ///
    /// # Cancel safety
    /// The journal is synced all the same.
    pub async fn sync_journal(self: &Arc<Self>) -> Result<(), DiskError> {
        match self.shared.pool.ask_sync().await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::StorageFull => {
                Err(DiskError::JournalLacks(self.path().to_owned()))
            }
            Ok(Err(error)) => Err(DiskError::io("cannot sync the journal of", self.path())(error)),
            Err(_) => Err(DiskError::Closed(self.path().to_owned())),
        }
    }
}
