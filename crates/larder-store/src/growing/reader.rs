//! One reader of a growing body, from any worker, at its own pace.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use larder_http::body::BodyError;

use super::Growing;
use super::state::Mode;

/// One reader of a [`Growing`] body. Dropping it lets a passing body move on.
#[derive(Debug)]
pub struct Reader {
    pub(super) growing: Arc<Growing>,
    pub(super) slot: usize,
    pub(super) position: u64,
    pub(super) end: u64,
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
