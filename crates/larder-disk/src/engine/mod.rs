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
mod change;
mod error;
mod files;
mod finding;
mod format;
mod fsck;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handles;
mod heads;
mod health;
mod in_flight;
mod index;
mod journal;
mod layouts;
mod neighbours;
mod object;
mod piece;
mod pool;
mod queue;
mod readers;
mod reads;
mod recover;
mod refusals;
mod replaced;
mod segment;
mod settings;
mod space;
mod state;
mod sys;
mod usage;
mod walk;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use larder_http::time::Clock;
use tokio::sync::oneshot;

pub(crate) use address::Owner;
pub use address::{Address, Location};
pub(crate) use change::Admitted;
pub use error::{DiskError, ReadError, Refused};
pub use finding::Finding;
pub use format::record::PIECE_BYTES_MAX;
pub use fsck::{Report, fsck};
pub use handles::FilesMax;
pub use heads::RecordHead;
pub use health::DiskEvent;
pub use index::{DiskCursor, Listing, Locations};
pub use larder_tier::Note;
pub use object::{FoundContent, FoundRecord, INLINE_BYTES_MAX, Object, RecordContent};
pub use piece::{Piece, Pin};
pub use refusals::{RefusalReason, RefusedCounts};
pub use settings::{DISK_BYTES_MIN, DiskSettings, DiskSize};
pub use usage::DiskUsage;

use format::record::PieceRef;
use piece::PieceState;
use pool::PoolJob;
use reads::Waiting;
use recover::Contents;
use state::DiskState;

use larder_tier::CacheKey;
use larder_tier::rank::{Rank, RankedMutex};

/// How long it is waited for what is queued, and how often it is looked for.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);
const SETTLE_PAUSE_MIN: Duration = Duration::from_millis(1);
const SETTLE_PAUSE_MAX: Duration = Duration::from_millis(200);

/// One disk. Shared by all workers; every method may be called from any of them.
#[derive(Debug)]
pub struct Disk {
    shared: Arc<DiskState>,
    writer: RankedMutex<Option<JoinHandle<()>>>,
    readers: RankedMutex<Vec<JoinHandle<()>>>,
    findings: Vec<Finding>,
    notes: RankedMutex<Vec<Note>>,
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
        Self::open_as(settings, clock, Contents::Kept)
    }

    /// The same with nothing on it: what it held is given up, at once and for good.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub(crate) fn open_anew(settings: DiskSettings, clock: Clock) -> Result<Arc<Self>, DiskError> {
        Self::open_as(settings, clock, Contents::GivenUp)
    }

    fn open_as(settings: DiskSettings, clock: Clock, held: Contents) -> Result<Arc<Self>, DiskError> {
        let path = settings.path.clone();
        let recovered = recover::open(settings, clock, held)?;
        let shared = Arc::new(recovered.shared);
        let readers = readers::start(&shared).map_err(DiskError::io("cannot start threads for", &path))?;
        let writer = writer::start(&shared).map_err(DiskError::io("cannot start threads for", &path))?;
        Ok(Arc::new(Self {
            shared,
            writer: RankedMutex::new(Rank::Leaf, Some(writer)),
            readers: RankedMutex::new(Rank::Leaf, readers),
            findings: recovered.findings,
            notes: RankedMutex::new(Rank::Leaf, recovered.notes),
        }))
    }

    /// Distinct from every other disk; the same at each start.
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
    /// into memory only. Another key may hide behind the same hashes: [`FoundRecord::is_of`] tells.
    pub fn find(&self, at: &Address) -> Locations {
        self.shared.index.find(at)
    }

    /// Whether anything lies under a base, whatever its variant.
    pub fn has_base(&self, at: &Address) -> bool {
        self.shared.index.has_base(at.base)
    }

    /// Whether a response is still in the index at this place.
    pub fn holds(&self, at: &Address, place: Location) -> bool {
        self.shared.index.holds(at.base, place)
    }

    /// Notes that a response was used: it gets another life when its segment is given up, and is not idle.
    pub fn note_use(&self, at: &Address, place: Location) {
        self.shared.index.note_use(at.base, place, self.shared.seconds());
    }

    /// Reads a record if that needs no waiting; `None` where it would.
    pub fn read_now(&self, place: Location) -> Option<Result<FoundRecord, ReadError>> {
        self.shared.may_read_now().then(|| self.shared.read_record(place, Waiting::No))?
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Where it is gone, damaged or cannot be read, or too many reads wait.
    ///
    /// # Cancel safety
    /// A read that nobody waits for is not done.
    pub async fn read(self: &Arc<Self>, place: Location) -> Result<FoundRecord, ReadError> {
        let (answer, answered) = oneshot::channel();
        self.shared.pool.ask(PoolJob::Record(place, answer))?;
        answered.await.unwrap_or(Err(ReadError::Busy))
    }

    /// Reads a piece of this disk if that needs no waiting; `None` where it would.
    pub fn piece_now(&self, piece: &Piece) -> Option<Result<Bytes, ReadError>> {
        match piece.state() {
            PieceState::Pending(bytes) | PieceState::Kept(bytes) => Some(Ok(bytes)),
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
        self.shared.pool.ask(PoolJob::Piece(piece.clone(), answer))?;
        answered.await.unwrap_or(Err(ReadError::Busy))
    }

    /// Keeps a piece of this disk readable, and its room counted, until the pin is dropped; `None` where it is gone. What is
    /// pinned before it is written stays readable also where it cannot be written.
    pub fn pin(&self, piece: &Piece) -> Option<Pin> {
        let is_own = |at: &PieceRef| at.disk == self.id();
        piece.pin(|at| is_own(at).then(|| self.shared.segments.find(at.segment)).flatten())
    }

    /// The highest number in what is stored and what was written down: numbers go on from there.
    pub fn last_number(&self) -> u64 {
        self.shared.highest.load(Ordering::Relaxed)
    }

    /// Places of stored responses, about `most` of them, from where a page before ended.
    pub fn list(&self, from: Option<DiskCursor>, most: usize) -> Listing {
        self.shared.index.list(from, most)
    }

    /// The same, and nothing is missed that is written elsewhere meanwhile. What was put in since the walk began may be.
    pub(crate) fn list_all(&self, from: Option<DiskCursor>, most: usize) -> Listing {
        self.shared.index.list_all(from, most)
    }

    /// Whether everything that was put in before this call is written, or lost. Waits for that within 10 s.
    pub(crate) fn settle(&self) -> bool {
        let last = Location::pending(self.shared.last_pending.load(Ordering::Acquire));
        let until = Instant::now() + SETTLE_WITHIN;
        let mut pause = SETTLE_PAUSE_MIN;
        while self.shared.index.awaits_up_to(last) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(SETTLE_PAUSE_MAX);
        }
        true
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
            is_without_room: shared.health.is_without_room(),
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
