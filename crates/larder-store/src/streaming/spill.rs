//! A body that leaves memory for the disks, or for a plain file, while it arrives.
//!
//! In: its bytes, piece by piece. Out: full pieces, handed over where there is room for them; at its end where all of it lies, or
//! what was taken of it. The open piece is a copy of what readers have in memory until it is handed over.
//! A disk that did not keep up is asked again once a good part of what it had to write is written: so what it gets are long
//! runs, and the gaps between them are few. A file has no gaps: it is given up.

use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;

use super::Loss;
use crate::disks::{DiskFill, Offered, PIECE_BYTES, PieceCopies, PiecePins};
use crate::files::{Arriving, FileFill};
use crate::key::CacheKey;
use crate::memory::MemoryStore;
use crate::store::Store;
use crate::stored::StoredBody;

/// What a body that spills takes of memory at most: the open piece, one that is being handed over, and the same bytes as they
/// came.
pub(super) const SPILL_ROOM_BYTES: u64 = 3 * PIECE_BYTES as u64;

/// Of what may wait, the part that is left when a disk that did not keep up is asked again.
const DRAINED_PART: u64 = 2;
/// Of what may wait, the part that a body takes which nobody reads. Less than the one above, or it would keep others from
/// being asked for again.
const UNREAD_PART: u64 = 4;

/// Where a piece lies that has left memory.
#[derive(Clone)]
pub(super) enum ChunkLocation {
    Disks(PieceCopies),
    File(Arc<Arriving>),
}

/// A piece that has left memory. Its readers find it as long as the body grows or is read, also where the disk fails to
/// write it, or gives up what it was written to.
pub(super) struct Spilled {
    pub(super) place: ChunkLocation,
    _pins: Option<PiecePins>,
}

/// What became of the piece that is full.
pub(super) enum Handed {
    Taken(Spilled),
    /// There is no room for it at this moment.
    Full,
    /// The body is not stored any more.
    Lost(Loss),
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
    /// To a plain file where one `may_be_file`, else to disks. `None` where the store has none, or they do not take it.
    pub(super) fn begin(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        may_be_file: bool,
    ) -> Option<Self> {
        Some(Self::of(match may_be_file {
            true => Target::File(store.begin_file(key, declared)?),
            false => Target::Disks(Box::new(store.begin_fill(key, declared)?)),
        }))
    }

    /// Goes on with a part whose pieces are these; what they are is told of each.
    pub(super) fn of_part(
        part: &StoredBody,
        numbers: &[usize],
        mut spilled: impl FnMut(usize, Spilled),
    ) -> Option<Self> {
        let fill = DiskFill::of_part(part.on_disk()?, numbers)?;
        for number in numbers {
            let copies = fill.piece(*number);
            let pins = fill.pin(&copies)?;
            spilled(*number, Spilled { place: ChunkLocation::Disks(copies), _pins: Some(pins) });
        }
        Some(Self::of(Target::Disks(Box::new(fill))))
    }

    fn of(target: Target) -> Self {
        let open = Vec::with_capacity(PIECE_BYTES);
        Self { target, open, not_copied: None, full: None, number: 0, is_leaving_out: false, is_over: false }
    }

    /// What comes now is of the piece of this number; nothing is open.
    pub(super) fn go_to(&mut self, number: usize) {
        self.number = number;
    }

    /// Bytes that the open piece has, and may still take.
    pub(super) fn open_bytes(&self) -> (usize, usize) {
        let has = self.not_copied.unwrap_or(self.open.len());
        (has, PIECE_BYTES - has)
    }

    /// Adds bytes to the open piece, no more than it may take.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        debug_assert!(self.full.is_none() && bytes.len() <= self.open_bytes().1, "a piece at a time");
        if let Some(has) = &mut self.not_copied {
            *has += bytes.len();
            if *has >= PIECE_BYTES {
                self.full = Some(Bytes::new());
            }
            return;
        }
        self.open.extend_from_slice(bytes);
        if self.open.len() >= PIECE_BYTES {
            self.full = Some(Bytes::from(std::mem::replace(&mut self.open, Vec::with_capacity(PIECE_BYTES))));
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
        match &self.target {
            Target::Disks(fill) => self.is_over || (self.is_leaving_out && !fill.is_drained(DRAINED_PART)),
            Target::File(_) => false,
        }
    }

    fn is_room_plenty(&self) -> bool {
        match &self.target {
            Target::Disks(fill) => fill.is_drained(UNREAD_PART),
            Target::File(_) => true,
        }
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
        let spilled = match &mut self.target {
            Target::Disks(fill) => match fill.offer(self.number, piece) {
                Offered::Full => return Handed::Full,
                Offered::Lost(why) => return Handed::Lost(why.into()),
                Offered::Taken => {
                    let copies = fill.piece(self.number);
                    // Lost in this moment: it is in memory still, and goes on from there.
                    let Some(pins) = fill.pin(&copies) else { return Handed::Lost(Loss::Failing) };
                    Spilled { place: ChunkLocation::Disks(copies), _pins: Some(pins) }
                }
            },
            Target::File(fill) => match fill.try_write(piece) {
                Ok(true) => Spilled { place: ChunkLocation::File(Arc::clone(fill.content())), _pins: None },
                Ok(false) => return Handed::Full,
                Err(why) => return Handed::Lost(why.into()),
            },
        };
        self.is_leaving_out = false;
        self.next();
        Handed::Taken(spilled)
    }

    fn next(&mut self) {
        self.full = None;
        self.not_copied = None;
        self.number += 1;
    }

    fn make_room(&self) -> bool {
        let bytes = self.full.as_ref().map_or(0, Bytes::len) as u64;
        match &self.target {
            // A piece costs a little more than its bytes.
            Target::Disks(fill) => fill.make_room(bytes + 1024),
            Target::File(fill) => fill.make_room(bytes),
        }
    }

    /// Wakes `waker` once there may be room, or never will.
    pub(super) fn await_room(&self, waker: &Waker) {
        match &self.target {
            Target::Disks(fill) => fill.await_room(waker),
            Target::File(fill) => fill.await_room(waker),
        }
    }

    /// Whether a piece may be left out of it.
    pub(super) fn may_have_gaps(&self) -> bool {
        matches!(self.target, Target::Disks(_))
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
        if let Target::Disks(fill) = &self.target {
            fill.left_out(self.number);
        }
        self.is_leaving_out = true;
        self.next();
    }

    /// No further piece is kept.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
    }

    /// The body is given up, because what takes it does not keep up.
    pub(super) fn give_up(self) {
        match &self.target {
            Target::Disks(fill) => fill.left_out(self.number),
            Target::File(fill) => fill.left_behind(),
        }
    }

    /// The body has ended, and all of it was offered. `None` where nothing was taken, or it was lost meanwhile.
    pub(super) fn finish(self, memory: &Arc<MemoryStore>) -> Option<StoredBody> {
        match self.target {
            Target::Disks(fill) => StoredBody::on_disks(memory, fill.finish()?),
            Target::File(fill) => Some(StoredBody::filled(fill)),
        }
    }
}

/// The numbers of the pieces that these runs of a body of `complete` bytes are; `None` where they are not whole pieces.
pub(super) fn numbers(runs: impl Iterator<Item = Range<u64>>, complete: u64) -> Option<Vec<usize>> {
    let piece = PIECE_BYTES as u64;
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
