//! A body on its way to disks, piece by piece.
//!
//! In: pieces in order. Out: the body as it lies on the disks, once all pieces were taken. A piece that a disk does not take
//! ends that disk's copy; when the last copy has ended, the body is not stored. Dropped before its end it leaves pieces
//! that nothing names, and that go with their segment.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use super::body::{DiskPieces, PieceCopies, PiecePins};
use super::{Disks, Layout};
use crate::disk::{Owner, Piece};
use crate::key::CacheKey;

/// A body that arrives.
#[derive(Debug)]
pub(crate) struct DiskFill {
    disks: Arc<Disks>,
    key: CacheKey,
    copies: SmallVec<[Copy; 2]>,
    /// Those that ended early: what they have can still be read.
    ended: SmallVec<[Copy; 2]>,
}

/// One copy of it: on one disk, or in turns over several.
#[derive(Debug)]
struct Copy {
    /// In the order in which they take turns; the first has the record.
    turns: SmallVec<[usize; 8]>,
    owner: Owner,
    pieces: Vec<Piece>,
}

impl DiskFill {
    pub(super) fn new(disks: &Arc<Disks>, key: &CacheKey) -> Option<Self> {
        let turns = |home: usize| -> SmallVec<[usize; 8]> {
            match disks.layout {
                Layout::Stripe => {
                    let count = disks.slots.len();
                    let turns = (0..count).map(|turn| (home + turn) % count);
                    turns.filter(|disk| disks.is_working(*disk)).collect()
                }
                Layout::Single | Layout::Mirror | Layout::Hash => SmallVec::from_slice(&[home]),
            }
        };
        let homes = disks.homes(key).into_iter();
        let copy = |home: usize| {
            let owner = disks.disk(home)?.owner(key);
            Some(Copy { turns: turns(home), owner, pieces: Vec::new() })
        };
        let copies: SmallVec<[Copy; 2]> = homes.filter_map(copy).collect();
        let ended = SmallVec::new();
        (!copies.is_empty()).then(|| Self { disks: Arc::clone(disks), key: key.clone(), copies, ended })
    }

    /// Hands a piece to the disks, without waiting; false where the body is not stored any more.
    pub(crate) fn push(&mut self, bytes: &Bytes) -> bool {
        let copies = std::mem::take(&mut self.copies);
        for mut copy in copies {
            let turn = copy.pieces.len() % copy.turns.len().max(1);
            let disk = copy.turns.get(turn).and_then(|disk| self.disks.disk(*disk));
            match disk.and_then(|disk| disk.put_piece_of(copy.owner, bytes.clone()).ok()) {
                Some(piece) => {
                    copy.pieces.push(piece);
                    self.copies.push(copy);
                }
                None => self.ended.push(copy),
            }
        }
        !self.copies.is_empty()
    }

    /// A piece that was taken.
    pub(crate) fn piece(&self, index: usize) -> PieceCopies {
        let copies = self.copies.iter().chain(&self.ended);
        copies.filter_map(|copy| copy.pieces.get(index).cloned()).collect()
    }

    /// Keeps a piece readable, wherever it is; `None` where it is lost already.
    pub(crate) fn pin(&self, copies: &PieceCopies) -> Option<PiecePins> {
        let pins: PiecePins = copies.iter().filter_map(|piece| self.disks.pin(piece)).collect();
        (!pins.is_empty()).then_some(pins)
    }

    /// All of it was handed over. `None` where that is nothing.
    pub(crate) fn finish(self) -> Option<DiskPieces> {
        let Self { disks, key, copies, .. } = self;
        let mut whole: Option<DiskPieces> = None;
        for copy in copies {
            let home = copy.turns.first().copied().unwrap_or_default();
            let own = DiskPieces::new(&disks, &key, home, copy.pieces)?;
            match &mut whole {
                Some(whole) => whole.add(own),
                None => whole = Some(own),
            }
        }
        whole
    }
}
