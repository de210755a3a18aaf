//! What lies behind the lock of a growing body: its pieces, its readers' places, and who is to be woken.
//!
//! Everything here runs under the lock and returns the wakers instead of calling them. **Invariant**: a slot stands in
//! the list of its worker exactly while it has a waker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use larder_http::body::BodyError;
use slab::Slab;

use super::spill::{Place, Spilled};
use crate::budget::Reservation;
use crate::disks::PIECE_BYTES;
use crate::memory::MemoryStore;
use crate::stored::{PIECE_OVERHEAD_BYTES, StoredBody, compact};

thread_local! {
    static WORKER: usize = {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    };
}

/// Where a body is; see the diagram in the module above.
pub(super) enum Mode {
    Keeping {
        room: Reservation,
    },
    Passing {
        room: Option<Reservation>,
    },
    Whole(Arc<StoredBody>),
    /// What had come by then stays for those who read it.
    Broken {
        error: BodyError,
        _room: Option<Reservation>,
    },
}

/// Bytes as they came, and where they begin.
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

/// A reader's place.
pub(super) struct Slot {
    pub(super) position: u64,
    pub(super) waker: Option<Waker>,
    pub(super) worker: usize,
    pub(super) signalled: bool,
}

/// Where the bytes at a position are.
pub(super) enum Found {
    Here(Bytes),
    /// In this piece, from there on.
    Spilled(Place, usize),
}

/// Everything behind the lock.
pub(super) struct State {
    pub(super) mode: Mode,
    pub(super) pieces: VecDeque<Piece>,
    /// Pieces that lie on disks or in a file, from the beginning on. What is in memory goes on where they end, or overlaps.
    pub(super) spilled: Vec<Spilled>,
    pub(super) length: u64,
    pub(super) ended: bool,
    pub(super) readers: Slab<Slot>,
    /// Slots waiting for bytes, by worker.
    pub(super) parked: Vec<Vec<usize>>,
    pub(super) producer: Option<Waker>,
}

impl State {
    pub(super) fn add(&mut self, bytes: Bytes) {
        let start = self.length;
        self.length += bytes.len() as u64;
        self.pieces.push_back(Piece { start, bytes });
    }

    /// Bytes that lie on disks; the last piece of a body counts like the others.
    pub(super) fn spilled_bytes(&self) -> u64 {
        (self.spilled.len() * PIECE_BYTES) as u64
    }

    /// A further piece lies on the disks: what is in memory of it goes.
    pub(super) fn spilled(&mut self, piece: Spilled) {
        self.spilled.push(piece);
        let end = self.spilled_bytes();
        while self.pieces.front().is_some_and(|piece| piece.start + piece.bytes.len() as u64 <= end) {
            self.pieces.pop_front();
        }
    }

    /// Turns a body of which everything was kept into a whole one: `spilled`, where it lies on disks.
    pub(super) fn take_whole(
        &mut self,
        store: &MemoryStore,
        spilled: Option<StoredBody>,
    ) -> Option<Arc<StoredBody>> {
        if !matches!(self.mode, Mode::Keeping { .. }) {
            return None;
        }
        let lost = Mode::Broken { error: BodyError::Lost, _room: None };
        let Mode::Keeping { mut room } = std::mem::replace(&mut self.mode, lost) else {
            return None;
        };
        let pieces: Vec<Bytes> = self.pieces.drain(..).map(|piece| piece.bytes).collect();
        let body = Arc::new(spilled.unwrap_or_else(|| {
            let pieces = compact(pieces, self.length, store);
            room.shrink_to(self.length + pieces.len() as u64 * PIECE_OVERHEAD_BYTES);
            StoredBody::new(pieces, room)
        }));
        self.mode = Mode::Whole(Arc::clone(&body));
        Some(body)
    }

    /// One waker per worker that has parked readers; each of those wakes its neighbours when it runs.
    pub(super) fn signal(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for parked in &mut self.parked {
            if let Some(slot) = parked.pop().and_then(|slot| self.readers.get_mut(slot)) {
                slot.signalled = true;
                wakers.extend(slot.waker.take());
            }
        }
        wakers
    }

    /// The neighbours that a signalled reader has to wake.
    pub(super) fn pass_on(&mut self, slot: usize) -> Vec<Waker> {
        let Some(own) = self.readers.get_mut(slot) else {
            return Vec::new();
        };
        if !std::mem::take(&mut own.signalled) {
            return Vec::new();
        }
        let worker = own.worker;
        let parked = self.parked.get_mut(worker).map(std::mem::take).unwrap_or_default();
        let waker = |slot| self.readers.get_mut(slot).and_then(|slot| slot.waker.take());
        parked.into_iter().filter_map(waker).collect()
    }

    /// Takes a reader out of the list it is parked in. Slots are used again: one that stayed in the list would stand
    /// for its successor there, which may be parked with another worker.
    pub(super) fn unpark(&mut self, slot: usize) {
        let worker = self.readers.get(slot).map_or(0, |own| own.worker);
        if let Some(parked) = self.parked.get_mut(worker) {
            parked.retain(|other| *other != slot);
        }
    }

    pub(super) fn park(&mut self, slot: usize, waker: &Waker) {
        let worker = WORKER.with(|worker| *worker);
        if self.parked.len() <= worker {
            self.parked.resize_with(worker + 1, Vec::new);
        }
        if self.readers.get(slot).is_some_and(|own| own.waker.is_some() && own.worker != worker) {
            self.unpark(slot);
            if let Some(own) = self.readers.get_mut(slot) {
                own.waker = None;
            }
        }
        let Some(own) = self.readers.get_mut(slot) else {
            return;
        };
        let is_parked = own.waker.replace(waker.clone()).is_some();
        own.worker = worker;
        if !is_parked && let Some(parked) = self.parked.get_mut(worker) {
            parked.push(slot);
        }
    }

    /// Drops what every reader of a passing body has read.
    pub(super) fn trim(&mut self) {
        let slowest = self.readers.iter().map(|(_, slot)| slot.position).min();
        let Mode::Passing { room } = &mut self.mode else {
            return;
        };
        let keep_from = slowest.unwrap_or(u64::MAX);
        while self.pieces.front().is_some_and(|piece| piece.start + piece.bytes.len() as u64 <= keep_from) {
            self.pieces.pop_front();
        }
        if let Some(room) = room {
            room.shrink_to(self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum());
        }
    }

    /// Bytes in the pieces held now.
    pub(super) fn held(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// The bytes from `position` on that lie in one piece.
    pub(super) fn at(&self, position: u64) -> Option<Found> {
        if position >= self.length {
            return None;
        }
        if let Mode::Whole(body) = &self.mode
            && body.is_in_memory()
        {
            return body.at(position).map(Found::Here);
        }
        let first_here = self.pieces.front().map_or(u64::MAX, |piece| piece.start);
        if position < first_here {
            let piece = self.spilled.get(usize::try_from(position / PIECE_BYTES as u64).ok()?)?;
            let within = usize::try_from(position % PIECE_BYTES as u64).ok()?;
            return Some(Found::Spilled(piece.place.clone(), within));
        }
        let index = self.pieces.partition_point(|piece| piece.start + piece.bytes.len() as u64 <= position);
        let piece = self.pieces.get(index)?;
        let within = usize::try_from(position.checked_sub(piece.start)?).ok()?;
        Some(Found::Here(piece.bytes.slice(within..)))
    }
}
