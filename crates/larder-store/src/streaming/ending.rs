//! How a body that grows ends: well, with what was kept of it, or broken.
//!
//! In: its last bytes, or an error. Out: what is kept, told to the index before any reader sees the end; then the readers hear of it.
//! The index, the disks' journals and the file system are never asked under the lock of the body.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use http::HeaderMap;
use larder_http::body::BodyError;

use super::spill::Spill;
use super::state::{KeptBody, Mode, Sealed, Whole};
use super::{Finished, PushError, Room, StreamingBody};
use crate::budget::Reservation;
use crate::join::compact;
use crate::stored::{PIECE_OVERHEAD_BYTES, StoredBody};

impl StreamingBody {
    /// As [`StreamingBody::end`], for what is kept whole or not at all.
    ///
    /// # Errors
    /// As for [`StreamingBody::end`].
    ///
    /// # Cancel safety
    /// Dropped while it waits, the body has not ended.
    pub async fn finish(
        &self,
        last: Option<Bytes>,
        commit: impl FnOnce(&Arc<StoredBody>),
    ) -> Result<Option<Arc<StoredBody>>, PushError> {
        let commit = |finished: &Finished| {
            if let Finished::Whole(body) = finished {
                commit(body);
            }
        };
        Ok(match self.end(last, None, commit).await? {
            Finished::Whole(body) => Some(body),
            Finished::Part { .. } | Finished::Passed => None,
        })
    }

    /// The body ended as its framing said, with `last` as its last bytes. Where all of it was kept, or some, `commit` gets that
    /// before any reader sees these bytes: a client that has read everything finds it in the index when it asks again. Only the
    /// readers of what is not kept whole get the trailers.
    ///
    /// # Errors
    /// [`PushError::NoReaders`] when a passing body has no reader left for the last bytes.
    ///
    /// # Cancel safety
    /// Dropped while it waits, the body has not ended.
    pub async fn end(
        &self,
        last: Option<Bytes>,
        trailers: Option<HeaderMap>,
        commit: impl FnOnce(&Finished),
    ) -> Result<Finished, PushError> {
        let mut tail = None;
        if let Some(mut last) = last.filter(|bytes| !bytes.is_empty()) {
            match self.make_room(last.len() as u64) {
                Room::Memory => tail = Some(Bytes::copy_from_slice(&last)),
                Room::Spill => {
                    let end = self.split_tail(&mut last);
                    self.push_spilling(last).await?;
                    match self.is_spilling() {
                        true => tail = Some(Bytes::copy_from_slice(&end)),
                        false => self.push(end).await?,
                    }
                }
                Room::Nowhere => self.push(last).await?,
            }
        }
        let spilled = self.end_spill(tail.as_deref()).await;
        // Three steps, of which only the first and the last hold the lock: what is kept is taken out, told to the index, shown.
        let Sealed { tail, length, kept } = self.state.lock().seal(tail);
        let (finished, copied) = self.made_of(kept, length, spilled);
        let whole = match &finished {
            Finished::Whole(body) => Some(Whole::of(body)),
            Finished::Part { .. } | Finished::Passed => None,
        };
        if !matches!(finished, Finished::Passed) {
            commit(&finished);
        }
        let wakers = {
            let mut state = self.state.lock();
            state.end(tail, whole, trailers);
            state.signal()
        };
        drop(copied);
        wakers.into_iter().for_each(Waker::wake);
        Ok(finished)
    }

    /// The body that is kept, and the room of what is there as well until the end shows. `spilled` is what lies on disks or in a
    /// file.
    fn made_of(
        &self,
        kept: KeptBody,
        length: u64,
        spilled: Option<StoredBody>,
    ) -> (Finished, Option<Reservation>) {
        let store = self.store.memory();
        match (kept, spilled) {
            (KeptBody::Whole { room, .. }, Some(body)) => (Finished::Whole(Arc::new(body)), Some(room)),
            (KeptBody::Whole { pieces, mut room }, None) => {
                let (pieces, copied) = compact(pieces, length, store);
                room.shrink_to(length + pieces.len() as u64 * PIECE_OVERHEAD_BYTES);
                let body = StoredBody::new(pieces, room).lendable(store.cap());
                (Finished::Whole(Arc::new(body)), copied)
            }
            (KeptBody::Runs(runs), Some(body)) => {
                (Finished::Part { body: Arc::new(body), runs, complete: length }, None)
            }
            (KeptBody::Runs(_), None) | (KeptBody::Nothing, _) => (Finished::Passed, None),
        }
    }

    /// The body broke: readers are cut after what had come, nothing is kept.
    pub fn abort(&self, error: BodyError) {
        *self.spill.lock() = None;
        self.cut(error);
    }

    /// The same, but what disks have of it is kept: `commit` gets that, if there is any. Only of a body whose length is known, and
    /// that can be completed later (RFC 9111 3.3).
    pub fn give_up(&self, error: BodyError, commit: impl FnOnce(&Finished)) {
        let spill = self.spill.lock().take();
        let kept = self.declared.filter(|_| self.may_have_gaps()).and_then(|complete| {
            let body = spill.filter(Spill::may_have_gaps)?.finish(self.store.memory())?;
            Some((Arc::new(body), complete))
        });
        if let Some((body, complete)) = kept {
            let runs = {
                let state = self.state.lock();
                let is_kept = !state.ended && matches!(state.mode, Mode::Keeping { .. } | Mode::Gaps { .. });
                is_kept.then(|| state.runs(complete))
            };
            if let Some(runs) = runs {
                commit(&Finished::Part { body, runs, complete });
            }
        }
        self.cut(error);
    }

    fn cut(&self, error: BodyError) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.ended = true;
        let lost = Mode::Broken { error, _room: None };
        if let Mode::Keeping { room } | Mode::Gaps { room } | Mode::Passing { room: Some(room) } =
            std::mem::replace(&mut state.mode, lost)
        {
            state.mode = Mode::Broken { error, _room: Some(room) };
        }
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
