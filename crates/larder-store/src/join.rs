//! Pieces of bodies put together.
//!
//! In: ranges of stored bodies, or a body that arrived in many small pieces. Out: one body, in fewer pieces. Both copy, and take
//! room for what they copy before they do.

use std::ops::Range;

use bytes::Bytes;

use crate::budget::Reservation;
use crate::memory::MemoryStore;
use crate::stored::{PIECE_OVERHEAD_BYTES, StoredBody};

/// Bodies that arrived in pieces smaller than this on average are put together when they are whole.
pub(crate) const COMPACT_BELOW_BYTES: u64 = 16 * 1024;

/// The size of the pieces that putting together makes.
const COMPACT_PIECE_BYTES: usize = 256 * 1024;

/// Larger bodies are left as they came: the copy is made under a lock, and what it saves is small there.
const COMPACT_MAX_BYTES: u64 = 1024 * 1024;

/// A joined body of at most this part of its store may drive others out.
const SMALL_BESIDE_STORE: u64 = 16;

impl StoredBody {
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
