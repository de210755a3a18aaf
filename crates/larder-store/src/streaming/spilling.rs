//! How a body that spills arrives: each full piece is handed over, waited for, or left out.
//!
//! In: its bytes, in order. Out: the same to readers at once, and piece by piece to the disks or the file. Where there is no room
//! for a piece, the producer pauses as long as every reader has bytes to send. Once one would be short of them, the piece is left
//! out: it stays in memory until all have read it, and what is kept of the body has a gap. Where gaps are no use (a file, a body
//! that cannot be completed later, a small one), the body is given up, and passes.
//! Nobody new joins a body with gaps, and at most [`WINDOW_BYTES`] of what was left out are held for a reader that is behind.
//!
//! # Cancel safety
//! A wait that is dropped leaves the body as it is; bytes that had come are there. Its producer aborts it then.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use larder_tier::CHUNK_BYTES;

use super::spill::{Handed, Spill, numbers};
use super::state::{BodyState, Mode};
use super::{Loss, PushError, SPILL_ROOM_BYTES, StreamingBody, WINDOW_BYTES};
use crate::audience::Audience;
use crate::key::CacheKey;
use crate::store::Store;
use crate::stored::StoredBody;

/// A reader with fewer bytes before it is short of them.
const SHORT_BYTES: u64 = CHUNK_BYTES as u64 / 2;

/// How long a full queue is waited for, whoever reads: a disk that writes nothing all that time is not slow, but stuck.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A body that is known to be smaller is kept whole or not at all: asking for its gaps costs more than they are worth.
const GAPS_FROM_BYTES: u64 = 4 * 1024 * 1024;

/// Gaps of one body; beyond them nothing more of it is kept.
const GAPS_MAX: usize = 128;

/// Fewer bytes are copied out of the buffer that they came in, since they would keep all of it.
const COPY_BELOW_BYTES: usize = 16 * 1024;

/// Bytes that stay in memory until their piece is handed over, and readers have them.
fn for_a_while(bytes: &Bytes) -> Bytes {
    match bytes.len() < COPY_BELOW_BYTES {
        true => Bytes::copy_from_slice(bytes),
        false => bytes.clone(),
    }
}

/// Whether these runs of a body of `complete` bytes are such as can be filled up where they lie ([`StreamingBody::complete`]).
pub fn are_whole_pieces(runs: impl Iterator<Item = Range<u64>>, complete: u64) -> bool {
    numbers(runs, complete).is_some()
}

impl StreamingBody {
    /// A body of `complete` bytes of which these runs lie on disks already, as `part`: what is pushed is the rest, in order.
    /// `None` where the runs are not whole pieces, some of them are gone, or there is no room.
    pub fn complete(
        store: &Arc<Store>,
        key: &CacheKey,
        part: &StoredBody,
        runs: impl Iterator<Item = Range<u64>>,
        complete: u64,
        audience: &Arc<Audience>,
    ) -> Option<Arc<Self>> {
        let numbers = numbers(runs, complete)?;
        let room = store.reserve(SPILL_ROOM_BYTES)?;
        let streaming = Self {
            may_have_gaps: true,
            ..Self::new(
                store,
                key,
                (Some(complete), store.tier_for(key, None)),
                Mode::Keeping { room },
                audience,
            )
        };
        let spill = {
            let mut state = streaming.state.lock();
            let mut spill =
                Spill::of_part(store, part, &numbers, |number, piece| state.spilled(number, piece))?;
            state.skip_spilled();
            spill.go_to(state.piece());
            spill
        };
        *streaming.spill.lock() = Some(spill);
        Some(Arc::new(streaming))
    }

    pub(super) fn is_spilling(&self) -> bool {
        self.spill.lock().is_some()
    }

    /// A body of unknown length is larger than a piece: from now on it spills, with what is there of it. Says whether it
    /// does.
    pub(super) fn begin_spill(&self) -> bool {
        let begun = Spill::begin(&self.store, &self.key, self.declared, self.tier);
        let Some((mut begun, room)) =
            begun.and_then(|spill| Some((spill, self.store.reserve(SPILL_ROOM_BYTES)?)))
        else {
            return false;
        };
        {
            let mut state = self.state.lock();
            // It begins with the byte that is too many for one piece. Where nothing took it then, the body stays in memory.
            if state.length > CHUNK_BYTES as u64 {
                return false;
            }
            state.pieces.iter().for_each(|piece| begun.add(&piece.bytes));
            if let Mode::Keeping { room: held } = &mut state.mode {
                held.absorb(room);
            }
        }
        *self.spill.lock() = Some(begun);
        true
    }

    /// Adds bytes of a body that spills, and hands over what is full of them.
    pub(super) async fn push_spilling(&self, mut bytes: Bytes) -> Result<(), PushError> {
        loop {
            self.hand_over().await;
            if bytes.is_empty() {
                return Ok(());
            }
            let Some(room) = self.spill.lock().as_mut().map(|spill| self.open_room(spill)) else {
                // Given up meanwhile.
                return self.push_passing(bytes).await;
            };
            let now = bytes.split_to(bytes.len().min(room));
            std::future::poll_fn(|cx| self.poll_window(cx, now.len() as u64)).await;
            let wakers = {
                let mut state = self.state.lock();
                state.add(for_a_while(&now));
                state.signal()
            };
            wakers.into_iter().for_each(Waker::wake);
            self.spill.lock().iter_mut().for_each(|spill| spill.add(&now));
        }
    }

    /// Bytes that the open piece may still take. One that would be left out if it were full now is not even copied, where a
    /// reader is short of bytes already.
    fn open_room(&self, spill: &mut Spill) -> usize {
        let (has, room) = spill.open_bytes();
        if has == 0 && spill.is_kept_back() && (spill.is_over() || self.state.lock().is_short(SHORT_BYTES)) {
            spill.leave_out_open();
        }
        room
    }

    /// Whether it may be kept with gaps.
    pub(super) fn may_have_gaps(&self) -> bool {
        self.may_have_gaps && self.declared.is_none_or(|declared| declared >= GAPS_FROM_BYTES)
    }

    /// Adds bytes of a body that passes. Where it went on from a part, they go between the pieces of that.
    pub(super) async fn push_passing(&self, mut bytes: Bytes) -> Result<(), PushError> {
        loop {
            let now = match self.state.lock().until_spilled() {
                Some(room) if room < bytes.len() => bytes.split_to(room),
                _ => std::mem::take(&mut bytes),
            };
            // Those who were told of the body a moment ago, on other workers perhaps, are about to read it.
            while let Err(error) = std::future::poll_fn(|cx| self.poll_pass(cx, &now)).await {
                if !self.audience.reads().await {
                    return Err(error);
                }
            }
            self.state.lock().skip_spilled();
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The bytes at the end of `last` that are of the body's last piece.
    pub(super) fn split_tail(&self, last: &mut Bytes) -> Bytes {
        let open = self.spill.lock().as_ref().map_or(0, |spill| match spill.waits() {
            Some(_) => 0,
            None => spill.open_bytes().0,
        });
        let tail = (open + last.len() - 1) % CHUNK_BYTES + 1;
        last.split_off(last.len() - tail.min(last.len()))
    }

    /// Hands over what is left of a body that spills, of which `tail` has not been added. `None` where it does not, or not all of
    /// it could be offered.
    pub(super) async fn end_spill(&self, tail: Option<&[u8]>) -> Option<StoredBody> {
        self.hand_over().await;
        if let Some(spill) = self.spill.lock().as_mut() {
            spill.add(tail.unwrap_or_default());
            spill.close_piece();
        }
        self.hand_over().await;
        let spill = self.spill.lock().take()?;
        let body = spill.finish(self.store.memory());
        if body.is_none() {
            self.outgrow(Loss::Failing);
        }
        body
    }

    /// Sees to the piece that is full, if one is.
    async fn hand_over(&self) {
        if self.try_hand_over(None).is_some() {
            return;
        }
        let handed = std::future::poll_fn(|cx| match self.try_hand_over(Some(cx)) {
            Some(()) => Poll::Ready(()),
            None => Poll::Pending,
        });
        if tokio::time::timeout(PAUSE_MAX, handed).await.is_err() {
            let mut spill = self.spill.lock().take();
            spill.iter_mut().for_each(Spill::stop);
            self.leave_out(spill);
        }
    }

    /// Hands the full piece over, or leaves it out where a reader would be short of bytes. `None` where it has to wait.
    fn try_hand_over(&self, cx: Option<&mut Context<'_>>) -> Option<()> {
        let mut guard = self.spill.lock();
        let Some(spill) = guard.as_mut() else { return Some(()) };
        let Some(number) = spill.waits() else { return Some(()) };
        let is_read = || !self.state.lock().readers.is_empty();
        let mut handed = spill.hand_over(is_read());
        if let (Handed::Full, Some(cx)) = (&handed, cx) {
            // Asked for before the last look, so that nothing that comes in between is missed.
            spill.await_room(cx.waker());
            self.state.lock().producer = Some(cx.waker().clone());
            handed = spill.hand_over(is_read());
        }
        match handed {
            Handed::Taken(piece) => {
                let mut state = self.state.lock();
                state.spilled(number, piece);
                state.skip_spilled();
                spill.go_to(state.piece());
                Some(())
            }
            Handed::Lost(why) => {
                *guard = None;
                drop(guard);
                self.outgrow(why);
                Some(())
            }
            Handed::Full => {
                let must_go_on =
                    spill.is_open_left_out() || spill.is_over() || self.state.lock().is_short(SHORT_BYTES);
                must_go_on.then(|| {
                    let spill = guard.take();
                    drop(guard);
                    self.leave_out(spill);
                })
            }
        }
    }

    /// The full piece is not kept; where that is no use, nothing is.
    fn leave_out(&self, spill: Option<Spill>) {
        let Some(mut spill) = spill else { return };
        if !(self.may_have_gaps() && spill.may_have_gaps()) {
            spill.give_up();
            self.outgrow(Loss::QueueFull);
            return;
        }
        // Beyond what spilling takes, a window for those who are behind.
        let more = self.store.memory().reserve_free(WINDOW_BYTES);
        let mut state = self.state.lock();
        state.begin_gaps(more);
        if !spill.goes_on_leaving_out() && state.gaps() > GAPS_MAX {
            spill.stop();
        }
        spill.leave_out();
        state.skip_spilled();
        spill.go_to(state.piece());
        drop(state);
        *self.spill.lock() = Some(spill);
    }

    /// Waits until so many bytes more may be held for readers that are behind.
    fn poll_window(&self, cx: &mut Context<'_>, bytes: u64) -> Poll<()> {
        let mut state = self.state.lock();
        let BodyState { mode: Mode::Gaps { room }, .. } = &*state else { return Poll::Ready(()) };
        let most = room.bytes().saturating_sub(SPILL_ROOM_BYTES - CHUNK_BYTES as u64);
        state.trim();
        if state.held() + bytes <= most || state.held() == 0 || state.readers.is_empty() {
            return Poll::Ready(());
        }
        state.producer = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
