//! What lies in a store: a response's head as `larder-cache` made it, and its body, in memory or in a source outside it.
//!
//! Head and body are shared apart from each other: a 304 replaces the head and keeps the body.

use std::hash::Hasher;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::body::{Body, Pieces, Stream};
use larder_http::message::{PreparedFields, SharedFields};
use larder_tier::{BodySource, Entry};
use siphasher::sip::SipHasher13;

use crate::budget::Reservation;
use crate::key::CacheKey;
use crate::lease::{LeasedReader, Leases, Lendable, large_from};
use crate::promote::Worth;
use beside::Beside;

mod beside;
mod compiled;
mod judged;
mod refreshing;
mod sync;

pub use compiled::COMPILED_BYTES_MAX;
pub use judged::Judged;
pub use refreshing::{RefreshFailure, Refreshing};

/// What a piece costs beside its bytes: the handle, its shared count, the allocator's rounding.
pub(crate) const PIECE_OVERHEAD_BYTES: u64 = 96;

/// What the location of a chunk in a tier costs in memory.
pub(crate) const CHUNK_LOCATION_BYTES: u64 = 96;

/// A whole body: chunks in memory, or a source outside it. Whoever holds one that is in memory keeps its bytes counted against
/// the cap.
#[derive(Debug)]
pub struct StoredBody {
    pieces: Box<[Bytes]>,
    /// Where each piece ends.
    ends: Box<[u64]>,
    /// Where it lies, if that is not in memory: then there are no pieces.
    outside: Option<Box<Outside>>,
    /// Where else it lies, or what it was read of, if it is in memory.
    origin: Option<Arc<dyn BodySource>>,
    /// Whether a person put there what it was read of.
    is_by_hand: bool,
    /// Its readers, where it is large and in memory.
    leases: Option<Box<Leases>>,
    /// What was made of it, where anything was.
    beside: OnceLock<Box<Beside>>,
    room: Option<Reservation>,
}

/// Whoever may bring a body into memory while it is read.
pub(crate) trait Promoter: Send + Sync {
    /// Reads all of `body`, which lies outside memory, through `reader`.
    fn promoting(self: Arc<Self>, reader: Stream, body: &Arc<StoredBody>) -> Stream;
}

/// A body outside memory, and what may bring it there.
struct Outside {
    source: Arc<dyn BodySource>,
    promoter: Option<Weak<dyn Promoter>>,
    worth: Worth,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").field("source", &self.source).finish_non_exhaustive()
    }
}

impl StoredBody {
    /// A body made of `pieces`, for which `room` was reserved.
    pub fn new(pieces: Vec<Bytes>, room: Reservation) -> Self {
        let ends = pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        });
        Self { ends: ends.collect(), pieces: pieces.into(), room: Some(room), ..Self::empty() }
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

    /// A body that lies in `source` alone, with `room` for the places of its chunks; `promoter` may bring it into memory.
    pub(crate) fn in_source(
        source: Arc<dyn BodySource>,
        room: Option<Reservation>,
        promoter: Option<Weak<dyn Promoter>>,
    ) -> Self {
        let is_by_hand = source.is_by_hand();
        let outside = Some(Box::new(Outside { source, promoter, worth: Worth::default() }));
        Self { outside, is_by_hand, room, ..Self::empty() }
    }

    /// The same bytes in memory, for which `room` was reserved; they lie in `from` as well.
    pub(crate) fn promoted(pieces: Vec<Bytes>, room: Reservation, from: Arc<dyn BodySource>) -> Self {
        Self { origin: Some(from), ..Self::new(pieces, room) }
    }

    /// The content of an entry that was found open. What of it is in memory is counted with the entries that are kept open; `room` is for
    /// what is made of it.
    pub(crate) fn found(whole: Option<&Bytes>, source: Arc<dyn BodySource>, room: Reservation) -> Self {
        let is_by_hand = source.is_by_hand();
        match whole {
            Some(whole) => {
                let pieces: Box<[Bytes]> =
                    if whole.is_empty() { Box::default() } else { Box::new([whole.clone()]) };
                let ends = pieces.iter().map(|piece| piece.len() as u64).collect();
                let room = Some(room);
                Self { pieces, ends, origin: Some(source), is_by_hand, room, ..Self::empty() }
            }
            None => Self::in_source(source, Some(room), None),
        }
    }

    /// Where it lies outside memory, if it does, or what it was read of; it may be in memory as well.
    pub(crate) fn source(&self) -> Option<&Arc<dyn BodySource>> {
        self.outside.as_ref().map(|outside| &outside.source).or(self.origin.as_ref())
    }

    /// What is known of its reads, where it lies outside memory alone.
    pub(crate) fn worth(&self) -> Option<&Worth> {
        self.outside.as_ref().map(|outside| &outside.worth)
    }

    /// Whether it was read of a plain file.
    #[inline]
    pub fn is_a_file(&self) -> bool {
        self.source().is_some_and(|source| source.is_a_file())
    }

    /// Whether it is a file that somebody put there.
    #[inline]
    pub fn is_by_hand(&self) -> bool {
        self.is_by_hand
    }

    /// Whether all of it is in memory, and was not read of anything else.
    #[inline]
    pub fn is_in_memory_alone(&self) -> bool {
        self.outside.is_none() && self.origin.is_none()
    }

    /// Whether all of it is in memory.
    #[inline]
    pub fn is_in_memory(&self) -> bool {
        self.outside.is_none()
    }

    /// Whether it can be read: one on a disk goes with what it lies in, whoever knows of it.
    #[inline]
    pub fn is_there(&self) -> bool {
        match &self.outside {
            None => self.leases.as_ref().is_none_or(|leases| !leases.is_let_go()),
            Some(outside) => outside.source.is_there(),
        }
    }

    /// Whether it is not where it was on its disks, although nothing is wrong with it: it went with what it lay in, or was
    /// written again elsewhere.
    pub(crate) fn has_moved(&self) -> bool {
        self.outside.as_ref().is_some_and(|outside| outside.source.has_moved())
    }

    /// `range` of it, to be sent. `None` where it lies on a disk and is not there any more. All of it, read from disks again, may
    /// be in memory when it has been sent.
    pub fn content(self: &Arc<Self>, range: Range<u64>) -> Option<Body> {
        if range.is_empty() {
            return Some(Body::Empty);
        }
        let length = Some(range.end - range.start);
        Some(match &self.outside {
            None if self.leases.is_some() => {
                Body::Stream { length, stream: Box::pin(LeasedReader::new(self, range)) }
            }
            None => Body::Pieces { owner: Arc::clone(self) as Arc<dyn Pieces>, range },
            Some(outside) => {
                let is_all = range == (0..outside.source.length());
                let stream = Arc::clone(&outside.source).reader(range)?;
                let promoter = outside.promoter.as_ref().and_then(Weak::upgrade).filter(|_| is_all);
                let stream = match promoter {
                    Some(promoter) => promoter.promoting(stream, self),
                    None => stream,
                };
                Body::Stream { length, stream }
            }
        })
    }

    /// What of the store's memory it takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        if self.is_in_memory() { self.length() } else { 0 }
    }

    /// The pieces that `range` touches, and what of each lies within it.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (&Bytes, Range<usize>)> {
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
            pieces: Box::default(),
            ends: Box::default(),
            outside: None,
            origin: None,
            is_by_hand: false,
            leases: None,
            beside: OnceLock::new(),
            room: None,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn length(&self) -> u64 {
        match &self.outside {
            None => self.ends.last().copied().unwrap_or(0),
            Some(outside) => outside.source.length(),
        }
    }

    /// The bytes from `position` to the end of the piece they lie in, where they are in memory.
    #[inline]
    pub fn at(&self, position: u64) -> Option<Bytes> {
        let index = self.ends.partition_point(|end| *end <= position);
        let piece = self.pieces.get(index)?;
        let start = self.ends.get(index)?.checked_sub(piece.len() as u64)?;
        Some(piece.slice(usize::try_from(position.checked_sub(start)?).ok()?..))
    }
}

impl Lendable for StoredBody {
    fn leases(&self) -> Option<&Leases> {
        self.leases()
    }

    fn at(&self, position: u64) -> Option<Bytes> {
        self.at(position)
    }

    fn source(&self) -> Option<&Arc<dyn BodySource>> {
        self.source()
    }

    fn length(&self) -> u64 {
        self.length()
    }
}

impl Pieces for StoredBody {
    fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    fn digest(&self) -> Option<[u8; 32]> {
        self.digest()
    }
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
    /// Whether it is a copy of a value that others write, which a tier was [asked](larder_tier::Ask) for.
    pub is_copy: bool,
    /// Whether a tier was told that a purge has named it; once is enough.
    pub is_disowned: AtomicBool,
}

impl StoredResponse {
    /// A response as it will lie in the index, of which nobody knows how long it took.
    pub fn new(head: Arc<StoredHead>, body: Arc<StoredBody>, number: u64, room: Reservation) -> Self {
        let (refreshing, judged) = (Refreshing::default(), Judged::default());
        let (took, is_copy, is_disowned) = (Duration::ZERO, false, AtomicBool::new(false));
        Self { head, body, number, room, took, refreshing, judged, is_copy, is_disowned }
    }

    /// The same of a copy.
    pub(crate) fn copy(head: Arc<StoredHead>, body: Arc<StoredBody>, number: u64, room: Reservation) -> Self {
        Self { is_copy: true, ..Self::new(head, body, number, room) }
    }

    /// Whether both are the same response, wherever the body of each lies: it may come into memory while somebody holds the other.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.head, &other.head)
    }

    /// Tells it apart from the others under its key, and from what it replaces not at all: which requests select it, and
    /// which part of a representation it is.
    pub fn identity(&self) -> u64 {
        identity(&self.head)
    }

    /// It as a tier is told of it.
    pub(crate) fn with_entry<R>(&self, key: &CacheKey, act: impl FnOnce(&Entry<'_, StoredHead>) -> R) -> R {
        act(&Entry {
            key,
            number: self.number,
            identity: self.identity(),
            received: self.head.freshness.received.wall,
            took: self.took,
            head: &self.head,
            head_bytes: &|| self.head.to_bytes(),
            chunks: &self.body.pieces,
            length: self.body.length(),
            is_in_memory: self.body.is_in_memory(),
            source: self.body.source().map(|source| &**source),
        })
    }

    /// Bytes to reserve for everything but the body: head, key, and the index's own records.
    pub fn overhead_bytes(head: &StoredHead, key: &CacheKey) -> u64 {
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

    fn digest(&self) -> Option<[u8; 32]> {
        self.body.digest()
    }
}

impl SharedFields for StoredResponse {
    fn prepared(&self) -> &PreparedFields {
        &self.head.fields
    }
}

/// What an entry costs beside its key, head and body: the item, its slots in a queue and in the tables (which double, and
/// are half empty then), and the allocations of the shared handles. Measured in tests/allocations of the binary.
pub(crate) const INDEX_ENTRY_BYTES: usize = 512;

#[cfg(test)]
mod tests;
