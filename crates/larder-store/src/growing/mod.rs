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
//! In a store with disks, or of plain files, a body beyond one piece *spills* while it is kept: as soon as a piece is full it
//! goes to the disks, or to the file, and leaves memory for whoever reads it from there. So a body of any size takes about
//! three pieces of memory. Where the next piece is not taken, the body passes from there on; what lies elsewhere already can
//! still be read.
//!
//! One lock guards it all; it is held for the length of a look and never across a wait. A new piece wakes one parked
//! reader per worker, and that reader wakes its neighbours, so that a producer never pays for the readers of other
//! workers one by one.

mod reader;
mod spill;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_http::body::BodyError;
use parking_lot::Mutex;
use slab::Slab;

use crate::disks::PIECE_BYTES;
use crate::key::CacheKey;
use crate::store::Store;
use crate::stored::{COMPACT_BELOW_BYTES, PIECE_OVERHEAD_BYTES, StoredBody};
pub use reader::Reader;
use spill::{SPILL_ROOM_BYTES, Spill};
use state::{Mode, Slot, State};

/// How far the fastest reader of a passing body may be ahead of the slowest.
pub const WINDOW_BYTES: u64 = 1024 * 1024;

/// Why a push did not take the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// A passing body that nobody reads any more: stop the fetch.
    #[error("nobody reads any more")]
    NoReaders,
}

/// A body while it arrives. Owned by the fetch that fills it and by its readers.
pub struct Growing {
    store: Arc<Store>,
    key: CacheKey,
    declared: Option<u64>,
    /// Whether it may end as a plain file.
    may_be_file: bool,
    max_bytes: u64,
    state: Mutex<State>,
    /// Where it spills to. The producer's alone; never locked together with the state but before it.
    spill: Mutex<Option<Spill>>,
}

impl std::fmt::Debug for Growing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Growing").field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl Growing {
    /// Reserves room for a body under `key`: all of `declared` bytes, or a first piece where the length is not known; for one
    /// that spills to disks only what it has in memory at once. `None` where there is no room, or the body is larger than
    /// the store takes.
    pub fn keep(store: &Arc<Store>, key: &CacheKey, declared: Option<u64>) -> Option<Arc<Self>> {
        Self::keep_for(store, key, declared, false)
    }

    /// The same for the body of a response with this head: in a store of plain files it is written to one while it arrives,
    /// where one may stand for it.
    pub fn keep_as(
        store: &Arc<Store>,
        key: &CacheKey,
        head: &StoredHead,
        declared: Option<u64>,
    ) -> Option<Arc<Self>> {
        Self::keep_for(store, key, declared, store.keeps_as_file(key, head))
    }

    fn keep_for(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        may_be_file: bool,
    ) -> Option<Arc<Self>> {
        let first = declared.unwrap_or(0);
        if first > store.max_object_of(may_be_file) {
            return None;
        }
        if first > PIECE_BYTES as u64
            && let Some(spill) = Spill::begin(store, key, declared, may_be_file)
        {
            let room = store.reserve(SPILL_ROOM_BYTES)?;
            let growing = Self::new(store, key, declared, may_be_file, Mode::Keeping { room });
            *growing.spill.lock() = Some(spill);
            return Some(growing);
        }
        if first > store.memory().max_object() {
            return None;
        }
        // As many pieces as a body of this length usually comes in; more of them ask for more.
        let pieces = first / COMPACT_BELOW_BYTES + 1;
        let room = store.reserve(first.saturating_add(pieces * PIECE_OVERHEAD_BYTES))?;
        Some(Self::new(store, key, declared, may_be_file, Mode::Keeping { room }))
    }

    /// A body for which there is no room: it passes from the start. Readers join until the first bytes are dropped.
    pub fn pass(store: &Arc<Store>, key: &CacheKey, declared: Option<u64>) -> Arc<Self> {
        Self::new(store, key, declared, false, Mode::Passing { room: None })
    }

    fn new(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        may_be_file: bool,
        mode: Mode,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::clone(store),
            key: key.clone(),
            declared,
            may_be_file,
            max_bytes: store.max_object_of(may_be_file),
            spill: Mutex::new(None),
            state: Mutex::new(State {
                mode,
                pieces: VecDeque::new(),
                spilled: Vec::new(),
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
            || (first_kept > state.spilled_bytes() && !matches!(state.mode, Mode::Whole(_)))
        {
            return None;
        }
        let range = range.unwrap_or(0..u64::MAX);
        let slot =
            state.readers.insert(Slot { position: range.start, waker: None, worker: 0, signalled: false });
        Some(Reader::new(self, slot, range))
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
        self.spill(bytes);
        true
    }

    /// What has just been added goes to the disks, once it fills a piece. Where none takes it, the body passes from now on.
    fn spill(&self, bytes: &[u8]) {
        let mut spill = self.spill.lock();
        let Some(open) = spill.as_mut() else { return };
        let is_taken = open.add(bytes, |piece| self.state.lock().spilled(piece));
        if !is_taken {
            *spill = None;
            drop(spill);
            self.outgrow();
        }
    }

    /// A body of unknown length is larger than a piece: from now on it spills, with what is there of it. Says whether it
    /// does.
    fn begin_spill(&self) -> bool {
        let begun = Spill::begin(&self.store, &self.key, self.declared, self.may_be_file);
        let Some((begun, room)) =
            begun.and_then(|spill| Some((spill, self.store.reserve(SPILL_ROOM_BYTES)?)))
        else {
            return false;
        };
        let there: Vec<Bytes> = {
            let mut state = self.state.lock();
            if let Mode::Keeping { room: held } = &mut state.mode {
                held.absorb(room);
            }
            state.pieces.iter().map(|piece| piece.bytes.clone()).collect()
        };
        *self.spill.lock() = Some(begun);
        there.iter().for_each(|bytes| self.spill(bytes));
        self.is_spilling()
    }

    fn is_spilling(&self) -> bool {
        self.spill.lock().is_some()
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
        if self.is_spilling() {
            return true;
        }
        if total > PIECE_BYTES as u64 && self.declared.is_none() && self.begin_spill() {
            return true;
        }
        if !self.is_keeping() || total > self.store.memory().max_object() {
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
            || self.store.memory().reserve_free(bytes.len() as u64).is_none()
        {
            state.trim();
        }
        let in_window = state.held();
        let fits = in_window + bytes.len() as u64 <= WINDOW_BYTES;
        // One piece may always pass, even when the store has no room for a window: the exchange goes on.
        let room =
            if in_window == 0 || fits { self.store.memory().reserve_free(bytes.len() as u64) } else { None };
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
        *self.spill.lock() = None;
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
        let spilled = self.end_spill(last.as_deref());
        let mut state = self.state.lock();
        if let Some(last) = last {
            state.add(last);
        }
        state.ended = true;
        let whole = state.take_whole(self.store.memory(), spilled);
        if let Some(body) = &whole {
            // The index is locked under this lock, never the other way round.
            commit(body);
        }
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Ok(whole)
    }

    /// Hands what is left of a body that spills to the disks. `None` where it does not, or they do not take it: then it
    /// passes.
    fn end_spill(&self, last: Option<&[u8]>) -> Option<StoredBody> {
        let spill = self.spill.lock().take()?;
        let spilled = |piece| self.state.lock().spilled(piece);
        let body = spill.end(last.unwrap_or_default(), self.store.memory(), spilled);
        if body.is_none() {
            self.outgrow();
        }
        body
    }

    /// The body broke: readers are cut after what had come, nothing is kept.
    pub fn abort(&self, error: BodyError) {
        *self.spill.lock() = None;
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
