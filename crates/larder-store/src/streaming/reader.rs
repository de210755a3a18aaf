//! One reader of a streaming body, from any worker, at its own pace.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use larder_http::body::BodyError;
use larder_tier::StoredChunk;
use larder_tier::fill::BoxFuture;

use super::StreamingBody;
use super::state::{BytesAt, Mode, ReaderSlot};
use crate::audience::Member;

type Reading = BoxFuture<'static, Option<Bytes>>;

/// One reader of a [`StreamingBody`]. Dropping it lets a passing body move on.
pub struct Reader {
    streaming: Arc<StreamingBody>,
    slot: usize,
    position: u64,
    end: u64,
    /// A piece that is on its way from a disk or a file, of which the first bytes are not asked for.
    reading: Option<Reading>,
    /// Whether it has come to its end.
    has_ended: bool,
    _reads: Member,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("position", &self.position)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl StreamingBody {
    /// A reader of `range` (the whole where `None`), or `None` where nobody may join any more.
    pub fn reader(self: &Arc<Self>, range: Option<std::ops::Range<u64>>) -> Option<Reader> {
        let mut state = self.state.lock();
        if matches!(state.mode, Mode::Broken { .. }) || state.has_dropped || state.is_let_go() {
            return None;
        }
        let range = range.unwrap_or(0..u64::MAX);
        let (position, end) = (range.start, range.end);
        let slot =
            state.readers.insert(ReaderSlot { position, end, waker: None, worker: 0, signalled: false });
        Some(Reader::new(self, slot, range))
    }
}

impl Reader {
    pub(super) fn new(streaming: &Arc<StreamingBody>, slot: usize, range: Range<u64>) -> Self {
        Self {
            streaming: Arc::clone(streaming),
            slot,
            position: range.start,
            end: range.end,
            reading: None,
            has_ended: false,
            _reads: streaming.audience.read(),
        }
    }

    /// What of these bytes is asked for; they begin where the reader is.
    fn take(&mut self, mut bytes: Bytes) -> Bytes {
        bytes.truncate(usize::try_from(self.end - self.position).unwrap_or(usize::MAX));
        self.position += bytes.len() as u64;
        bytes
    }

    /// Where the body is in memory, or says that it has to be read.
    fn poll_here(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut state = self.streaming.state.lock();
        let neighbours = state.pass_on(self.slot);
        let poll = if self.position >= self.end {
            Poll::Ready(Next::End)
        } else if let Some(found) = state.at(self.position) {
            match found {
                BytesAt::Here(mut bytes) => {
                    bytes.truncate(usize::try_from(self.end - self.position).unwrap_or(usize::MAX));
                    self.position += bytes.len() as u64;
                    Poll::Ready(Next::Bytes(bytes))
                }
                BytesAt::Spilled(place, within) => Poll::Ready(Next::Spilled(place, within)),
                BytesAt::Nowhere => Poll::Ready(Next::Broken(BodyError::SlowReader)),
            }
        } else if let Mode::Broken { error, .. } = state.mode {
            Poll::Ready(Next::Broken(error))
        } else if state.ended {
            let is_first = !std::mem::replace(&mut self.has_ended, true);
            let trailers = state.trailers.clone().filter(|_| is_first);
            Poll::Ready(trailers.map_or(Next::End, Next::Trailers))
        } else {
            state.park(self.slot, cx.waker());
            Poll::Pending
        };
        if let Some(slot) = state.readers.get_mut(self.slot) {
            slot.position = self.position;
        }
        let producer = state.producer.take();
        drop(state);
        neighbours.into_iter().chain(producer).for_each(Waker::wake);
        poll
    }
}

/// What comes next.
enum Next {
    Bytes(Bytes),
    Spilled(Arc<dyn StoredChunk>, usize),
    Broken(BodyError),
    Trailers(Box<HeaderMap>),
    End,
}

impl http_body::Body for Reader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if let Some(reading) = &mut this.reading {
                let Poll::Ready(read) = reading.as_mut().poll(cx) else { return Poll::Pending };
                this.reading = None;
                // What was there and cannot be read any more: cut, never told that this was all.
                let bytes = read.map(|bytes| Frame::data(this.take(bytes))).ok_or(BodyError::Lost);
                return Poll::Ready(Some(bytes));
            }
            return Poll::Ready(match this.poll_here(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Spilled(chunk, within)) => {
                    this.reading = Some(chunk.read(within));
                    continue;
                }
                Poll::Ready(Next::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
                Poll::Ready(Next::Broken(error)) => Some(Err(error)),
                Poll::Ready(Next::Trailers(trailers)) => Some(Ok(Frame::trailers(*trailers))),
                Poll::Ready(Next::End) => None,
            });
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.streaming.state.lock();
        // A reader that was signalled and is dropped before it ran still owes its neighbours their wake.
        let neighbours = state.pass_on(self.slot);
        state.unpark(self.slot);
        state.readers.remove(self.slot);
        let producer = state.producer.take();
        drop(state);
        neighbours.into_iter().chain(producer).for_each(Waker::wake);
    }
}
