//! The engine for one disk: a log of segments, a journal, and an index in memory.
//!
//! In: objects (a key, a head, a content) and pieces of large contents. Out: places to look at, what is read there after
//! every byte was checked, and figures. Nothing here waits for a disk but the threads of the disk itself: a writer, and a
//! pool that reads. [`Disk::put`] and [`Disk::put_piece`] go to a bounded queue or are refused; [`Disk::read_now`] reads what
//! the page cache has.
//!
//! Deliberately absent: HTTP, layouts over several disks, memory in front. Why it is built so is in
//! docs/design/disk-store.md.

mod address;
mod error;
mod format;
mod fsck;
mod heads;
mod health;
mod index;
mod journal;
mod layouts;
mod object;
mod piece;
mod pool;
mod queue;
mod reads;
mod recover;
mod segment;
mod settings;
mod space;
mod sys;
mod usage;
mod walk;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use larder_http::time::{Clock, Now};
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use address::{Address, Place};
pub use error::{DiskError, ReadError, Refused};
pub use fsck::{Report, fsck};
pub use heads::RecordHead;
pub use health::DiskEvent;
pub use index::{Cursor, Listing, NoCursor, Places};
pub use object::{Content, Found, FoundContent, INLINE_BYTES_MAX, Object};
pub use piece::{PIECE_BYTES_MAX, Piece, Pin};
pub use recover::Finding;
pub use settings::{DISK_BYTES_MIN, DiskSettings, DiskSize};
pub use usage::{DiskUsage, RefusedCounts};

use format::journal::{Entry as JournalEntry, NOTE_BYTES_MAX};
use format::record::{HEADER_BYTES, PIECE_REF_BYTES};
use format::superblock::Superblock;
use health::Health;
use index::Index;
use journal::Journal;
use piece::{Assembly, Now as PieceNow};
use pool::{Ask, Pool};
use queue::{JOB_BYTES, Job, Queue, RecordJob};
use reads::Waiting;
use segment::Segments;
use space::Space;
use sys::ReadMode;
use usage::Counts;

use crate::key::CacheKey;

/// How long closing waits for what is still to be written.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// One disk. Shared by all workers; every method may be called from any of them.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
    findings: Vec<Finding>,
    notes: Mutex<Vec<(u64, Vec<u8>)>>,
}

/// What the disk's own threads and its callers share.
#[derive(Debug)]
struct Shared {
    settings: DiskSettings,
    superblock: Superblock,
    /// The superblock's file; the lock goes with it.
    _lock: std::fs::File,
    segment_bytes: u64,
    record_bytes_max: u64,
    read_mode: ReadMode,
    index: Index,
    segments: Segments,
    space: Space,
    queue: Queue,
    journal: Journal,
    pool: Pool,
    health: Health,
    counts: Counts,
    clock: Clock,
    opened: Now,
    is_zeroing: AtomicBool,
    last_segment: AtomicU32,
    last_pending: AtomicU64,
    highest: AtomicU64,
}

impl Shared {
    /// Seconds since the disk was opened: what use is noted in.
    fn seconds(&self) -> u32 {
        u32::try_from(self.clock.now().since(&self.opened).as_secs()).unwrap_or(u32::MAX)
    }

    fn journal(&self, entries: &[JournalEntry]) {
        self.journal.append(entries, &self.space, &self.health);
        if self.journal.is_long() {
            self.queue.call();
        }
    }

    /// Counts a written record out that left the index for good, and writes down that it did.
    fn remove_for_good(&self, place: Place) {
        if !place.is_pending() {
            self.segments.count_out(place.segment(), true);
            self.journal(&[JournalEntry::Removed { place: place.0 }]);
        }
    }

    fn note_number(&self, number: u64) {
        self.highest.fetch_max(number, Ordering::Relaxed);
    }

    /// Whether anything may be written at this moment.
    fn admit(&self, cost: u64) -> Result<(), Refused> {
        if self.health.is_failing() && self.health.pause().is_some() {
            return Err(self.counts.refuse(Refused::Failing));
        }
        if self.health.is_without_room() {
            return Err(self.counts.refuse(Refused::NoRoom));
        }
        self.queue.admit(cost).map_err(|why| self.counts.refuse(why))
    }
}

impl Disk {
    /// Opens a disk, or makes it. Waits for the disk; not for an event loop.
    ///
    /// # Errors
    /// Where the folder cannot be made, read, written or locked, where it is not larder's, or too small.
    pub fn open(settings: DiskSettings) -> Result<Arc<Self>, DiskError> {
        Self::open_with(settings, Clock::default())
    }

    /// The same with a clock of the caller's, by which `idle` is measured.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub fn open_with(settings: DiskSettings, clock: Clock) -> Result<Arc<Self>, DiskError> {
        let path = settings.path.clone();
        let recovered = recover::open(settings, clock)?;
        let shared = Arc::new(recovered.shared);
        let readers = pool::start(&shared).map_err(DiskError::io("cannot start threads for", &path))?;
        let writer = writer::start(&shared).map_err(DiskError::io("cannot start threads for", &path))?;
        Ok(Arc::new(Self {
            shared,
            writer: Mutex::new(Some(writer)),
            readers: Mutex::new(readers),
            findings: recovered.findings,
            notes: Mutex::new(recovered.notes),
        }))
    }

    /// Told apart from every other disk; the same at each start.
    pub fn id(&self) -> u64 {
        self.shared.superblock.disk
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.shared.settings.path
    }

    /// What was not as it should be when the disk was opened; for the log.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Where to look for `key` on this disk.
    pub fn address(&self, key: &CacheKey) -> Address {
        self.shared.superblock.seed.address_of(key)
    }

    /// The places of responses that may be under this key, in the order they were last written, the last first. Looks
    /// into memory only. Another key may hide behind the same hashes: [`Found::is_of`] tells.
    pub fn find(&self, at: &Address) -> Places {
        self.shared.index.find(at)
    }

    /// Whether a response is still in the index at this place.
    pub fn holds(&self, at: &Address, place: Place) -> bool {
        self.shared.index.holds(at.base, place)
    }

    /// Notes that a response was used: it gets another life when its segment is given up, and is not idle.
    pub fn note_use(&self, at: &Address, place: Place) {
        self.shared.index.note_use(at.base, place, self.shared.seconds());
    }

    /// Stores an object; returns at once. It is found as soon as it is written. One of the same key and identity
    /// goes, also where the new one is refused or lost later: a store never goes back to what came before.
    ///
    /// # Errors
    /// Where the queue is full, the disk failing or without room, or the object too large.
    pub fn put(self: &Arc<Self>, object: Object) -> Result<Place, Refused> {
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
        let pending = Place::pending(shared.last_pending.fetch_add(1, Ordering::Relaxed) + 1);
        let replaced = shared.index.insert_pending(base, tag, pending, shared.seconds());
        let replaced = replaced.filter(|place| !place.is_pending());
        if let Some(place) = replaced {
            shared.segments.count_out(place.segment(), false);
        }
        let job = Box::new(RecordJob { object, base, tag, pending, replaced, cost });
        match &job.object.content {
            Content::Inline(_) => shared.queue.push(Job::Record(job)),
            Content::Pieces(pieces) => {
                let (pieces, weak) = (pieces.clone(), Arc::downgrade(shared));
                Assembly::await_all(&pieces, move |is_whole| {
                    let Some(shared) = weak.upgrade() else { return };
                    match is_whole {
                        true => shared.queue.push(Job::Record(job)),
                        false => shared.lose(&job, Refused::PieceLost),
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
            Content::Inline(parts) => {
                let length: usize = parts.iter().map(Bytes::len).sum();
                (length, length <= INLINE_BYTES_MAX, length)
            }
            Content::Pieces(pieces) => {
                let is_lost = pieces.iter().any(|piece| matches!(piece.now(), PieceNow::Lost));
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
        shared.admit(cost).map(|()| cost)
    }

    /// Writes a piece of a large content, at most [`PIECE_BYTES_MAX`]; returns at once. A piece that nobody holds any more
    /// when its turn comes is not written.
    ///
    /// # Errors
    /// Where the queue is full, the disk failing or without room, or the piece too large.
    pub fn put_piece(self: &Arc<Self>, key: &CacheKey, bytes: Bytes) -> Result<Piece, Refused> {
        if bytes.len() > PIECE_BYTES_MAX {
            return Err(self.shared.counts.refuse(Refused::TooLarge));
        }
        let cost = bytes.len() as u64 + JOB_BYTES;
        self.shared.admit(cost)?;
        let piece = Piece::queued(self.id(), bytes);
        let base = self.shared.superblock.seed.base(key.base());
        self.shared.queue.push(Job::Piece { base, piece: piece.clone(), cost });
        Ok(piece)
    }

    /// Reads a record if that needs no waiting; `None` where it would.
    pub fn read_now(&self, place: Place) -> Option<Result<Found, ReadError>> {
        self.shared.may_read_now().then(|| self.shared.read_record(place, Waiting::No))?
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Where it is gone, damaged or cannot be read, or too many reads wait.
    ///
    /// # Cancel safety
    /// A read that nobody waits for is not done.
    pub async fn read(self: &Arc<Self>, place: Place) -> Result<Found, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.shared.pool.ask(Ask::Record(place, answer))?;
        answered.await.unwrap_or(Err(ReadError::Busy))
    }

    /// Reads a piece of this disk if that needs no waiting; `None` where it would.
    pub fn piece_now(&self, piece: &Piece) -> Option<Result<Bytes, ReadError>> {
        match piece.now() {
            PieceNow::Pending(bytes) => Some(Ok(bytes)),
            _ => self.shared.may_read_now().then(|| self.shared.read_piece(piece, Waiting::No))?,
        }
    }

    /// Reads a piece of this disk.
    ///
    /// # Errors
    /// Where it is gone, damaged or cannot be read, or too many reads wait.
    ///
    /// # Cancel safety
    /// A read that nobody waits for is not done.
    pub async fn read_piece(self: &Arc<Self>, piece: &Piece) -> Result<Bytes, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.shared.pool.ask(Ask::Piece(piece.clone(), answer))?;
        answered.await.unwrap_or(Err(ReadError::Busy))
    }

    /// Keeps a piece of this disk readable, and its room counted, until the pin is dropped; `None` where it is gone.
    /// A piece that is still in memory needs no pin, and is not kept by this one once it is written.
    pub fn pin(&self, piece: &Piece) -> Option<Pin> {
        match piece.now() {
            PieceNow::Pending(_) => Some(Pin { _segment: None }),
            PieceNow::Written(at) if at.disk == self.id() => {
                self.shared.segments.find(at.segment).map(|segment| Pin { _segment: Some(segment) })
            }
            PieceNow::Written(_) | PieceNow::Lost => None,
        }
    }

    /// Takes one response out; written down without waiting.
    pub fn remove(&self, at: &Address, place: Place) {
        if self.shared.index.remove(at.base, place) {
            self.shared.remove_for_good(place);
        }
    }

    /// Takes everything under a base out, whatever its variant, and says how much that was; written down without waiting.
    /// What was stored with a smaller number does not come back at a restart.
    pub fn invalidate(&self, at: &Address, number: u64) -> u64 {
        let shared = &self.shared;
        shared.note_number(number);
        let gone = shared.index.remove_base(at.base);
        for place in gone.iter().filter(|place| !place.is_pending()) {
            shared.segments.count_out(place.segment(), true);
        }
        shared.journal(&[JournalEntry::Invalidated { base: at.base, number }]);
        gone.len() as u64
    }

    /// Writes a predicate of the caller's down, at most 1 KiB of it; it is among [`Disk::notes`] at the next start.
    pub fn note(&self, number: u64, bytes: &[u8]) {
        self.shared.note_number(number);
        let bytes = bytes.get(..NOTE_BYTES_MAX).unwrap_or(bytes).to_vec();
        self.shared.journal(&[JournalEntry::Note { number, bytes }]);
    }

    /// The notes that were found when the disk was opened, in the order of their numbers. Handed out once.
    pub fn notes(&self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut *self.notes.lock())
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

    /// The highest number in what is stored and what was written down: numbers go on from there.
    pub fn last_number(&self) -> u64 {
        self.shared.highest.load(Ordering::Relaxed)
    }

    /// Places of stored responses, about `most` of them, from where a page before ended.
    pub fn list(&self, from: Option<Cursor>, most: usize) -> Listing {
        self.shared.index.list(from, most)
    }

    /// The oldest event that was not taken yet: that the disk fails, works again, or has no room.
    pub fn take_event(&self) -> Option<DiskEvent> {
        self.shared.health.take_event()
    }

    /// The figures at this moment.
    pub fn usage(&self) -> DiskUsage {
        let shared = &self.shared;
        let ((objects, bytes), (allocated, cap, high_water)) =
            (shared.index.objects(), shared.space.figures());
        DiskUsage {
            objects,
            bytes,
            max_bytes: cap,
            allocated_bytes: allocated,
            high_water_bytes: high_water,
            segments: shared.segments.count() as u64,
            index_bytes: shared.index.memory_bytes(),
            queued_bytes: shared.queue.bytes(),
            queued_objects: shared.index.pending(),
            journal_bytes: shared.journal.bytes(),
            is_failing: shared.health.is_failing(),
            is_preallocating: !shared.is_zeroing.load(Ordering::Relaxed),
            ..shared.counts.snapshot()
        }
    }

    /// Writes what is still queued, within 10 s, the table of the last segment, and ends. Waits for the disk; not for an
    /// event loop.
    pub fn close(&self) {
        self.shared.queue.close();
        self.end_threads();
    }

    /// Ends as if the process had been killed: nothing more is written.
    #[cfg(test)]
    fn kill(&self) {
        self.shared.queue.stop();
        self.end_threads();
    }

    fn end_threads(&self) {
        let writer = self.writer.lock().take();
        // A thread that panicked has ended as well.
        let _ = writer.map(JoinHandle::join);
        self.shared.pool.close();
        let readers = std::mem::take(&mut *self.readers.lock());
        readers.into_iter().for_each(|reader| drop(reader.join()));
    }
}

impl Drop for Disk {
    /// Without [`Disk::close`] the threads are only told to stop: what is dropped here may be dropped by an event loop.
    fn drop(&mut self) {
        self.shared.queue.stop();
        self.shared.pool.close();
    }
}
