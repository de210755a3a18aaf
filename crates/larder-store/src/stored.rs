//! What lies in a store: a response's head as `larder-cache` made it, and its body in memory.
//!
//! Head and body are shared apart from each other: a 304 replaces the head and keeps the body.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::body::Pieces;

use crate::budget::Reservation;
use crate::memory::MemoryStore;

/// What a piece costs beside its bytes: the handle, its shared count, the allocator's rounding.
pub(crate) const PIECE_OVERHEAD_BYTES: u64 = 96;

/// A whole body in memory. Whoever holds it keeps its bytes counted against the cap.
#[derive(Debug)]
pub struct StoredBody {
    pieces: Vec<Bytes>,
    /// Where each piece ends.
    ends: Box<[u64]>,
    _room: Option<Reservation>,
}

impl StoredBody {
    /// A body made of `pieces`, for which `room` was reserved.
    pub fn new(pieces: Vec<Bytes>, room: Reservation) -> Self {
        let ends = pieces.iter().scan(0, |end, piece| {
            *end += piece.len() as u64;
            Some(*end)
        });
        Self { ends: ends.collect(), pieces, _room: Some(room) }
    }

    /// Ranges of bodies, one after the other, as one body: a joined part of a representation. Pieces are shared, not
    /// copied; they are counted for both bodies as long as both are there, and one that is cut with its full length,
    /// since its other bytes stay in memory as well. `None` where there is no room.
    pub fn joined(store: &MemoryStore, from: &[(&Self, Range<u64>)]) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut bytes = 0;
        for (body, range) in from {
            let starts = std::iter::once(0).chain(body.ends.iter().copied());
            for ((piece, start), end) in body.pieces.iter().zip(starts).zip(body.ends.iter().copied()) {
                let (first, last) = (range.start.max(start), range.end.min(end));
                if first < last {
                    let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
                    pieces.push(piece.slice(within(first)..within(last)));
                    bytes += piece.len() as u64 + PIECE_OVERHEAD_BYTES;
                }
            }
        }
        let length: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let room = (length <= store.max_object()).then(|| store.reserve(bytes)).flatten()?;
        Some(Self::new(pieces, room))
    }

    /// No content; needs no room.
    pub fn empty() -> Self {
        Self { pieces: Vec::new(), ends: Box::default(), _room: None }
    }

    /// Length in bytes.
    pub fn length(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The bytes from `position` to the end of the piece they lie in.
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
}

impl StoredResponse {
    /// Bytes to reserve for everything but the body: head, key, and the index's own records.
    pub fn overhead_bytes(head: &StoredHead, key: &crate::key::CacheKey) -> u64 {
        (INDEX_ENTRY_BYTES + key.base().len() + key.variant().len() + head.memory_bytes()) as u64
    }
}

/// What an entry costs beside its key, head and body: the item, its slot in a queue and in the table, two
/// allocations for the shared handles, and the allocator's rounding.
pub(crate) const INDEX_ENTRY_BYTES: usize = 320;
