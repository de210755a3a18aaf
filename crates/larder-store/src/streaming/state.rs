//! What lies behind the lock of a streaming body: its pieces, its readers' places, and who is to be woken.
//!
//! Everything here runs under the lock and returns the wakers instead of calling them. **Invariant**: a slot stands in
//! the list of its worker exactly while it has a waker.

use larder_tier::Loss;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use http::HeaderMap;
use larder_http::body::BodyError;
use larder_tier::{CHUNK_BYTES, StoredChunk};
use slab::Slab;

use crate::budget::Reservation;
use crate::lease::Lease;
use crate::stored::StoredBody;

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
    /// Some of it was left out of what is kept.
    Gaps {
        room: Reservation,
    },
    Passing {
        room: Option<Reservation>,
    },
    Whole(Whole),
    /// What had come by then stays for those who read it.
    Broken {
        error: BodyError,
        _room: Option<Reservation>,
    },
}

/// A whole body: as it lies there, or by a lease, where it is large and in memory.
pub(super) enum Whole {
    Body(Arc<StoredBody>),
    Leased(Arc<Lease>),
}

impl Whole {
    pub(super) fn of(body: &Arc<StoredBody>) -> Self {
        match body.may_be_let_go() {
            true => Self::Leased(Lease::of(body)),
            false => Self::Body(Arc::clone(body)),
        }
    }
}

/// A body that is about to end, as it lies behind the lock.
pub(super) struct Sealed {
    /// Its last bytes, where they are not on the disks already.
    pub(super) tail: Option<Bytes>,
    /// The length of the whole.
    pub(super) length: u64,
    pub(super) kept: KeptBody,
}

/// What is kept of it.
pub(super) enum KeptBody {
    /// All of it: what is in memory of that, and the room for it.
    Whole {
        pieces: Vec<Bytes>,
        room: Reservation,
    },
    /// These bytes, on disks.
    Runs(Vec<Range<u64>>),
    Nothing,
}

/// Bytes as they came, and where they begin.
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

/// A reader's place.
pub(super) struct ReaderSlot {
    pub(super) position: u64,
    /// How far it wants to read.
    pub(super) end: u64,
    pub(super) waker: Option<Waker>,
    pub(super) worker: usize,
    pub(super) signalled: bool,
}

/// Where the bytes at a position are.
pub(super) enum BytesAt {
    Here(Bytes),
    /// In this piece, from there on.
    Spilled(Arc<dyn StoredChunk>, usize),
    /// Its store has let go of it.
    Nowhere,
}

/// Everything behind the lock.
pub(super) struct BodyState {
    pub(super) mode: Mode,
    pub(super) pieces: VecDeque<Chunk>,
    /// Pieces that lie on disks or in a file, by number. What is in memory overlaps them, or is what they lack.
    pub(super) spilled: Vec<Option<Arc<dyn StoredChunk>>>,
    /// Where the next byte belongs. All before it has come, or lay on disks; of what is behind it some may lie there.
    pub(super) length: u64,
    /// Where the body ends, as its framing says.
    pub(super) declared: Option<u64>,
    /// Bytes are gone that readers had read: nobody can begin any more.
    pub(super) has_dropped: bool,
    pub(super) ended: bool,
    pub(super) loss: Option<Loss>,
    pub(super) readers: Slab<ReaderSlot>,
    /// Slots waiting for bytes, by worker.
    pub(super) parked: Vec<Vec<usize>>,
    pub(super) producer: Option<Waker>,
    /// What comes behind a body that passed.
    pub(super) trailers: Option<Box<HeaderMap>>,
}

impl BodyState {
    pub(super) fn add(&mut self, bytes: Bytes) {
        let start = self.length;
        self.length += bytes.len() as u64;
        self.pieces.push_back(Chunk { start, bytes });
    }

    /// Whether so many more bytes would be more than the framing said.
    pub(super) fn goes_beyond(&self, bytes: usize) -> bool {
        self.declared.is_some_and(|declared| self.length + bytes as u64 > declared)
    }

    /// A further piece lies on the disks: what is in memory of it goes.
    pub(super) fn spilled(&mut self, number: usize, piece: Arc<dyn StoredChunk>) {
        if self.spilled.len() <= number {
            self.spilled.resize_with(number + 1, || None);
        }
        if let Some(slot) = self.spilled.get_mut(number) {
            *slot = Some(piece);
        }
        let spilled = &self.spilled;
        let lies_there = |piece: &Chunk| {
            let (first, end) =
                (number_of(piece.start), number_of(piece.start + piece.bytes.len() as u64 - 1));
            (first..=end).all(|number| spilled.get(number).is_some_and(Option::is_some))
        };
        self.pieces.retain(|piece| !lies_there(piece));
    }

    fn is_spilled(&self, number: usize) -> bool {
        self.spilled.get(number).is_some_and(Option::is_some)
    }

    /// The number of the piece that the next byte is of.
    pub(super) fn piece(&self) -> usize {
        number_of(self.length)
    }

    /// Where a piece begins that lies on disks, what comes next is behind it.
    pub(super) fn skip_spilled(&mut self) {
        self.length = self.behind_spilled(self.length);
    }

    fn behind_spilled(&self, mut length: u64) -> u64 {
        let Some(complete) = self.declared else { return length };
        while length < complete
            && length.is_multiple_of(CHUNK_BYTES as u64)
            && self.is_spilled(number_of(length))
        {
            length = complete.min(length + CHUNK_BYTES as u64);
        }
        length
    }

    /// Bytes up to the next piece that lies on disks already.
    pub(super) fn until_spilled(&self) -> Option<usize> {
        let next = (self.piece()..self.spilled.len()).find(|number| self.is_spilled(*number))?;
        usize::try_from(((next * CHUNK_BYTES) as u64).checked_sub(self.length)?).ok()
    }

    /// Whether a reader has fewer than so many bytes before it, and more are to come.
    pub(super) fn is_short(&self, bytes: u64) -> bool {
        let is_short = |slot: &ReaderSlot| {
            slot.position < slot.end
                && self.length < slot.position.saturating_add(bytes)
                && !self.is_spilled(number_of(slot.position))
        };
        self.declared != Some(self.length) && self.readers.iter().any(|(_, slot)| is_short(slot))
    }

    /// Something is left out from now on; `more` is for what readers have not read of that.
    pub(super) fn begin_gaps(&mut self, more: Option<Reservation>) {
        if !matches!(self.mode, Mode::Keeping { .. }) {
            return;
        }
        self.loss = Some(Loss::QueueFull);
        if let Mode::Keeping { mut room } = std::mem::replace(&mut self.mode, Mode::Passing { room: None }) {
            more.into_iter().for_each(|more| room.absorb(more));
            self.mode = Mode::Gaps { room };
        }
    }

    /// How many gaps there are so far, one at the end included.
    pub(super) fn gaps(&self) -> usize {
        let before = std::iter::once(true).chain(self.spilled.iter().map(Option::is_some));
        before.zip(&self.spilled).filter(|(before, now)| *before && now.is_none()).count()
    }

    /// Which bytes lie on disks, of a body of `complete` bytes.
    pub(super) fn runs(&self, complete: u64) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for number in (0..self.spilled.len()).filter(|number| self.is_spilled(*number)) {
            let start = (number * CHUNK_BYTES) as u64;
            let end = complete.min(start + CHUNK_BYTES as u64);
            match runs.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }

    /// What is kept of a body that ends with `tail`, taken out of here without a copy: nothing of it shows yet.
    pub(super) fn seal(&mut self, tail: Option<Bytes>) -> Sealed {
        // A last piece that came as one and went to the disks has been counted where it lies.
        let tail = tail.filter(|tail| !self.goes_beyond(tail.len()));
        // Behind it lies nothing but what was there before.
        let length = match &tail {
            Some(tail) => self.behind_spilled(self.length + tail.len() as u64),
            None => self.length,
        };
        let kept = match &mut self.mode {
            Mode::Gaps { .. } => KeptBody::Runs(self.runs(length)),
            Mode::Keeping { room } => {
                let pieces = self.pieces.iter().map(|piece| piece.bytes.clone()).chain(tail.clone());
                KeptBody::Whole { pieces: pieces.collect(), room: room.take() }
            }
            Mode::Passing { .. } | Mode::Whole(_) | Mode::Broken { .. } => KeptBody::Nothing,
        };
        Sealed { tail, length, kept }
    }

    /// The body has ended: what was sealed shows, and its readers read it as it lies there.
    pub(super) fn end(&mut self, tail: Option<Bytes>, whole: Option<Whole>, trailers: Option<HeaderMap>) {
        if let Some(tail) = tail {
            self.add(tail);
            self.skip_spilled();
        }
        // What is kept has none.
        self.trailers =
            trailers.filter(|_| matches!(self.mode, Mode::Passing { .. } | Mode::Gaps { .. })).map(Box::new);
        if let Some(whole) = whole {
            self.mode = Mode::Whole(whole);
            self.pieces.clear();
        }
        self.ended = true;
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

    /// Drops what every reader has read of a body that passes, or was left out.
    pub(super) fn trim(&mut self) {
        let slowest = self.readers.iter().map(|(_, slot)| slot.position).min();
        if !matches!(self.mode, Mode::Passing { .. } | Mode::Gaps { .. }) {
            return;
        }
        let keep_from = slowest.unwrap_or(u64::MAX);
        while self.pieces.front().is_some_and(|piece| piece.start + piece.bytes.len() as u64 <= keep_from) {
            self.pieces.pop_front();
            self.has_dropped = true;
        }
        if let Mode::Passing { room: Some(room) } = &mut self.mode {
            room.shrink_to(self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum());
        }
    }

    /// Bytes in the pieces held now.
    pub(super) fn held(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// Whether its store has let go of it.
    pub(super) fn is_let_go(&self) -> bool {
        matches!(&self.mode, Mode::Whole(Whole::Leased(lease)) if !lease.is_in_memory())
    }

    /// The bytes from `position` on that lie in one piece.
    pub(super) fn at(&self, position: u64) -> Option<BytesAt> {
        match &self.mode {
            Mode::Whole(Whole::Body(body)) if body.is_in_memory() => {
                return body.at(position).map(BytesAt::Here);
            }
            Mode::Whole(Whole::Leased(lease)) if position < self.length => {
                return Some(lease.at(position).map_or(BytesAt::Nowhere, BytesAt::Here));
            }
            _ => {}
        }
        let index = self.pieces.partition_point(|piece| piece.start + piece.bytes.len() as u64 <= position);
        if let Some(piece) = self.pieces.get(index).filter(|piece| piece.start <= position) {
            let within = usize::try_from(position - piece.start).ok()?;
            return Some(BytesAt::Here(piece.bytes.slice(within..)));
        }
        // Of what lay there before, a reader may be ahead of the producer.
        if position >= self.declared.unwrap_or(self.length) {
            return None;
        }
        let piece = self.spilled.get(number_of(position))?.as_ref()?;
        let within = usize::try_from(position % CHUNK_BYTES as u64).ok()?;
        Some(BytesAt::Spilled(Arc::clone(piece), within))
    }
}

/// The number of the piece that has the byte at `position`.
fn number_of(position: u64) -> usize {
    usize::try_from(position / CHUNK_BYTES as u64).unwrap_or(usize::MAX)
}
