//! A body while it arrives, with any number of readers.
//!
//! ```text
//!            push (room reserved)            finish
//!   Keeping ----------------------> Keeping --------> Whole   (shared with the index)
//!      | outgrow    \ a disk does not keep up
//!      |             '-> Gaps ------------------------> a part of it, on disks
//!      v                  | outgrow           | abort
//!   Passing <-------------'                   |
//!      '--- push waits for the slowest ------>+-------> Broken (readers are cut)
//! ```
//!
//! While it is *keeping*, all bytes stay, the producer never waits, and new readers may join at the start. Once it is
//! *passing*, bytes go through a window of [`WINDOW_BYTES`]: nobody new joins, the slowest reader sets the pace, and
//! when the last one leaves the producer is told to stop.
//!
//! In a store with disks, or of plain files, a body beyond one piece *spills* while it is kept. As soon as a piece is
//! full it goes to the disks, or to the file, and leaves memory; readers read it from there. So a body of any size
//! takes about three pieces of memory. What happens where the next piece is not taken is told in `spilling`; what
//! lies elsewhere already can still be read.
//!
//! One lock guards it all; it is held for the length of a look and never across a wait. A new piece wakes one parked
//! reader per worker, and that reader wakes its neighbours, so that a producer never pays for the readers of other
//! workers one by one.

mod ending;
mod reader;
mod spill;
mod spilling;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use larder_cache::StoredHead;
use larder_cache::completion::may_be_completed;
use larder_tier::CHUNK_BYTES;
pub use larder_tier::Loss;
use slab::Slab;

use crate::audience::Audience;
use crate::join::COMPACT_BELOW_BYTES;
use crate::key::CacheKey;
use crate::lease::large_from;
use crate::rank::{Rank, RankedMutex};
use crate::store::Store;
use crate::stored::{PIECE_OVERHEAD_BYTES, StoredBody};
pub use reader::Reader;
use spill::{SPILL_ROOM_BYTES, Spill};
pub use spilling::are_whole_pieces;
use state::{BodyState, Mode};

/// How far the fastest reader of a passing body may be ahead of the slowest.
pub const WINDOW_BYTES: u64 = 1024 * 1024;

/// Why a push did not take the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// A passing body that nobody reads any more: stop the fetch.
    #[error("nobody reads any more")]
    NoReaders,
}

/// What of a body was kept when it has ended.
#[derive(Debug)]
pub enum Finished {
    /// All of it.
    Whole(Arc<StoredBody>),
    /// What the disks kept up with.
    Part {
        /// The bytes of the runs, one behind the other.
        body: Arc<StoredBody>,
        /// Which bytes of the whole they are, in order and apart from each other.
        runs: Vec<std::ops::Range<u64>>,
        /// The length of the whole.
        complete: u64,
    },
    /// Nothing.
    Passed,
}

/// Where further bytes go.
enum Room {
    Memory,
    Spill,
    Nowhere,
}

/// A body while it arrives. Owned by the fetch that fills it and by its readers.
pub struct StreamingBody {
    store: Arc<Store>,
    key: CacheKey,
    declared: Option<u64>,
    /// Which of the store's tiers it goes to.
    tier: Option<usize>,
    /// Whether what is left out of it can be asked for later.
    may_have_gaps: bool,
    max_bytes: u64,
    /// Those who read it, or wait to.
    audience: Arc<Audience>,
    state: RankedMutex<BodyState>,
    /// Where it spills to. The producer's alone; never locked together with the state but before it.
    spill: RankedMutex<Option<Spill>>,
}

impl std::fmt::Debug for StreamingBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamingBody").field("declared", &self.declared).finish_non_exhaustive()
    }
}

impl StreamingBody {
    /// The length that was announced for it.
    pub fn declared(&self) -> Option<u64> {
        self.declared
    }

    /// Reserves room for a body under `key`: all of `declared` bytes, or a first piece where the length is not known; for one
    /// that spills to disks only what it has in memory at once. `None` where there is no room, or the body is larger than
    /// the store takes.
    pub fn keep(store: &Arc<Store>, key: &CacheKey, declared: Option<u64>) -> Option<Arc<Self>> {
        Self::keep_for(store, key, declared, (store.tier_for(key, None), false), &Arc::default())
    }

    /// The same for the body of a response with this head: in a store of plain files it is written to one while it arrives,
    /// where one may stand for it; and what disks do not keep up with may be left out, where it can be asked for later. A template
    /// is kept whole or not at all: a part has no program.
    /// `audience` are those who wait for the response.
    pub fn keep_as(
        store: &Arc<Store>,
        key: &CacheKey,
        head: &StoredHead,
        declared: Option<u64>,
        audience: &Arc<Audience>,
    ) -> Option<Arc<Self>> {
        let may_have_gaps = head.template.is_none() && may_be_completed(head);
        let may = (store.tier_for(key, Some(head)), may_have_gaps);
        Self::keep_for(store, key, declared, may, audience)
    }

    fn keep_for(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        (tier, may_have_gaps): (Option<usize>, bool),
        audience: &Arc<Audience>,
    ) -> Option<Arc<Self>> {
        let new = |room| {
            let streaming = Self::new(store, key, (declared, tier), Mode::Keeping { room }, audience);
            Arc::new(Self { may_have_gaps, ..streaming })
        };
        let first = declared.unwrap_or(0);
        if first > store.max_object_in(tier) {
            return None;
        }
        if first > CHUNK_BYTES as u64
            && let Some(spill) = Spill::begin(store, key, declared, tier)
        {
            let room = store.reserve(SPILL_ROOM_BYTES)?;
            let streaming = new(room);
            *streaming.spill.lock() = Some(spill);
            return Some(streaming);
        }
        if first > store.memory().max_object() {
            return None;
        }
        // As many pieces as a body of this length usually comes in; more of them ask for more.
        let pieces = first / COMPACT_BELOW_BYTES + 1;
        let room = store.reserve(first.saturating_add(pieces * PIECE_OVERHEAD_BYTES))?;
        Some(new(room))
    }

    /// A body for which there is no room: it passes from the start. Readers join until the first bytes are dropped.
    pub fn pass(
        store: &Arc<Store>,
        key: &CacheKey,
        declared: Option<u64>,
        audience: &Arc<Audience>,
    ) -> Arc<Self> {
        Arc::new(Self::new(store, key, (declared, None), Mode::Passing { room: None }, audience))
    }

    fn new(
        store: &Arc<Store>,
        key: &CacheKey,
        (declared, tier): (Option<u64>, Option<usize>),
        mode: Mode,
        audience: &Arc<Audience>,
    ) -> Self {
        Self {
            audience: Arc::clone(audience),
            store: Arc::clone(store),
            key: key.clone(),
            declared,
            tier,
            may_have_gaps: false,
            max_bytes: store.max_object_in(tier),
            spill: RankedMutex::new(Rank::Spill, None),
            state: RankedMutex::new(
                Rank::Body,
                BodyState {
                    mode,
                    pieces: VecDeque::new(),
                    spilled: Vec::new(),
                    length: 0,
                    declared,
                    has_dropped: false,
                    ended: false,
                    loss: None,
                    readers: Slab::new(),
                    parked: Vec::new(),
                    producer: None,
                    trailers: None,
                },
            ),
        }
    }

    /// The length in bytes, where the framing told it or the body has ended well.
    pub fn complete_length(&self) -> Option<u64> {
        let state = self.state.lock();
        self.declared.or_else(|| match &state.mode {
            Mode::Whole(_) => Some(state.length),
            _ => None,
        })
    }

    /// Those who read it, or wait to.
    pub fn audience(&self) -> &Arc<Audience> {
        &self.audience
    }

    /// Whether whoever reads it may be told to go on elsewhere: it is, or may become, a large body in memory.
    pub fn may_be_let_go(&self) -> bool {
        let is_large = |length| length > large_from(self.store.memory().cap());
        !self.is_spilling() && self.complete_length().is_none_or(is_large)
    }

    /// Whether it broke: it takes no readers then, and never will.
    pub fn is_broken(&self) -> bool {
        matches!(self.state.lock().mode, Mode::Broken { .. })
    }

    /// Adds bytes. While keeping in memory, they are copied into a piece of their own and this never waits; when the room is
    /// used up the body starts passing. While spilling, waits where the queue is full and every reader has bytes to send. While
    /// passing, waits until the slowest reader has made place.
    ///
    /// # Errors
    /// [`PushError::NoReaders`] when a passing body has no reader left, and nobody waits to be one.
    ///
    /// # Cancel safety
    /// A push that is dropped while it waits has added nothing, or, to a body that spills, some of it.
    pub async fn push(&self, bytes: Bytes) -> Result<(), PushError> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self.make_room(bytes.len() as u64) {
            Room::Memory => {
                let mut state = self.state.lock();
                state.add(Bytes::copy_from_slice(&bytes));
                let wakers = state.signal();
                drop(state);
                wakers.into_iter().for_each(Waker::wake);
                Ok(())
            }
            Room::Spill => self.push_spilling(bytes).await,
            Room::Nowhere => self.push_passing(bytes).await,
        }
    }

    /// Makes room for so many more bytes to be kept; where there is none the body passes from now on. The room may have
    /// to be found by evicting, which is done outside the lock: only the producer makes room.
    fn make_room(&self, bytes: u64) -> Room {
        let is_spilling = self.is_spilling();
        let (total, needed, held) = {
            let state = self.state.lock();
            let total = state.length + bytes;
            let pieces = state.pieces.len() as u64 + 1;
            let held = match &state.mode {
                Mode::Keeping { room } => room.bytes(),
                Mode::Gaps { .. } if is_spilling => 0,
                _ => return Room::Nowhere,
            };
            (total, total.max(self.declared.unwrap_or(0)) + pieces * PIECE_OVERHEAD_BYTES, held)
        };
        if total > self.max_bytes {
            return self.no_room();
        }
        if is_spilling || (total > CHUNK_BYTES as u64 && self.declared.is_none() && self.begin_spill()) {
            return Room::Spill;
        }
        if total > self.store.memory().max_object() {
            return self.no_room();
        }
        if needed <= held {
            return Room::Memory;
        }
        // Where the length is unknown the room grows by doubling, so that evictions come in few strides; where
        // doubling does not fit, the exact need may.
        let wish = (needed - held).max(if self.declared.is_none() { held.min(WINDOW_BYTES) } else { 0 });
        let more = self.store.reserve(wish).or_else(|| self.store.reserve(needed - held));
        let Some(more) = more else { return self.no_room() };
        if let Mode::Keeping { room } = &mut self.state.lock().mode {
            room.absorb(more);
        }
        Room::Memory
    }

    fn no_room(&self) -> Room {
        self.outgrow(Loss::NoRoom);
        Room::Nowhere
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

    /// From now on nobody joins, nothing is kept, and only a window of the bytes is held.
    pub fn outgrow(&self, why: Loss) {
        *self.spill.lock() = None;
        let mut state = self.state.lock();
        if !matches!(state.mode, Mode::Keeping { .. } | Mode::Gaps { .. }) {
            return;
        }
        // Where some of it was left out before, that is why there is nothing.
        state.loss.get_or_insert(why);
        state.skip_spilled();
        let before = std::mem::replace(&mut state.mode, Mode::Passing { room: None });
        if let Mode::Keeping { room } | Mode::Gaps { room } = before {
            state.mode = Mode::Passing { room: Some(room) };
            state.trim();
        }
    }

    /// Whether every byte so far is kept.
    pub fn is_keeping(&self) -> bool {
        matches!(self.state.lock().mode, Mode::Keeping { .. })
    }

    /// Whether bytes that come now may be kept, readers or none.
    pub fn may_keep_more(&self) -> bool {
        if self.spill.lock().as_ref().is_some_and(Spill::is_over) {
            return false;
        }
        matches!(self.state.lock().mode, Mode::Keeping { .. } | Mode::Gaps { .. })
    }

    /// Why it is not kept, or not all of it.
    pub fn loss(&self) -> Option<Loss> {
        self.state.lock().loss
    }
}
