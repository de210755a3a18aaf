//! The server side of HTTP/2 on one connection (RFC 9113).
//!
//! In: a connection, with the bytes that were read from it to detect the protocol. Out: calls of the service, and their answers in frames. One task owns a
//! connection with all of its streams, and calls are polled inside it. A call that is answered at its first poll goes straight out, without a
//! place among the streams; one that waits has a place and a waker, so that a wake costs the streams that are due and no others. A turn:
//!
//! ```text
//! calls that are due -> frames that were read -> windows, ends -> DATA by priority -> write once -> read once
//!        ^                                                                                         |
//!        +----------------- until nothing moves, or the turn is used up ---------------------------+
//! ```
//!
//! `receive`, `request_data` and `control` have what frames of the client do, `answer` how a response begins, `send` how its content is queued and counted, `ending` the ways out. What a
//! client may cost is bounded in `budget` and by the constants here; a stream's errors reset it, and errors of the connection end all.
//! Deliberately absent: server push, extended CONNECT, and the priorities of RFC 7540.

mod answer;
mod budget;
mod connection;
mod control;
mod ending;
mod flow;
mod frame;
mod frame_queue;
pub(crate) mod hpack;
mod incoming_content;
mod outgoing;
mod priority;
mod receive;
mod request_data;
mod request_head;
mod schedule;
mod send;
mod settings;
mod stream;
mod wakers;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncReadExt as _;

use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::detect::{READ_BYTES, ReadAhead};
use crate::drain::Membership;
use crate::service::Service;
use connection::{ConnectionEnd, Http2Connection, TurnCount};
use frame::ErrorCode;

/// What the read buffer grows by where a read has filled it.
const READ_CONTENT_BYTES: usize = 32 * 1024;
/// Serves a connection whose client speaks HTTP/2, until it closes.
pub(crate) async fn serve<T: ByteStream, S: Service>(
    stream: ReadAhead<T>,
    context: &ConnectionContext<S>,
    drain: &mut Membership,
) {
    let mut connection = Box::new(Http2Connection::new(stream, context, drain));
    let end = poll_fn(|cx| connection.poll_serve(cx)).await;
    connection.end(end).await;
}

impl<T: ByteStream, S: Service> Http2Connection<'_, T, S> {
    /// Takes turns until the connection is to end.
    fn poll_serve(&mut self, cx: &mut Context<'_>) -> Poll<ConnectionEnd> {
        self.wakers.register(cx.waker());
        let mut turn = TurnCount::default();
        loop {
            let moved = self.drive_due().and_then(|()| self.take_frames(cx, &mut turn));
            if let Err(code) = moved {
                return Poll::Ready(ConnectionEnd::Error(code));
            }
            self.queue_content(&mut turn);
            self.settle();
            let Ok(is_written) = self.write(cx) else {
                return Poll::Ready(ConnectionEnd::Gone);
            };
            if turn.is_used_up() {
                // Others have their turn, and this one comes again.
                cx.waker().wake_by_ref();
                break;
            }
            // What was read before may wait for the room that is there now.
            if is_written && (!self.schedule.is_empty() || self.has_whole_frame()) {
                continue;
            }
            if self.queue.is_crowded() {
                break;
            }
            match self.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(ConnectionEnd::Gone),
                Poll::Pending => break,
            }
        }
        self.poll_waiting(cx)
    }

    /// Reads once into the buffer; 0 is the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let at_least = if self.may_have_more { READ_CONTENT_BYTES } else { READ_BYTES };
        let at_least = at_least.max(self.missing_bytes());
        if !self.read.try_reclaim(at_least) && self.read.capacity() - self.read.len() < at_least.min(512) {
            self.read.reserve(at_least);
        }
        let room = self.read.capacity() - self.read.len();
        let read = ready!(pin!(self.io.read_buf(&mut self.read)).poll(cx))?;
        self.may_have_more = read == room;
        self.is_at_end |= read == 0;
        self.context.metrics.bytes_in.add(read as u64);
        Poll::Ready(Ok(read))
    }

    /// Polls the streams whose wakers have fired.
    fn drive_due(&mut self) -> Result<(), ErrorCode> {
        let mut due = std::mem::take(&mut self.due);
        self.wakers.take_due(&mut due);
        let driven = due.drain(..).try_for_each(|place| self.drive(place));
        due.clear();
        self.due = due;
        driven
    }
}
