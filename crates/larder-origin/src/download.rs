//! A response's content as it comes from the origin.
//!
//! In: hyper's body and the lease on its connection. Out: a stream of data that is pulled, checked and timed. It ends
//! cleanly only where the framing says so; then, and only then, the connection goes back to its pool. Dropped early,
//! broken or stalled, it takes the connection with it.
//! The clock runs only while we wait for the origin: a slow reader is not a slow origin. Trailers are dropped.

use std::error::Error as _;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use larder_http::body::BodyError;
use tokio::time::{Instant, Sleep};

use crate::metrics::InFlight;
use crate::pool::Lease;

/// What keeps a connection busy until the body has ended.
pub(crate) struct Hold {
    pub(crate) lease: Lease,
    /// Whether the connection may be used again after a clean end.
    pub(crate) is_reusable: bool,
    pub(crate) _in_flight: InFlight,
}

impl Hold {
    /// The message is complete.
    pub(crate) fn finish(self) {
        if self.is_reusable {
            self.lease.give_back();
        }
    }
}

pub(crate) struct Download {
    incoming: Incoming,
    hold: Option<Hold>,
    /// Between two reads.
    limit: Duration,
    /// Made on the first wait and used for all of them.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl Download {
    pub(crate) fn new(incoming: Incoming, hold: Hold, limit: Duration) -> Self {
        Self { incoming, hold: Some(hold), limit, timer: None, is_waiting: false }
    }

    fn finish(&mut self) {
        if let Some(hold) = self.hold.take() {
            hold.finish();
        }
    }

    fn fail(&mut self, error: BodyError) -> BodyError {
        if let Some(hold) = self.hold.take() {
            hold.lease.shared().metrics.body_broken();
        }
        error
    }

    /// Whether nothing has come for too long; wakes the task when that happens.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = Instant::now() + self.limit;
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
        loop {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => {
                    return self.poll_stalled(cx).map(|()| Some(Err(self.fail(BodyError::Stalled))));
                }
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => {
                    let error = body_error(&error);
                    return Poll::Ready(Some(Err(self.fail(error))));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    self.is_waiting = false;
                    let Ok(data) = frame.into_data() else { continue };
                    if self.incoming.is_end_stream() {
                        self.finish();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(data))));
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
