//! How a body that grows ends: well, with what was kept of it, or broken.
//!
//! In: its last bytes, or an error. Out: what is kept, told to the index before any reader sees the end; then the readers hear of it.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use http::HeaderMap;
use larder_http::body::BodyError;

use super::spill::Spill;
use super::state::{Mode, State, Taken};
use super::{Finished, Growing, PushError, Room};
use crate::stored::StoredBody;

impl Growing {
    /// As [`Growing::end`], for what is kept whole or not at all.
    ///
    /// # Errors
    /// As for [`Growing::end`].
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
        let mut state = self.state.lock();
        // A last piece that came as one and went to the disks has been counted where it lies.
        if let Some(tail) = tail.filter(|tail| !state.goes_beyond(tail.len())) {
            state.add(tail);
            // Behind it lies nothing but what was there before.
            state.skip_spilled();
        }
        state.ended = true;
        // What is kept has none.
        state.trailers =
            trailers.filter(|_| matches!(state.mode, Mode::Passing { .. } | Mode::Gaps { .. })).map(Box::new);
        let finished = match state.take_kept(self.store.memory(), spilled) {
            Taken::Whole(body) => Finished::Whole(body),
            Taken::Some(body) => {
                let (runs, complete) = (state.runs(state.length), state.length);
                Finished::Part { body, runs, complete }
            }
            Taken::Nothing => Finished::Passed,
        };
        if !matches!(finished, Finished::Passed) {
            // The index is locked under this lock, never the other way round.
            commit(&finished);
        }
        let wakers = state.signal();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Ok(finished)
    }

    /// The body broke: readers are cut after what had come, nothing is kept.
    pub fn abort(&self, error: BodyError) {
        *self.spill.lock() = None;
        self.cut(error, |_| ());
    }

    /// The same, but what disks have of it is kept: `commit` gets that, if there is any. Only of a body whose length is known, and
    /// that can be completed later (RFC 9111 3.3).
    pub fn give_up(&self, error: BodyError, commit: impl FnOnce(&Finished)) {
        let spill = self.spill.lock().take();
        let kept = self.declared.filter(|_| self.may_have_gaps()).and_then(|complete| {
            let body = spill.filter(Spill::may_have_gaps)?.finish(self.store.memory())?;
            Some((Arc::new(body), complete))
        });
        self.cut(error, |state| {
            if let Some((body, complete)) = kept
                && matches!(state.mode, Mode::Keeping { .. } | Mode::Gaps { .. })
            {
                commit(&Finished::Part { body, runs: state.runs(complete), complete });
            }
        });
    }

    fn cut(&self, error: BodyError, before: impl FnOnce(&State)) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        before(&state);
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
