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
use larder_tier::fill::BoxFuture;
use larder_tier::{BodySource, Fill, Loss, Offered, StoredChunk};
use smallvec::SmallVec;

use super::body::{DiskPieces, PieceCopies, PiecePins};
use super::{Disks, Layout};
use crate::engine::{Admitted, Owner, Piece, Refused};
use larder_tier::CacheKey;

/// A body that arrives.
#[derive(Debug)]
pub(crate) struct DiskFill {
    disks: Arc<Disks>,
    key: CacheKey,
    copies: SmallVec<[FillCopy; 2]>,
    /// Those that ended early: what they have can still be read.
    ended: SmallVec<[FillCopy; 2]>,
}

impl From<Refused> for Loss {
    fn from(why: Refused) -> Self {
        match why {
            Refused::QueueFull => Self::QueueFull,
            Refused::NoRoom | Refused::TooLarge => Self::NoRoom,
            Refused::Failing | Refused::PieceLost | Refused::Closed => Self::Failing,
        }
    }
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    /// A queue is full; it may be offered again.
    Full,
    /// The body is not stored any more.
    Lost(Refused),
}

/// A piece that left memory, on each disk that has it, and what keeps it readable.
struct TakenPiece {
    disks: Arc<Disks>,
    copies: PieceCopies,
    _pins: PiecePins,
}

impl StoredChunk for TakenPiece {
    fn read(self: Arc<Self>, within: usize) -> BoxFuture<'static, Option<Bytes>> {
        Box::pin(async move {
            let bytes = match self.disks.piece_now(&self.copies) {
                Some(bytes) => bytes,
                None => self.disks.read_piece(&self.copies).await.ok()?,
            };
            (within < bytes.len()).then(|| bytes.slice(within..))
        })
    }
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
            for (number, piece) in numbers.iter().zip(&*there) {
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
    fn take(&mut self, number: usize, bytes: &Bytes) -> Taken {
        let mut places: SmallVec<[_; 2]> = SmallVec::new();
        for copy in &self.copies {
            match copy.admit(&self.disks, number, bytes.len()) {
                Err(Refused::QueueFull) => return Taken::Full,
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
        if self.copies.is_empty() { Taken::Lost(why) } else { Taken::Yes }
    }

    /// The same for who does not try again.
    pub(super) fn push(&mut self, number: usize, bytes: &Bytes) -> bool {
        let taken = self.take(number, bytes);
        if taken == Taken::Full {
            self.count_left_out(number);
        }
        taken == Taken::Yes
    }

    /// Counts a piece that the disks do not get.
    fn count_left_out(&self, number: usize) {
        for copy in &self.copies {
            let turn = copy.turns.get(number % copy.turns.len().max(1));
            turn.and_then(|disk| self.disks.disk(*disk)).into_iter().for_each(|disk| disk.count_left_out());
        }
    }

    /// A piece that was taken, or was there before.
    fn piece(&self, number: usize) -> PieceCopies {
        let copies = self.copies.iter().chain(&self.ended);
        copies.filter_map(|copy| copy.pieces.get(number).cloned().flatten()).collect()
    }

    /// The same, readable for as long as it is held; `None` where it is lost already.
    pub(super) fn chunk(&self, number: usize) -> Option<Arc<dyn StoredChunk>> {
        let copies = self.piece(number);
        let pins = self.pin(&copies)?;
        Some(Arc::new(TakenPiece { disks: Arc::clone(&self.disks), copies, _pins: pins }))
    }

    /// Keeps a piece readable, wherever it is; `None` where it is lost already.
    fn pin(&self, copies: &PieceCopies) -> Option<PiecePins> {
        let pins: PiecePins = copies.iter().filter_map(|piece| self.disks.pin(piece)).collect();
        (!pins.is_empty()).then_some(pins)
    }

    /// All of it was offered. What was taken, one piece behind the other; `None` where that is nothing.
    pub(super) fn finish_pieces(self) -> Option<DiskPieces> {
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

impl Fill for DiskFill {
    fn offer(&mut self, number: usize, chunk: &Bytes) -> Offered {
        match self.take(number, chunk) {
            Taken::Full => Offered::Full,
            Taken::Lost(why) => Offered::Lost(why.into()),
            // Lost in this moment: it is in memory still, and goes on from there.
            Taken::Yes => self.chunk(number).map_or(Offered::Lost(Loss::Failing), Offered::Taken),
        }
    }

    fn left_out(&mut self, number: usize) {
        self.count_left_out(number);
    }

    fn may_have_gaps(&self) -> bool {
        true
    }

    fn await_room(&self, waker: &Waker) {
        let turns = self.copies.iter().flat_map(|copy| &copy.turns);
        turns.filter_map(|disk| self.disks.disk(*disk)).for_each(|disk| disk.await_room(waker));
    }

    fn is_drained(&self, parts: u64) -> bool {
        let is_drained = |disk: &usize| self.disks.disk(*disk).is_none_or(|disk| disk.is_drained(parts));
        self.copies.iter().all(|copy| copy.turns.iter().any(is_drained))
    }

    fn make_room(&self, bytes: u64) -> bool {
        // A piece costs a little more than its bytes.
        let bytes = (bytes + 1024).saturating_mul(self.copies.len() as u64);
        self.disks.backlog.get().is_some_and(|backlog| backlog.make_room(bytes))
    }

    fn finish(self: Box<Self>) -> Option<Arc<dyn BodySource>> {
        Some(Arc::new(self.finish_pieces()?))
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
