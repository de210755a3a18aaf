//! A body that leaves memory for the disks while it arrives.
//!
//! In: its bytes, in order. Out: full pieces, handed to the disks at once; at its end the rest, and where all of it lies.
//! The open piece is a copy of what readers have in memory until it is handed over.

use std::sync::Arc;

use bytes::Bytes;

use crate::disks::{DiskFill, DiskPieces, PIECE_BYTES, PieceCopies, PiecePins};
use crate::key::CacheKey;
use crate::store::Store;

/// What a body that spills takes of memory at most: the open piece, the same bytes as they came, and what those cost beside
/// them.
pub(super) const SPILL_ROOM_BYTES: u64 = 3 * PIECE_BYTES as u64;

/// A piece that has left memory. Its readers find it as long as the body grows or is read, also where the disk fails to
/// write it, or gives up what it was written to.
pub(super) struct Spilled {
    pub(super) copies: PieceCopies,
    _pins: PiecePins,
}

/// The producer's side of it.
pub(super) struct Spill {
    fill: DiskFill,
    open: Vec<u8>,
    /// Pieces handed over.
    full: usize,
}

impl Spill {
    /// `None` where the store has no disks, or none of them takes it.
    pub(super) fn begin(store: &Arc<Store>, key: &CacheKey, declared: Option<u64>) -> Option<Self> {
        let fill = store.begin_fill(key, declared)?;
        Some(Self { fill, open: Vec::with_capacity(PIECE_BYTES), full: 0 })
    }

    /// Adds bytes; `spilled` hears of each piece that the disks have taken. False where they did not take one.
    pub(super) fn add(&mut self, bytes: &[u8], mut spilled: impl FnMut(Spilled)) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PIECE_BYTES - self.open.len()));
            self.open.extend_from_slice(now);
            rest = later;
            if self.open.len() == PIECE_BYTES && !self.hand_over(&mut spilled) {
                return false;
            }
        }
        true
    }

    fn hand_over(&mut self, spilled: &mut impl FnMut(Spilled)) -> bool {
        let piece = Bytes::from(std::mem::replace(&mut self.open, Vec::with_capacity(PIECE_BYTES)));
        if !self.fill.push(&piece) {
            return false;
        }
        let copies = self.fill.piece(self.full);
        // Lost in this moment: it is in memory still, and goes on from there.
        let Some(pins) = self.fill.pin(&copies) else { return false };
        spilled(Spilled { copies, _pins: pins });
        self.full += 1;
        true
    }

    /// The body has ended with `last`.
    pub(super) fn end(mut self, last: &[u8], mut spilled: impl FnMut(Spilled)) -> Option<DiskPieces> {
        let is_taken = self.add(last, &mut spilled);
        // The last piece takes no more memory than it has bytes.
        self.open.shrink_to_fit();
        let is_taken = is_taken && (self.open.is_empty() || self.hand_over(&mut spilled));
        is_taken.then(|| self.fill.finish()).flatten()
    }
}

#[cfg(test)]
mod tests;
