//! A response's content as it comes from the origin.
//!
//! In: hyper's body or an HTTP/2 stream's, and the lease on its connection. Out: a stream of data that is pulled,
//! checked and timed. It ends cleanly only where the framing says so; then, and only then, the connection goes back to
//! its pool. Dropped early, broken or stalled, it takes the connection with it, of HTTP/2 only the stream.
//! The clock between two reads runs only while we wait for the origin: a slow reader is not a slow origin. The limit
//! on the whole exchange runs always. Trailers come last, those that may travel.

use std::error::Error as _;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use larder_http::body::BodyError;
use larder_http::trailers;
use tokio::time::{Instant, Sleep};

use crate::http2::{self, Uploading};
use crate::in_flight::InFlight;
use crate::lease::Lease;

/// Content as either version of HTTP brings it.
pub(crate) enum Incoming {
    Http1(hyper::body::Incoming),
    Http2(http2::Content),
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Http1(incoming) => Pin::new(incoming)
                .poll_frame(cx)
                .map(|frame| frame.map(|outcome| outcome.map_err(|error| body_error(&error)))),
            Self::Http2(content) => content.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(incoming) => incoming.is_end_stream(),
            Self::Http2(content) => content.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(incoming) => incoming.size_hint(),
            Self::Http2(content) => content.length().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// What keeps a connection busy until the body has ended.
pub(crate) struct Hold {
    pub(crate) lease: Lease,
    /// Whether the connection may be used again after a clean end.
    pub(crate) is_reusable: bool,
    /// What is left of the request goes on until the response has ended.
    pub(crate) uploading: Option<Uploading>,
    pub(crate) in_flight: InFlight,
}

impl Hold {
    /// The message is complete.
    pub(crate) fn finish(self) {
        let is_left = self.uploading.as_ref().is_some_and(|uploading| !uploading.is_complete());
        if let Some(slot) = self.lease.slot().filter(|_| is_left) {
            self.lease.counters().upload_stopped();
            slot.leave();
        }
        // Of a shared connection only the place on it is given back, and that ends whatever became of the stream.
        if self.is_reusable || self.lease.slot().is_some() {
            self.lease.give_back();
        }
    }
}

/// A response's body.
pub(crate) struct Download {
    incoming: Incoming,
    hold: Option<Hold>,
    /// Between two reads.
    limit: Duration,
    /// When all of it must have come.
    total: Option<Instant>,
    /// Made on the first wait and used for all of them.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl Download {
    /// `incoming`, with at most `limit` between two reads and nothing after `total`.
    pub(crate) fn new(incoming: Incoming, hold: Hold, limit: Duration, total: Option<Instant>) -> Self {
        Self { incoming, hold: Some(hold), limit, total, timer: None, is_waiting: false }
    }

    fn finish(&mut self) {
        if let Some(hold) = self.hold.take() {
            hold.finish();
        }
    }

    fn fail(&mut self, error: BodyError) -> BodyError {
        if let Some(hold) = self.hold.take() {
            hold.lease.counters().body_broken();
            match (hold.lease.slot(), error) {
                (Some(slot), BodyError::Cut) => slot.end(),
                (Some(slot), BodyError::Framing) => slot.blame(),
                _ => {}
            }
        }
        error
    }

    /// Whether nothing has come for too long; wakes the task when that happens.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = Instant::now() + self.limit;
        let deadline = self.total.map_or(deadline, |total| total.min(deadline));
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(cx)
    }
}

impl HttpBody for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.hold.is_none() {
            return Poll::Ready(None);
        }
        // A body that never pauses never meets the timer.
        if self.total.is_some_and(|total| total <= Instant::now()) {
            return Poll::Ready(Some(Err(self.fail(BodyError::Stalled))));
        }
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => {
                    return self.poll_stalled(cx).map(|()| Some(Err(self.fail(BodyError::Stalled))));
                }
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(self.fail(error)))),
                Poll::Ready(Some(Ok(frame))) => {
                    self.is_waiting = false;
                    let frame = match frame.into_data() {
                        Ok(data) => {
                            if let Some(hold) = &self.hold {
                                hold.in_flight.received(data.len());
                            }
                            Frame::data(data)
                        }
                        Err(frame) => match trailers::permitted(frame.into_trailers().unwrap_or_default()) {
                            Ok(Some(fields)) => Frame::trailers(fields),
                            Ok(None) => continue,
                            Err(trailers::TooMany) => {
                                return Poll::Ready(Some(Err(self.fail(BodyError::TooLarge))));
                            }
                        },
                    };
                    if self.incoming.is_end_stream() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.hold.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Tells a cut from broken framing. hyper says it only by the kind of the error inside.
fn body_error(error: &hyper::Error) -> BodyError {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if !is_tls(error) => {
                    BodyError::Framing
                }
                _ => BodyError::Cut,
            };
        }
        cause = error.source();
    }
    BodyError::Cut
}

/// rustls reports a broken record as invalid data too.
fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}
