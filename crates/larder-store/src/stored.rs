//! What lies in a store: a response's head as `larder-cache` made it, and its body, in memory or on disks.
//!
//! Head and body are shared apart from each other: a 304 replaces the head and keeps the body.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::body::{Body, Pieces};
use larder_http::message::{PreparedFields, SharedFields};
use siphasher::sip::SipHasher13;

use crate::budget::Reservation;
use crate::disks::{DiskPieces, Disks};
use crate::files::{FileContent, FileFill, FileHit, FileReader, FileStamp, FilledBody};
use crate::lease::{LeasedReader, Leases, large_from};
use crate::memory::MemoryStore;
use crate::promote::{Promoting, Worth};

mod judged;
mod refreshing;

pub use judged::Judged;
pub use refreshing::{RefreshFailure, Refreshing};

/// What a piece costs beside its bytes: the handle, its shared count, the allocator's rounding.
pub(crate) const PIECE_OVERHEAD_BYTES: u64 = 96;

/// Bodies that arrived in pieces smaller than this on average are put together when they are whole.
pub(crate) const COMPACT_BELOW_BYTES: u64 = 16 * 1024;

/// The size of the pieces that putting together makes.
const COMPACT_PIECE_BYTES: usize = 256 * 1024;

/// Larger bodies are left as they came: the copy is made under a lock, and what it saves is small there.
const COMPACT_MAX_BYTES: u64 = 1024 * 1024;

/// A joined body of at most this part of its store may drive others out.
const SMALL_BESIDE_STORE: u64 = 16;

/// What the place of a piece on a disk costs in memory.
pub(crate) const DISK_PIECE_BYTES: u64 = 96;

/// A whole body. Whoever holds one that is in memory keeps its bytes counted against the cap.
#[derive(Debug)]
pub struct StoredBody {
    pieces: Vec<Bytes>,
    /// Where each piece ends.
    ends: Box<[u64]>,
    /// Where it lies, if that is not in memory: then there are no pieces.
    elsewhere: Option<Elsewhere>,
    /// Where else it lies, if it is in memory because it was in use.
    promoted_from: Option<Box<DiskPieces>>,
    /// The plain file that it was read of, where it is in memory.
    stamp: Option<Box<FileStamp>>,
    /// Its readers, where it is large and in memory.
    leases: Option<Box<Leases>>,
    _room: Option<Reservation>,
}

#[derive(Debug)]
enum Elsewhere {
    Disks(Box<OnDisks>),
    File(Arc<FileHit>),
    /// In a file that has no name yet.
    Filled(Box<FilledBody>),
}

/// A body on disks, and what may bring it into memory.
#[derive(Debug)]
struct OnDisks {
    pieces: DiskPieces,
    memory: Weak<MemoryStore>,
    worth: Worth,
}

impl StoredBody {
    /// A body made of `pieces`, for which `room` was reserved.
    pub fn new(pieces: Vec<Bytes>, room: Reservation) -> Self {
        let ends = pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        });
        Self { ends: ends.collect(), pieces, _room: Some(room), ..Self::empty() }
    }

    /// The same for a store with a cap of so many bytes: where it is large there, its readers hold it by leases.
    pub(crate) fn lendable(self, cap: u64) -> Self {
        let is_large = self.is_in_memory() && self.length() > large_from(cap);
        Self { leases: is_large.then(Box::default), ..self }
    }

    /// Its readers, where it is held by leases.
    #[inline]
    pub(crate) fn leases(&self) -> Option<&Leases> {
        self.leases.as_deref()
    }

    /// Whether whoever reads it may be told to go on elsewhere.
    #[inline]
    pub fn may_be_let_go(&self) -> bool {
        self.leases.is_some()
    }

    /// A body that lies on disks; `None` where `memory` has no room for the places of its pieces.
    pub(crate) fn on_disks(memory: &Arc<MemoryStore>, pieces: DiskPieces) -> Option<Self> {
        let room = memory.reserve(pieces.count() as u64 * DISK_PIECE_BYTES)?;
        let on_disks = OnDisks { pieces, memory: Arc::downgrade(memory), worth: Worth::default() };
        let elsewhere = Some(Elsewhere::Disks(Box::new(on_disks)));
        Some(Self { elsewhere, _room: Some(room), ..Self::empty() })
    }

    /// The same bytes in memory, for which `room` was reserved; they lie on disks as well.
    pub(crate) fn promoted(pieces: Vec<Bytes>, room: Reservation, from: DiskPieces) -> Self {
        Self { promoted_from: Some(Box::new(from)), ..Self::new(pieces, room) }
    }

    /// The content of a file. What of it is in memory is counted with the files that are kept open.
    pub(crate) fn of_file(file: &Arc<FileHit>) -> Self {
        let stamp = Some(Box::new(file.stamp()));
        match file.whole() {
            Some(whole) if whole.is_empty() => Self { stamp, ..Self::empty() },
            Some(whole) => {
                let ends = Box::new([whole.len() as u64]);
                Self { pieces: vec![whole.clone()], ends, stamp, ..Self::empty() }
            }
            None => Self { elsewhere: Some(Elsewhere::File(Arc::clone(file))), ..Self::empty() },
        }
    }

    /// Where it lies on disks, if it does; it may be in memory as well.
    pub(crate) fn on_disk(&self) -> Option<&DiskPieces> {
        match &self.elsewhere {
            Some(Elsewhere::Disks(on_disks)) => Some(&on_disks.pieces),
            Some(Elsewhere::File(_) | Elsewhere::Filled(_)) => None,
            None => self.promoted_from.as_deref(),
        }
    }

    /// Whether it lies on these disks.
    pub(crate) fn is_on(&self, disks: &Arc<Disks>) -> bool {
        self.on_disk().is_some_and(|pieces| Arc::ptr_eq(pieces.disks(), disks))
    }

    /// What is known of its reads, where it lies on disks alone.
    pub(crate) fn worth(&self) -> Option<&Worth> {
        match &self.elsewhere {
            Some(Elsewhere::Disks(on_disks)) => Some(&on_disks.worth),
            Some(Elsewhere::File(_) | Elsewhere::Filled(_)) | None => None,
        }
    }

    /// A body that was written to a plain file while it arrived, and is not stored yet.
    pub(crate) fn filled(fill: FileFill) -> Self {
        Self { elsewhere: Some(Elsewhere::Filled(Box::new(FilledBody::new(fill)))), ..Self::empty() }
    }

    /// What stores the plain file that was written while it arrived; for the first who asks.
    pub(crate) fn take_fill(&self) -> Option<FileFill> {
        match &self.elsewhere {
            Some(Elsewhere::Filled(filled)) => filled.take_fill(),
            _ => None,
        }
    }

    /// The plain file that it was read of, where that is what it is.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        match &self.elsewhere {
            Some(Elsewhere::File(file)) => Some(file.stamp()),
            Some(Elsewhere::Disks(_) | Elsewhere::Filled(_)) => None,
            None => self.stamp.as_deref().copied(),
        }
    }

    /// Whether it was read of a plain file.
    pub fn is_a_file(&self) -> bool {
        self.stamp().is_some()
    }

    /// Whether it is a file that somebody put there.
    #[inline]
    pub fn is_by_hand(&self) -> bool {
        // Of nearly all bodies this is one look at a pointer.
        (self.stamp.is_some() || self.elsewhere.is_some())
            && self.stamp().is_some_and(|stamp| stamp.is_by_hand())
    }

    /// Whether all of it is in memory.
    #[inline]
    pub fn is_in_memory(&self) -> bool {
        self.elsewhere.is_none()
    }

    /// Whether it can be read: one on a disk goes with what it lies in, whoever knows of it.
    #[inline]
    pub fn is_there(&self) -> bool {
        match self.is_in_memory() {
            true => self.leases.as_ref().is_none_or(|leases| !leases.is_let_go()),
            false => self.on_disk().is_none_or(DiskPieces::is_there),
        }
    }

    /// Whether it is not where it was on its disks, although nothing is wrong with it: it went with what it lay in, or was
    /// written again elsewhere.
    pub(crate) fn has_moved(&self) -> bool {
        !self.is_in_memory() && self.on_disk().is_some_and(DiskPieces::has_moved)
    }

    /// `range` of it, to be sent. `None` where it lies on a disk and is not there any more. All of it, read from disks again, may
    /// be in memory when it has been sent.
    pub fn content(self: &Arc<Self>, range: Range<u64>) -> Option<Body> {
        if range.is_empty() {
            return Some(Body::Empty);
        }
        let length = Some(range.end - range.start);
        Some(match &self.elsewhere {
            None if self.leases.is_some() => {
                let length = Some(range.end - range.start);
                Body::Stream { length, stream: Box::pin(LeasedReader::new(self, range)) }
            }
            None => Body::Pieces { owner: Arc::clone(self) as Arc<dyn Pieces>, range },
            Some(Elsewhere::Disks(on_disks)) => {
                let is_all = range == (0..on_disks.pieces.length());
                let reader = on_disks.pieces.reader(range)?;
                match on_disks.memory.upgrade().filter(|_| is_all) {
                    Some(memory) => {
                        let stream = Box::pin(Promoting::new(reader, self, memory));
                        Body::Stream { length, stream }
                    }
                    None => Body::Stream { length, stream: Box::pin(reader) },
                }
            }
            Some(Elsewhere::File(file)) => {
                let content = FileContent::Found(Arc::clone(file));
                Body::Stream { length, stream: Box::pin(FileReader::new(content, range)) }
            }
            Some(Elsewhere::Filled(filled)) => {
                let content = FileContent::Written(Arc::clone(filled.content()));
                Body::Stream { length, stream: Box::pin(FileReader::new(content, range)) }
            }
        })
    }

    /// What of the store's memory it takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        if self.is_in_memory() { self.length() } else { 0 }
    }

    /// Ranges of bodies, one after the other, as one body: a joined part of a representation. Whole pieces are shared and
    /// counted for both bodies while both are there; what is cut is copied, since a slice would keep the whole of its
    /// piece in memory. `None` where there is no room: for what is small beside the store it is made by evicting, for
    /// more it is not, since what is joined is stored already.
    pub fn joined(store: &MemoryStore, from: &[(&Self, Range<u64>)]) -> Option<Self> {
        let pieces = || from.iter().flat_map(|(body, range)| body.within(range.clone()));
        let length: u64 = pieces().map(|(_, within)| (within.end - within.start) as u64).sum();
        let overhead = pieces().count() as u64 * PIECE_OVERHEAD_BYTES;
        let wanted = (length <= store.max_object()).then_some(length + overhead)?;
        let mut room = match wanted <= store.cap() / SMALL_BESIDE_STORE {
            true => store.reserve(wanted)?,
            false => store.reserve_free(wanted)?,
        };
        let shared_or_copied = pieces().map(|(piece, within)| match within.len() == piece.len() {
            true => piece.clone(),
            false => Bytes::copy_from_slice(piece.get(within).unwrap_or_default()),
        });
        let (pieces, _) = compact(shared_or_copied.collect(), length, store);
        room.shrink_to(length + pieces.len() as u64 * PIECE_OVERHEAD_BYTES);
        Some(Self::new(pieces, room).lendable(store.cap()))
    }

    /// The pieces that `range` touches, and what of each lies within it.
    fn within(&self, range: Range<u64>) -> impl Iterator<Item = (&Bytes, Range<usize>)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.pieces.iter().zip(starts).zip(self.ends.iter().copied()).filter_map(
            move |((piece, start), end)| {
                let (first, last) = (range.start.max(start), range.end.min(end));
                let at = |position: u64| usize::try_from(position - start).ok();
                (first < last).then(|| Some((piece, at(first)?..at(last)?))).flatten()
            },
        )
    }

    /// No content; needs no room.
    pub fn empty() -> Self {
        Self {
            pieces: Vec::new(),
            ends: Box::default(),
            elsewhere: None,
            promoted_from: None,
            stamp: None,
            leases: None,
            _room: None,
        }
    }

    /// Length in bytes.
    pub fn length(&self) -> u64 {
        match &self.elsewhere {
            None => self.ends.last().copied().unwrap_or(0),
            Some(Elsewhere::Disks(on_disks)) => on_disks.pieces.length(),
            Some(Elsewhere::File(file)) => file.size(),
            Some(Elsewhere::Filled(filled)) => filled.length(),
        }
    }

    /// The bytes from `position` to the end of the piece they lie in, where they are in memory.
    pub fn at(&self, position: u64) -> Option<Bytes> {
        let index = self.ends.partition_point(|end| *end <= position);
        let piece = self.pieces.get(index)?;
        let start = self.ends.get(index)?.checked_sub(piece.len() as u64)?;
        Some(piece.slice(usize::try_from(position.checked_sub(start)?).ok()?..))
    }
}

impl Pieces for StoredBody {
    fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }
}

/// Puts many small pieces together, where there is room for the copy.
pub(crate) fn compact(
    pieces: Vec<Bytes>,
    length: u64,
    store: &MemoryStore,
) -> (Vec<Bytes>, Option<Reservation>) {
    if pieces.len() < 2 || length > COMPACT_MAX_BYTES || length / pieces.len() as u64 >= COMPACT_BELOW_BYTES {
        return (pieces, None);
    }
    let Some(copy_room) = store.reserve_free(length) else {
        return (pieces, None);
    };
    let mut whole = Vec::new();
    // Of exactly the size that is counted: a vector that grows takes up to twice as much.
    let mut left: usize = pieces.iter().map(Bytes::len).sum();
    let mut buffer = Vec::with_capacity(COMPACT_PIECE_BYTES.min(left));
    for piece in pieces {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(COMPACT_PIECE_BYTES - buffer.len()));
            buffer.extend_from_slice(now);
            rest = later;
            if buffer.len() == COMPACT_PIECE_BYTES {
                left -= buffer.len();
                let next = Vec::with_capacity(COMPACT_PIECE_BYTES.min(left));
                whole.push(Bytes::from(std::mem::replace(&mut buffer, next)));
            }
        }
    }
    if !buffer.is_empty() {
        buffer.shrink_to_fit();
        whole.push(buffer.into());
    }
    (whole, Some(copy_room))
}

/// A stored response, as the index hands it out.
#[derive(Debug)]
pub struct StoredResponse {
    /// Status, fields, freshness, Vary.
    pub head: Arc<StoredHead>,
    /// The content.
    pub body: Arc<StoredBody>,
    /// The number of the last invalidation when the fetch that brought it began.
    pub number: u64,
    /// Room for head, key and index entry.
    pub room: Reservation,
    /// From the moment that it was wanted to the last byte of what came, connecting and queueing included: how long the next
    /// refresh may well take.
    pub took: Duration,
    /// The attempts to refresh it.
    pub refreshing: Refreshing,
    /// What is known of invalidations that came after `number`.
    pub judged: Judged,
}

impl StoredResponse {
    /// A response as it will lie in the index, of which nobody knows how long it took.
    pub fn new(head: Arc<StoredHead>, body: Arc<StoredBody>, number: u64, room: Reservation) -> Self {
        let (refreshing, judged) = (Refreshing::default(), Judged::default());
        Self { head, body, number, room, took: Duration::ZERO, refreshing, judged }
    }

    /// Whether both are the same response, wherever the body of each lies: it may come into memory while somebody holds the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.head, &other.head)
    }

    /// Tells it apart from the others under its key, and from what it replaces not at all: which requests select it, and
    /// which part of a representation it is.
    pub fn identity(&self) -> u64 {
        identity(&self.head)
    }

    /// Bytes to reserve for everything but the body: head, key, and the index's own records.
    pub fn overhead_bytes(head: &StoredHead, key: &crate::key::CacheKey) -> u64 {
        (INDEX_ENTRY_BYTES + key.base().len() + key.variant().len() + head.memory_bytes()) as u64
    }
}

/// See [`StoredResponse::identity`]. It is the same in every process: a disk remembers it.
fn identity(head: &StoredHead) -> u64 {
    // Nobody gains by two that come to the same: one takes the place of the other, on disks.
    let mut identity = SipHasher13::new();
    head.vary.identity(|part| identity.write(part));
    if let Some(part) = &head.part {
        identity.write_u64(part.range.start);
        identity.write_u64(part.range.end);
    }
    identity.finish()
}

impl Pieces for StoredResponse {
    fn pieces(&self) -> &[Bytes] {
        self.body.pieces()
    }
}

impl SharedFields for StoredResponse {
    fn prepared(&self) -> &PreparedFields {
        &self.head.fields
    }
}

/// What an entry costs beside its key, head and body: the item, its slots in a queue and in the tables (which double, and
/// are half empty then), and the allocations of the shared handles. Measured in tests/weight.rs.
pub(crate) const INDEX_ENTRY_BYTES: usize = 512;

#[cfg(test)]
mod tests;
