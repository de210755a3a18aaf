//! The content of an HTTP/2 request, as a body.
//!
//! The window is opened again only for what its reader has taken, so a slow origin slows the client down. The last
//! bytes of an announced length wait for the end of the stream. Content that goes on behind its length is malformed
//! (RFC 9113 8.1.1), and an origin that had all of the length would take the request for a whole one. What the
//! stream's own task has to know (the client waits for a 100, the content broke) goes through a [`Side`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Frame, SizeHint};
use larder_http::body::BodyError;
use larder_http::framing::FramingError;
use larder_http::trailers;
use parking_lot::Mutex;

use crate::error::Refusal;
use crate::timer::{Pace, Timer};

/// Between the reader of a stream's content and the stream's own task.
#[derive(Clone, Debug, Default)]
pub(super) struct Side(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    wants_continue: bool,
    failed: Option<Refusal>,
    waker: Option<Waker>,
}

/// What [`Side::poll`] tells.
pub(super) enum ContentEvent {
    /// The content is wanted: the client may be told to go on.
    Continue,
    /// The content broke.
    Failed(Refusal),
}

impl Side {
    /// Ready with what has happened since the last time.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<ContentEvent> {
        let mut state = self.0.lock();
        if let Some(refusal) = state.failed {
            return Poll::Ready(ContentEvent::Failed(refusal));
        }
        if std::mem::take(&mut state.wants_continue) {
            return Poll::Ready(ContentEvent::Continue);
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Why the content broke, where it did and it was the client's fault.
    pub(super) fn failed(&self) -> Option<Refusal> {
        self.0.lock().failed
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.0.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

pub(super) struct RequestContent {
    receive: RecvStream,
    side: Side,
    awaits_continue: bool,
    /// What was announced and not yet handed over.
    left: Option<u64>,
    /// The last bytes of the announced length, while the stream has not ended.
    last: Option<Bytes>,
    received: u64,
    bytes_max: u64,
    pace: Pace,
    timer: Timer,
    /// All data has been handed over, and only trailers may follow.
    at_trailers: bool,
    ended: bool,
}

impl RequestContent {
    pub(super) fn new(
        receive: RecvStream,
        side: Side,
        length: Option<u64>,
        awaits_continue: bool,
        (pace, bytes_max): (Pace, Option<u64>),
    ) -> Self {
        Self {
            receive,
            side,
            awaits_continue,
            left: length,
            last: None,
            received: 0,
            bytes_max: bytes_max.unwrap_or(u64::MAX),
            pace,
            timer: Timer::default(),
            at_trailers: false,
            ended: false,
        }
    }

    /// What the stream ends with, behind its content.
    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match ready!(self.receive.poll_trailers(cx)) {
            Ok(fields) => match trailers::permitted(fields.unwrap_or_default()) {
                Ok(fields) => {
                    self.ended = true;
                    Poll::Ready(fields.map(|fields| Ok(Frame::trailers(fields))))
                }
                Err(trailers::TooMany) => {
                    let refusal = Refusal::Framing(FramingError::Trailer);
                    self.fail(BodyError::Framing, Some(refusal))
                }
            },
            Err(_) => self.fail(BodyError::Cut, None),
        }
    }

    fn fail(
        &mut self,
        error: BodyError,
        refusal: Option<Refusal>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.ended = true;
        if refusal.is_some() {
            self.side.tell(|state| state.failed = refusal);
        }
        Poll::Ready(Some(Err(error)))
    }
}

impl http_body::Body for RequestContent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if std::mem::take(&mut this.awaits_continue) {
            this.side.tell(|state| state.wants_continue = true);
        }
        if this.at_trailers {
            return this.poll_trailers(cx);
        }
        loop {
            match this.receive.poll_data(cx) {
                Poll::Ready(Some(Ok(bytes))) => {
                    let length = bytes.len() as u64;
                    this.pace.moved(length);
                    this.received = this.received.saturating_add(length);
                    if this.received > this.bytes_max {
                        return this.fail(BodyError::TooLarge, Some(Refusal::BodyTooLarge));
                    }
                    // It fails only for a stream that is gone, which the next poll tells.
                    let _ = this.receive.flow_control().release_capacity(bytes.len());
                    if bytes.is_empty() {
                        continue;
                    }
                    if this.left == Some(length) && !this.receive.is_end_stream() {
                        this.last = Some(bytes);
                        continue;
                    }
                    if let Some(left) = &mut this.left {
                        *left = left.saturating_sub(length);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                // A reset, or content that is not as long as it said. The stream's task sees the reset itself.
                Poll::Ready(Some(Err(_))) => return this.fail(BodyError::Cut, None),
                Poll::Ready(None) => {
                    this.at_trailers = true;
                    return match this.last.take() {
                        Some(bytes) => {
                            this.left = Some(0);
                            Poll::Ready(Some(Ok(Frame::data(bytes))))
                        }
                        None => this.poll_trailers(cx),
                    };
                }
                Poll::Pending => {
                    return match this.pace.poll_stalled(cx, &mut this.timer) {
                        Poll::Ready(()) => this.fail(BodyError::Stalled, Some(Refusal::BodyTimeout)),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || (self.last.is_none() && self.receive.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
