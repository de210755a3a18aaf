//! How a connection ends: in order, by an error, or because its client is gone or too slow.
//!
//! In: time, the drain, and what was found on the way. Out: GOAWAY and the close. In order means twice: first a GOAWAY that forbids no stream, with a
//! PING, and when that comes back, one with the last stream. A client that had sent a request meanwhile has it answered (RFC 9113 6.8).

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::connection::{ConnectionEnd, Http2Connection, LEAVING_PING, Leaving, Reading};
use super::frame::{ErrorCode, GOAWAY, PING};
use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::detect::READ_BYTES;
use crate::error::Refusal;
use crate::linger::linger;
use crate::service::Service;
use crate::timer::Pace;

/// An idle connection keeps no larger buffer.
const READ_KEPT_BYTES: usize = 16 * 1024;
/// The first GOAWAY forbids no stream.
const ANY_STREAM: u32 = 0x7fff_ffff;

impl<T: ByteStream, S: Service> Http2Connection<'_, T, S> {
    /// What there is to wait for beside bytes and calls: limits of time, the drain, the end of the last stream.
    pub(super) fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let limits = &self.context.settings.limits;
        if !self.queue.is_empty() {
            let pace = self
                .pace
                .get_or_insert_with(|| Pace::new(limits.write_idle, limits.rate_window, limits.rate_min));
            if pace.poll_stalled(cx, &mut self.timer).is_ready() {
                self.context.metrics.write_stalled.add(1);
                return Poll::Ready(ConnectionEnd::Gone);
            }
        }
        self.poll_window(cx);
        if self.has_partial() {
            let since = *self.partial_since.get_or_insert_with(Instant::now);
            if self.timer.poll(cx, since + limits.head_time).is_ready() {
                self.context.metrics.count_refusal(Refusal::HeadTimeout);
                return Poll::Ready(ConnectionEnd::Error(ErrorCode::NoError));
            }
        } else {
            self.partial_since = None;
        }
        if let Leaving::No = self.leaving
            && self.drain.poll_draining(cx).is_ready()
        {
            self.warn();
        }
        if let Leaving::Warned(since) = self.leaving
            && self.timer.poll(cx, since + limits.linger_time).is_ready()
        {
            self.say_last();
        }
        if self.streams.open() > 0 {
            self.idle_since = None;
        } else if self.is_client_leaving || matches!(self.leaving, Leaving::Final(_)) {
            self.say_last();
            if self.queue.is_empty() {
                return Poll::Ready(ConnectionEnd::Done);
            }
        } else if let Leaving::No = self.leaving {
            self.shrink();
            let since = *self.idle_since.get_or_insert_with(Instant::now);
            // The first request has the time of a head, as over HTTP/1: the connection was opened for it.
            let limit = match self.streams.last {
                0 => limits.keep_alive_idle.max(limits.head_time),
                _ => limits.keep_alive_idle,
            };
            if self.timer.poll(cx, since + limit).is_ready() {
                self.context.metrics.idle_closed.add(1);
                self.warn();
            }
        }
        if self.has_news {
            // What was queued here is written by the next turn.
            self.has_news = false;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Whether the rest of a frame or of a block is missing, and could have been read. Content may come as slowly as its reader's limits say.
    fn has_partial(&self) -> bool {
        match self.reading {
            _ if self.queue.is_crowded() => false,
            Reading::Content(_) => false,
            Reading::Preface => true,
            Reading::Frame => self.block.is_some() || (!self.read.is_empty() && !self.has_whole_frame()),
        }
    }

    /// An idle connection gives its memory back.
    fn shrink(&mut self) {
        if self.read.is_empty() && self.read.capacity() > READ_KEPT_BYTES {
            self.read = bytes::BytesMut::with_capacity(READ_BYTES);
        }
    }

    fn goaway(&mut self, last: u32, code: ErrorCode) {
        let [a, b, c, d] = last.to_be_bytes();
        let [e, f, g, h] = (code as u32).to_be_bytes();
        self.queue.frame((GOAWAY, 0, 0), &[a, b, c, d, e, f, g, h]);
        self.has_news = true;
    }

    /// Says that it is about to leave.
    fn warn(&mut self) {
        self.goaway(ANY_STREAM, ErrorCode::NoError);
        self.queue.frame((PING, 0, 0), &LEAVING_PING);
        self.leaving = Leaving::Warned(Instant::now());
    }

    /// Says which stream is the last.
    pub(super) fn say_last(&mut self) {
        if !matches!(self.leaving, Leaving::Final(_)) {
            self.goaway(self.streams.last, ErrorCode::NoError);
            self.leaving = Leaving::Final(self.streams.last);
        }
    }

    /// Ends the connection. Calls are dropped before anything waits.
    pub(super) async fn end(mut self: Box<Self>, end: ConnectionEnd) {
        let ConnectionContext { settings, metrics, .. } = self.context;
        if let ConnectionEnd::Gone = end {
            self.count_partly_written();
        }
        self.give_up();
        if let ConnectionEnd::Error(code) = end {
            if code != ErrorCode::NoError {
                metrics.http2_errors.add(1);
            }
            // It may not rise again (RFC 9113 6.8).
            let last = if let Leaving::Final(last) = self.leaving { last } else { self.streams.last };
            self.goaway(last, code);
            let is_written = poll_fn(|cx| {
                match self.write(cx) {
                    Ok(true) => return Poll::Ready(true),
                    Ok(false) => {}
                    Err(_) => return Poll::Ready(false),
                }
                let limits = &self.context.settings.limits;
                let pace = self
                    .pace
                    .get_or_insert_with(|| Pace::new(limits.write_idle, limits.rate_window, limits.rate_min));
                ready!(pace.poll_stalled(cx, &mut self.timer));
                Poll::Ready(false)
            });
            if !is_written.await {
                return;
            }
        }
        if !matches!(end, ConnectionEnd::Gone) {
            linger(&mut self.io, self.is_at_end, &mut self.timer, &settings.limits, metrics).await;
        }
    }

    /// Drops all streams. Calls that were not answered are counted.
    fn give_up(&mut self) {
        let places: Vec<usize> = self.streams.places().collect();
        for place in places {
            self.drop_stream(place);
        }
    }
}
