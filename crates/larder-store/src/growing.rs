//! A body while it arrives, with any number of readers.
//!
//! ```text
//!            push (room reserved)            finish
//!   Keeping ----------------------> Keeping --------> Whole   (shared with the index)
//!      | outgrow: room ran out                |
//!      v                                      | abort
//!   Passing --- push waits for the slowest -->+-------> Broken (readers are cut)
//! ```
//!
//! While it is *keeping*, all bytes stay, the producer never waits, and new readers may join at the start. Once it is
//! *passing*, bytes go through a window of [`WINDOW_BYTES`]: nobody new joins, the slowest reader sets the pace, and
//! when the last one leaves the producer is told to stop.
//!
//! One lock guards it all; it is held for the length of a look and never across a wait. A new piece wakes one parked
//! reader per worker, and that reader wakes its neighbours, so that a producer never pays for the readers of other
//! workers one by one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use larder_http::body::BodyError;
use parking_lot::Mutex;
use slab::Slab;

use crate::budget::Reservation;
use crate::memory::MemoryStore;
use crate::stored::StoredBody;

/// How far the fastest reader of a passing body may be ahead of the slowest.
pub const WINDOW_BYTES: u64 = 1024 * 1024;

/// What a piece costs beside its bytes: the handle, its shared count, the allocator's rounding.
const PIECE_OVERHEAD_BYTES: u64 = 96;

/// Bodies that arrived in pieces smaller than this on average are put together when they are whole.
const COMPACT_BELOW_BYTES: u64 = 16 * 1024;

/// The size of the pieces that putting together makes.
const COMPACT_PIECE_BYTES: usize = 256 * 1024;

/// Larger bodies are left as they came: the copy is made under the lock, and what it saves is small there.
const COMPACT_MAX_BYTES: u64 = 1024 * 1024;

thread_local! {
    static WORKER: usize = {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    };
}

/// Why a push did not take the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// A passing body that nobody reads any more: stop the fetch.
    #[error("nobody reads any more")]
    NoReaders,
}

enum Mode {
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

struct Piece {
    start: u64,
    bytes: Bytes,
}

struct Slot {
    position: u64,
    waker: Option<Waker>,
    worker: usize,
    signalled: bool,
}

struct State {
    mode: Mode,
    pieces: VecDeque<Piece>,
    length: u64,
    ended: bool,
    readers: Slab<Slot>,
    /// Slots waiting for bytes, by worker.
    parked: Vec<Vec<usize>>,
    producer: Option<Waker>,
}

/// A body while it arrives. Owned by the fetch that fills it and by its readers.
pub struct Growing {
    store: Arc<MemoryStore>,
    declared: Option<u64>,
    max_bytes: u64,
    state: Mutex<State>,
}

impl std::fmt::Debug for Growing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Growing").field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl Growing {
    /// Reserves room for a body: all of `declared` bytes, or a first piece where the length is not known.
    /// `None` where there is no room, or the body is larger than the store takes.
    pub fn keep(store: &Arc<MemoryStore>, declared: Option<u64>) -> Option<Arc<Self>> {
        let first = declared.unwrap_or(0);
        if first > store.max_object() {
            return None;
        }
        // As many pieces as a body of this length usually comes in; more of them ask for more.
        let pieces = first / COMPACT_BELOW_BYTES + 1;
        let room = store.reserve(first.saturating_add(pieces * PIECE_OVERHEAD_BYTES))?;
        Some(Self::new(store, declared, Mode::Keeping { room }))
    }

    /// A body for which there is no room: it passes from the start. Readers join until the first bytes are dropped.
    pub fn pass(store: &Arc<MemoryStore>, declared: Option<u64>) -> Arc<Self> {
        Self::new(store, declared, Mode::Passing { room: None })
    }

    fn new(store: &Arc<MemoryStore>, declared: Option<u64>, mode: Mode) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            declared,
            max_bytes: store.max_object(),
            state: Mutex::new(State {
                mode,
                pieces: VecDeque::new(),
                length: 0,
                ended: false,
                readers: Slab::new(),
                parked: Vec::new(),
                producer: None,
            }),
        })
    }

    /// The length in bytes, where the framing told it or the body has ended well.
    pub fn complete_length(&self) -> Option<u64> {
        self.declared.or_else(|| match &self.state.lock().mode {
            Mode::Whole(body) => Some(body.length()),
            _ => None,
        })
    }

    /// Readers at this moment.
    pub fn readers(&self) -> usize {
        self.state.lock().readers.len()
    }

    /// Whether it broke: it takes no readers then, and never will.
    pub fn is_broken(&self) -> bool {
        matches!(self.state.lock().mode, Mode::Broken { .. })
    }

    /// A reader of `range` (the whole where `None`), or `None` where nobody may join any more.
    pub fn reader(self: &Arc<Self>, range: Option<std::ops::Range<u64>>) -> Option<Reader> {
        let mut state = self.state.lock();
        let first_kept = state.pieces.front().map_or(state.length, |piece| piece.start);
        if matches!(state.mode, Mode::Broken { .. })
            || (first_kept > 0 && !matches!(state.mode, Mode::Whole(_)))
        {
            return None;
        }
        let range = range.unwrap_or(0..u64::MAX);
        let slot =
            state.readers.insert(Slot { position: range.start, waker: None, worker: 0, signalled: false });
        Some(Reader { growing: Arc::clone(self), slot, position: range.start, end: range.end })
    }

    /// Adds bytes. While keeping, they are copied into a piece of their own and this never waits; when the room is
    /// used up the body starts passing. While passing, waits until the slowest reader has made place.
    ///
    /// # Errors
    /// [`PushError::NoReaders`] when a passing body has no reader left.
    ///
    /// # Cancel safety
    /// A push that is dropped while it waits has added nothing.
    pub async fn push(&self, bytes: Bytes) -> Result<(), PushError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.push_kept(&bytes) {
            return Ok(());
        }
        std::future::poll_fn(|cx| self.poll_pass(cx, &bytes)).await
    }

    /// Whether the bytes were kept.
    fn push_kept(&self, bytes: &Bytes) -> bool {
        if !self.make_room(bytes.len() as u64) {
            return false;
        }
        let piece = Bytes::copy_from_slice(bytes);
        let mut state = self.state.lock();
        state.add(piece);
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// Makes room for so many more bytes to be kept; where there is none the body passes from now on. The room may have
    /// to be found by evicting, which is done outside the lock: only the producer makes room.
    fn make_room(&self, bytes: u64) -> bool {
        let (total, needed, held) = {
            let state = self.state.lock();
            let Mode::Keeping { room } = &state.mode else {
                return false;
            };
            let total = state.length + bytes;
            let pieces = state.pieces.len() as u64 + 1;
            (total, total.max(self.declared.unwrap_or(0)) + pieces * PIECE_OVERHEAD_BYTES, room.bytes())
        };
        if total > self.max_bytes {
            self.outgrow();
            return false;
        }
        if needed <= held {
            return true;
        }
        // Where the length is unknown the room grows by doubling, so that evictions come in few strides; where
        // doubling does not fit, the exact need may.
        let wish = (needed - held).max(if self.declared.is_none() { held.min(WINDOW_BYTES) } else { 0 });
        let more = self.store.reserve(wish).or_else(|| self.store.reserve(needed - held));
        let Some(more) = more else {
            self.outgrow();
            return false;
        };
        if let Mode::Keeping { room } = &mut self.state.lock().mode {
            room.absorb(more);
        }
        true
    }

    fn poll_pass(&self, cx: &mut Context<'_>, bytes: &Bytes) -> Poll<Result<(), PushError>> {
        let mut state = self.state.lock();
        if state.readers.is_empty() {
            return Poll::Ready(Err(PushError::NoReaders));
        }
        // Read bytes stay until their place is needed, so that clients told of the body a moment ago can still begin.
        if state.held() + bytes.len() as u64 > WINDOW_BYTES
            || self.store.reserve_free(bytes.len() as u64).is_none()
        {
            state.trim();
        }
        let in_window = state.held();
        let fits = in_window + bytes.len() as u64 <= WINDOW_BYTES;
        // One piece may always pass, even when the store has no room for a window: the exchange goes on.
        let room = if in_window == 0 || fits { self.store.reserve_free(bytes.len() as u64) } else { None };
        if in_window > 0 && room.is_none() {
            state.producer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if let Mode::Passing { room: held } = &mut state.mode {
            match (held.as_mut(), room) {
                (Some(held), Some(room)) => held.absorb(room),
                (None, room) => *held = room,
                (Some(_), None) => {}
            }
        }
        state.add(bytes.clone());
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    /// From now on nobody joins, and only a window of the bytes is held.
    pub fn outgrow(&self) {
        let mut state = self.state.lock();
        if matches!(state.mode, Mode::Keeping { .. }) {
            let Mode::Keeping { room } = std::mem::replace(&mut state.mode, Mode::Passing { room: None })
            else {
                return;
            };
            state.mode = Mode::Passing { room: Some(room) };
            state.trim();
        }
    }

    /// Whether every byte so far is kept.
    pub fn is_keeping(&self) -> bool {
        matches!(self.state.lock().mode, Mode::Keeping { .. })
    }

    /// The body ended as its framing said, with `last` as its last bytes. Where all of it was kept, `commit` gets it
    /// before any reader sees these bytes: a client that has read everything finds it in the index when it asks again.
    ///
    /// # Errors
    /// [`PushError::NoReaders`] when a passing body has no reader left for the last bytes.
    ///
    /// # Cancel safety
    /// Dropped while it waits, the body has not ended.
    pub async fn finish(
        &self,
        last: Option<Bytes>,
        commit: impl FnOnce(&Arc<StoredBody>),
    ) -> Result<Option<Arc<StoredBody>>, PushError> {
        let last = match last.filter(|bytes| !bytes.is_empty()) {
            Some(bytes) if self.make_room(bytes.len() as u64) => Some(Bytes::copy_from_slice(&bytes)),
            Some(bytes) => {
                self.push(bytes).await?;
                None
            }
            None => None,
        };
        let mut state = self.state.lock();
        if let Some(last) = last {
            state.add(last);
        }
        state.ended = true;
        let whole = state.take_whole(&self.store);
        if let Some(body) = &whole {
            // The index is locked under this lock, never the other way round.
            commit(body);
        }
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Ok(whole)
    }

    /// The body broke: readers are cut after what had come, nothing is kept.
    pub fn abort(&self, error: BodyError) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.ended = true;
        let lost = Mode::Broken { error, _room: None };
        if let Mode::Keeping { room } | Mode::Passing { room: Some(room) } =
            std::mem::replace(&mut state.mode, lost)
        {
            state.mode = Mode::Broken { error, _room: Some(room) };
        }
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Puts many small pieces together, where there is room for the copy.
fn compact(pieces: Vec<Bytes>, length: u64, store: &MemoryStore) -> Vec<Bytes> {
    if pieces.len() < 2 || length > COMPACT_MAX_BYTES || length / pieces.len() as u64 >= COMPACT_BELOW_BYTES {
        return pieces;
    }
    let Some(_copy_room) = store.reserve_free(length) else {
        return pieces;
    };
    let mut whole = Vec::new();
    let mut buffer = Vec::with_capacity(COMPACT_PIECE_BYTES.min(usize::try_from(length).unwrap_or(0)));
    for piece in pieces {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(COMPACT_PIECE_BYTES - buffer.len()));
            buffer.extend_from_slice(now);
            rest = later;
            if buffer.len() == COMPACT_PIECE_BYTES {
                whole.push(Bytes::from(std::mem::take(&mut buffer)));
            }
        }
    }
    if !buffer.is_empty() {
        buffer.shrink_to_fit();
        whole.push(buffer.into());
    }
    whole
}

impl State {
    fn add(&mut self, bytes: Bytes) {
        let start = self.length;
        self.length += bytes.len() as u64;
        self.pieces.push_back(Piece { start, bytes });
    }

    /// Turns a body of which everything was kept into a whole one.
    fn take_whole(&mut self, store: &MemoryStore) -> Option<Arc<StoredBody>> {
        if !matches!(self.mode, Mode::Keeping { .. }) {
            return None;
        }
        let lost = Mode::Broken { error: BodyError::Lost, _room: None };
        let Mode::Keeping { mut room } = std::mem::replace(&mut self.mode, lost) else {
            return None;
        };
        let pieces: Vec<Bytes> = self.pieces.drain(..).map(|piece| piece.bytes).collect();
        let pieces = compact(pieces, self.length, store);
        room.shrink_to(self.length + pieces.len() as u64 * PIECE_OVERHEAD_BYTES);
        let body = Arc::new(StoredBody::new(pieces, room));
        self.mode = Mode::Whole(Arc::clone(&body));
        Some(body)
    }

    /// One waker per worker that has parked readers; each of those wakes its neighbours when it runs.
    fn signal(&mut self) -> Vec<Waker> {
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
    fn pass_on(&mut self, slot: usize) -> Vec<Waker> {
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
    fn unpark(&mut self, slot: usize) {
        let worker = self.readers.get(slot).map_or(0, |own| own.worker);
        if let Some(parked) = self.parked.get_mut(worker) {
            parked.retain(|other| *other != slot);
        }
    }

    fn park(&mut self, slot: usize, waker: &Waker) {
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
    fn trim(&mut self) {
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
    fn held(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// The bytes from `position` on that lie in one piece.
    fn at(&self, position: u64) -> Option<Bytes> {
        if let Mode::Whole(body) = &self.mode {
            return body.at(position);
        }
        let index = self.pieces.partition_point(|piece| piece.start + piece.bytes.len() as u64 <= position);
        let piece = self.pieces.get(index)?;
        Some(piece.bytes.slice(usize::try_from(position.checked_sub(piece.start)?).ok()?..))
    }
}

/// One reader of a [`Growing`] body. Dropping it lets a passing body move on.
#[derive(Debug)]
pub struct Reader {
    growing: Arc<Growing>,
    slot: usize,
    position: u64,
    end: u64,
}

impl http_body::Body for Reader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let mut state = this.growing.state.lock();
        let neighbours = state.pass_on(this.slot);
        let poll = if this.position >= this.end {
            Poll::Ready(None)
        } else if let Some(mut bytes) = state.at(this.position) {
            let left = usize::try_from(this.end - this.position).unwrap_or(usize::MAX);
            bytes.truncate(left);
            this.position += bytes.len() as u64;
            Poll::Ready(Some(Ok(http_body::Frame::data(bytes))))
        } else if let Mode::Broken { error, .. } = state.mode {
            Poll::Ready(Some(Err(error)))
        } else if state.ended {
            Poll::Ready(None)
        } else {
            state.park(this.slot, cx.waker());
            Poll::Pending
        };
        if let Some(slot) = state.readers.get_mut(this.slot) {
            slot.position = this.position;
        }
        let producer = matches!(state.mode, Mode::Passing { .. }).then(|| state.producer.take()).flatten();
        drop(state);
        neighbours.into_iter().chain(producer).for_each(Waker::wake);
        poll
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.growing.state.lock();
        // A reader that was signalled and is dropped before it ran still owes its neighbours their wake.
        let neighbours = state.pass_on(self.slot);
        state.unpark(self.slot);
        state.readers.remove(self.slot);
        let producer = state.producer.take();
        drop(state);
        neighbours.into_iter().chain(producer).for_each(Waker::wake);
    }
}

#[cfg(test)]
#[path = "growing_tests.rs"]
mod tests;
