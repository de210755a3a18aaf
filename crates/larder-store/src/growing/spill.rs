//! A body that leaves memory for the disks, or for a plain file, while it arrives.
//!
//! In: its bytes, in order. Out: full pieces, handed over at once; at its end the rest, and where all of it lies.
//! The open piece is a copy of what readers have in memory until it is handed over.

use std::sync::Arc;

use bytes::Bytes;

use crate::disks::{DiskFill, PIECE_BYTES, PieceCopies, PiecePins};
use crate::files::{Arriving, FileFill};
use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::store::Store;
use crate::stored::StoredBody;

/// What a body that spills takes of memory at most: the open piece, the same bytes as they came, and what those cost beside
/// them.
pub(super) const SPILL_ROOM_BYTES: u64 = 3 * PIECE_BYTES as u64;

/// Where a piece lies that has left memory.
#[derive(Clone)]
pub(super) enum Place {
    Disks(PieceCopies),
    File(Arc<Arriving>),
}

/// A piece that has left memory. Its readers find it as long as the body grows or is read, also where the disk fails to
/// write it, or gives up what it was written to.
pub(super) struct Spilled {
    pub(super) place: Place,
    _pins: Option<PiecePins>,
}

/// What takes it.
enum Target {
    Disks(Box<DiskFill>),
    File(FileFill),
}

/// The producer's side of it.
pub(super) struct Spill {
    target: Target,
    open: Vec<u8>,
    /// Pieces handed over.
    full: usize,
}

impl Spill {
    /// To a plain file where one `may_be_file`, else to disks. `None` where the store has none, or they do not take it.
    pub(super) fn begin(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        may_be_file: bool,
    ) -> Option<Self> {
        let target = match may_be_file {
            true => Target::File(store.begin_file(key, declared)?),
            false => Target::Disks(Box::new(store.begin_fill(key, declared)?)),
        };
        Some(Self { target, open: Vec::with_capacity(PIECE_BYTES), full: 0 })
    }

    /// Adds bytes; `spilled` hears of each piece that was taken. False where one was not.
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
        match &mut self.target {
            Target::Disks(fill) => {
                if !fill.push(&piece) {
                    return false;
                }
                let copies = fill.piece(self.full);
                // Lost in this moment: it is in memory still, and goes on from there.
                let Some(pins) = fill.pin(&copies) else { return false };
                spilled(Spilled { place: Place::Disks(copies), _pins: Some(pins) });
            }
            Target::File(fill) => {
                if fill.write(piece).is_err() {
                    return false;
                }
                spilled(Spilled { place: Place::File(Arc::clone(fill.content())), _pins: None });
            }
        }
        self.full += 1;
        true
    }

    /// The body has ended with `last`. `None` where not all of it was taken.
    pub(super) fn end(
        mut self,
        last: &[u8],
        memory: &Arc<MemoryStore>,
        mut spilled: impl FnMut(Spilled),
    ) -> Option<StoredBody> {
        let is_taken = self.add(last, &mut spilled);
        // The last piece takes no more memory than it has bytes.
        self.open.shrink_to_fit();
        let is_taken = is_taken && (self.open.is_empty() || self.hand_over(&mut spilled));
        match self.target {
            _ if !is_taken => None,
            Target::Disks(fill) => StoredBody::on_disks(memory, fill.finish()?),
            Target::File(fill) => Some(StoredBody::filled(fill)),
        }
    }
}

#[cfg(test)]
mod tests;
