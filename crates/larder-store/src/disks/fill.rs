//! A body on its way to disks, piece by piece.
//!
//! In: pieces, in order but perhaps not all of them, and the pieces of a part that lies there already. Out: the body, or what was
//! taken of it, as it lies on the disks. A disk that fails ends its copy; when the last copy has ended, the body is not stored.
//! A disk whose queue is full is no such end: the piece is taken by all copies or by none, so that those of a mirror stay alike.
//! Of a stripe any disk will do that has room. Dropped before its end it leaves pieces that nothing names, and that go with
//! their segment.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use smallvec::SmallVec;

use super::body::{DiskPieces, PieceCopies, PiecePins};
use super::{Disks, Layout};
use crate::disk::{Admitted, Owner, Piece, Refused};
use crate::key::CacheKey;

/// A body that arrives.
#[derive(Debug)]
pub(crate) struct DiskFill {
    disks: Arc<Disks>,
    key: CacheKey,
    copies: SmallVec<[FillCopy; 2]>,
    /// Those that ended early: what they have can still be read.
    ended: SmallVec<[FillCopy; 2]>,
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Taken,
    /// A queue is full; it may be offered again.
    Full,
    /// The body is not stored any more.
    Lost(Refused),
}

/// One copy of it: on one disk, or in turns over several.
#[derive(Debug)]
struct FillCopy {
    /// In the order in which they take turns; the first has the record.
    turns: SmallVec<[usize; 8]>,
    owner: Owner,
    /// By number; without those that were left out.
    pieces: Vec<Option<Piece>>,
}

impl FillCopy {
    /// Where a piece goes: to the disk whose turn it is, or the next one with room.
    fn admit(&self, disks: &Disks, number: usize, bytes: usize) -> Result<(usize, Admitted), Refused> {
        let mut why = Refused::Failing;
        for turn in 0..self.turns.len() {
            let at = (number + turn) % self.turns.len();
            let Some((index, disk)) = self.turns.get(at).and_then(|turn| Some((*turn, disks.disk(*turn)?)))
            else {
                continue;
            };
            match disk.admit_piece(bytes) {
                Ok(admitted) => return Ok((index, admitted)),
                Err(Refused::QueueFull) => why = Refused::QueueFull,
                Err(other) if why != Refused::QueueFull => why = other,
                Err(_) => {}
            }
        }
        Err(why)
    }
}

impl DiskFill {
    pub(super) fn new(disks: &Arc<Disks>, key: &CacheKey) -> Option<Self> {
        let homes = disks.homes(key).into_iter();
        let copies = homes.filter_map(|home| disks.copy_at(home, key, Vec::new())).collect();
        Self::of_copies(disks, key, copies)
    }

    /// Goes on with a body of which `part` has the pieces of these numbers. `None` where they are not all there any more.
    pub(crate) fn of_part(part: &DiskPieces, numbers: &[usize]) -> Option<Self> {
        let (disks, key) = (part.disks(), part.key());
        let count = numbers.last()? + 1;
        let copies = part.copies_there().filter(|(home, _)| disks.is_working(*home));
        let copies = copies.filter_map(|(home, there)| {
            if there.len() != numbers.len() {
                return None;
            }
            let mut pieces = vec![None; count];
            for (number, piece) in numbers.iter().zip(there) {
                *pieces.get_mut(*number)? = Some(piece.clone());
            }
            disks.copy_at(home, key, pieces)
        });
        Self::of_copies(disks, key, copies.collect())
    }

    fn of_copies(disks: &Arc<Disks>, key: &CacheKey, copies: SmallVec<[FillCopy; 2]>) -> Option<Self> {
        let ended = SmallVec::new();
        (!copies.is_empty()).then(|| Self { disks: Arc::clone(disks), key: key.clone(), copies, ended })
    }

    /// Hands the piece of this number to the disks, without waiting.
    pub(crate) fn offer(&mut self, number: usize, bytes: &Bytes) -> Offered {
        let mut places: SmallVec<[_; 2]> = SmallVec::new();
        for copy in &self.copies {
            match copy.admit(&self.disks, number, bytes.len()) {
                Err(Refused::QueueFull) => return Offered::Full,
                place => places.push(place),
            }
        }
        let mut why = Refused::Closed;
        for (mut copy, place) in std::mem::take(&mut self.copies).into_iter().zip(places) {
            let place = place
                .and_then(|(disk, admitted)| Ok((self.disks.disk(disk).ok_or(Refused::Failing)?, admitted)));
            match place {
                Ok((disk, admitted)) => {
                    let piece = disk.put_admitted(copy.owner, bytes.clone(), admitted);
                    copy.pieces.resize(copy.pieces.len().max(number + 1), None);
                    copy.pieces.get_mut(number).into_iter().for_each(|slot| *slot = Some(piece.clone()));
                    self.copies.push(copy);
                }
                Err(reason) => {
                    why = reason;
                    self.ended.push(copy);
                }
            }
        }
        if self.copies.is_empty() { Offered::Lost(why) } else { Offered::Taken }
    }

    /// The same for who does not try again.
    pub(super) fn push(&mut self, number: usize, bytes: &Bytes) -> bool {
        let offered = self.offer(number, bytes);
        if offered == Offered::Full {
            self.left_out(number);
        }
        offered == Offered::Taken
    }

    /// DiskCounts a piece that the disks do not get.
    pub(crate) fn left_out(&self, number: usize) {
        for copy in &self.copies {
            let turn = copy.turns.get(number % copy.turns.len().max(1));
            turn.and_then(|disk| self.disks.disk(*disk)).into_iter().for_each(|disk| disk.count_left_out());
        }
    }

    /// Wakes `waker` once there may be room again, or never will.
    pub(crate) fn await_room(&self, waker: &Waker) {
        let turns = self.copies.iter().flat_map(|copy| &copy.turns);
        turns.filter_map(|disk| self.disks.disk(*disk)).for_each(|disk| disk.await_room(waker));
    }

    /// Whether what waits is no more than one of so many parts of what may.
    pub(crate) fn is_drained(&self, parts: u64) -> bool {
        let is_drained = |disk: &usize| self.disks.disk(*disk).is_none_or(|disk| disk.is_drained(parts));
        self.copies.iter().all(|copy| copy.turns.iter().any(is_drained))
    }

    /// Sees to it that the queues can borrow so many bytes; false where that is no use. Evicts: for who holds no lock of memory's.
    pub(crate) fn make_room(&self, bytes: u64) -> bool {
        let bytes = bytes.saturating_mul(self.copies.len() as u64);
        self.disks.backlog.get().is_some_and(|backlog| backlog.make_room(bytes))
    }

    /// A piece that was taken, or was there before.
    pub(crate) fn piece(&self, number: usize) -> PieceCopies {
        let copies = self.copies.iter().chain(&self.ended);
        copies.filter_map(|copy| copy.pieces.get(number).cloned().flatten()).collect()
    }

    /// Keeps a piece readable, wherever it is; `None` where it is lost already.
    pub(crate) fn pin(&self, copies: &PieceCopies) -> Option<PiecePins> {
        let pins: PiecePins = copies.iter().filter_map(|piece| self.disks.pin(piece)).collect();
        (!pins.is_empty()).then_some(pins)
    }

    /// All of it was offered. What was taken, one piece behind the other; `None` where that is nothing.
    pub(crate) fn finish(self) -> Option<DiskPieces> {
        let Self { disks, key, copies, .. } = self;
        let mut whole: Option<DiskPieces> = None;
        for copy in copies {
            let home = copy.turns.first().copied().unwrap_or_default();
            let own = DiskPieces::new(&disks, &key, home, copy.pieces.into_iter().flatten())?;
            match &mut whole {
                Some(whole) => whole.add(own),
                None => whole = Some(own),
            }
        }
        whole
    }
}

impl Disks {
    /// A copy whose record lies on `home`, with what there is of it.
    fn copy_at(&self, home: usize, key: &CacheKey, pieces: Vec<Option<Piece>>) -> Option<FillCopy> {
        let turns = match self.layout {
            Layout::Stripe => {
                let count = self.slots.len();
                let turns = (0..count).map(|turn| (home + turn) % count);
                turns.filter(|disk| self.is_working(*disk)).collect()
            }
            Layout::Single | Layout::Mirror | Layout::Hash => SmallVec::from_slice(&[home]),
        };
        Some(FillCopy { turns, owner: self.disk(home)?.owner(key), pieces })
    }
}
