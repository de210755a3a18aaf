//! A body that leaves memory for a tier while it arrives.
//!
//! In: its bytes, piece by piece. Out: full pieces, handed over where there is room for them; at its end where all of it lies, or
//! what was taken of it. The open piece is a copy of what readers have in memory until it is handed over.
//! A disk that did not keep up is asked again once a good part of what it had to write is written: so what it gets are long
//! runs, and the gaps between them are few. A file has no gaps: it is given up.

use larder_tier::Loss;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use larder_tier::{CHUNK_BYTES, Fill, Offered, StoredChunk};

use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::store::Store;
use crate::stored::StoredBody;

/// What a body that spills takes of memory at most: the open piece, one that is being handed over, and the same bytes as they
/// came.
pub(super) const SPILL_ROOM_BYTES: u64 = 3 * CHUNK_BYTES as u64;

/// Of what may wait, the part that is left when a disk that did not keep up is asked again.
const DRAINED_PART: u64 = 2;
/// Of what may wait, the part that a body takes which nobody reads. Less than the one above, or it would keep others from
/// being asked for again.
const UNREAD_PART: u64 = 4;

/// What became of the piece that is full.
pub(super) enum Handed {
    Taken(Arc<dyn StoredChunk>),
    /// There is no room for it at this moment.
    Full,
    /// The body is not stored any more.
    Lost(Loss),
}

/// The producer's side of it.
pub(super) struct Spill {
    fill: Box<dyn Fill>,
    open: Vec<u8>,
    /// Bytes of the open piece, where it will be left out and is not copied.
    not_copied: Option<usize>,
    /// A piece that waits to be handed over; without its bytes where they were not copied.
    full: Option<Bytes>,
    /// Which piece is open, or full.
    number: usize,
    is_leaving_out: bool,
    /// Nothing more is handed over.
    is_over: bool,
}

impl Spill {
    /// To this tier of the store. `None` where it does not take it now.
    pub(super) fn begin(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        tier: Option<usize>,
    ) -> Option<Self> {
        Some(Self::of(store.begin_fill(tier?, key, declared)?))
    }

    /// Goes on with a part whose pieces are these; where they lie is told of each.
    pub(super) fn of_part(
        store: &Store,
        part: &StoredBody,
        numbers: &[usize],
        mut spilled: impl FnMut(usize, Arc<dyn StoredChunk>),
    ) -> Option<Self> {
        Some(Self::of(store.fill_up(part, numbers, &mut spilled)?))
    }

    fn of(fill: Box<dyn Fill>) -> Self {
        let open = Vec::with_capacity(CHUNK_BYTES);
        Self { fill, open, not_copied: None, full: None, number: 0, is_leaving_out: false, is_over: false }
    }

    /// What comes now is of the piece of this number; nothing is open.
    pub(super) fn go_to(&mut self, number: usize) {
        self.number = number;
    }

    /// Bytes that the open piece has, and may still take.
    pub(super) fn open_bytes(&self) -> (usize, usize) {
        let has = self.not_copied.unwrap_or(self.open.len());
        (has, CHUNK_BYTES - has)
    }

    /// Adds bytes to the open piece, no more than it may take.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        debug_assert!(self.full.is_none() && bytes.len() <= self.open_bytes().1, "a piece at a time");
        if let Some(has) = &mut self.not_copied {
            *has += bytes.len();
            if *has >= CHUNK_BYTES {
                self.full = Some(Bytes::new());
            }
            return;
        }
        self.open.extend_from_slice(bytes);
        if self.open.len() >= CHUNK_BYTES {
            self.full = Some(Bytes::from(std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK_BYTES))));
        }
    }

    /// The body has ended: the open piece is as long as it is.
    pub(super) fn close_piece(&mut self) {
        if self.not_copied.is_some_and(|has| has > 0) {
            self.full = Some(Bytes::new());
        } else if !self.open.is_empty() {
            // It takes no more memory than it has bytes.
            self.open.shrink_to_fit();
            self.full = Some(Bytes::from(std::mem::take(&mut self.open)));
        }
    }

    /// The number of a piece that waits to be handed over.
    pub(super) fn waits(&self) -> Option<usize> {
        self.full.as_ref().map(|_| self.number)
    }

    /// Hands the full piece over, without waiting. Evicts where that makes room: not to be called under a lock of memory's.
    /// A body without readers leaves most of the disks' queues to bodies that have some.
    pub(super) fn hand_over(&mut self, is_read: bool) -> Handed {
        if self.is_open_left_out() || self.is_kept_back() || !(is_read || self.is_room_plenty()) {
            return Handed::Full;
        }
        match self.try_hand_over() {
            Handed::Full if is_read && self.make_room() => self.try_hand_over(),
            handed => handed,
        }
    }

    /// Whether nothing is handed over at this moment.
    pub(super) fn is_kept_back(&self) -> bool {
        self.is_over || (self.is_leaving_out && !self.fill.is_drained(DRAINED_PART))
    }

    fn is_room_plenty(&self) -> bool {
        self.fill.is_drained(UNREAD_PART)
    }

    /// The piece that is open, and empty, will be left out.
    pub(super) fn leave_out_open(&mut self) {
        self.not_copied = Some(0);
    }

    /// Whether the piece that is open, or full, will be left out.
    pub(super) fn is_open_left_out(&self) -> bool {
        self.not_copied.is_some()
    }

    fn try_hand_over(&mut self) -> Handed {
        let Some(piece) = &self.full else { return Handed::Lost(Loss::Failing) };
        let chunk = match self.fill.offer(self.number, piece) {
            Offered::Full => return Handed::Full,
            Offered::Lost(why) => return Handed::Lost(why),
            Offered::Taken(chunk) => chunk,
        };
        self.is_leaving_out = false;
        self.next();
        Handed::Taken(chunk)
    }

    fn next(&mut self) {
        self.full = None;
        self.not_copied = None;
        self.number += 1;
    }

    fn make_room(&self) -> bool {
        let bytes = self.full.as_ref().map_or(0, Bytes::len) as u64;
        self.fill.make_room(bytes)
    }

    /// Wakes `waker` once there may be room, or never will.
    pub(super) fn await_room(&self, waker: &Waker) {
        self.fill.await_room(waker);
    }

    /// Whether a piece may be left out of it.
    pub(super) fn may_have_gaps(&self) -> bool {
        self.fill.may_have_gaps()
    }

    /// Whether the piece is left out right after another one.
    pub(super) fn goes_on_leaving_out(&self) -> bool {
        self.is_leaving_out
    }

    /// Whether nothing more will be handed over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The full piece is not kept.
    pub(super) fn leave_out(&mut self) {
        self.fill.left_out(self.number);
        self.is_leaving_out = true;
        self.next();
    }

    /// No further piece is kept.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
    }

    /// The body is given up, because what takes it does not keep up.
    pub(super) fn give_up(mut self) {
        self.fill.left_out(self.number);
    }

    /// The body has ended, and all of it was offered. `None` where nothing was taken, or it was lost meanwhile.
    pub(super) fn finish(self, memory: &Arc<MemoryStore>) -> Option<StoredBody> {
        StoredBody::outside(memory, self.fill.finish()?)
    }
}

/// The numbers of the pieces that these runs of a body of `complete` bytes are; `None` where they are not whole pieces.
pub(super) fn numbers(runs: impl Iterator<Item = Range<u64>>, complete: u64) -> Option<Vec<usize>> {
    let piece = CHUNK_BYTES as u64;
    let mut numbers = Vec::new();
    for run in runs {
        if run.start % piece != 0 || (run.end % piece != 0 && run.end != complete) {
            return None;
        }
        let number = |at: u64| usize::try_from(at).ok();
        numbers.extend(number(run.start / piece)?..number(run.end.div_ceil(piece))?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests;
