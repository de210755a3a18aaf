//! The second stage of a connection: which of the listener's protocols the client speaks.
//!
//! In: a stream of which nothing has been read. Out: the protocol, and the bytes that were read to detect it. HTTP/2 with prior
//! knowledge starts with a fixed preface (RFC 9113 3.4) that is no HTTP/1 request. All other bytes go to HTTP/1, whose parser
//! refuses what is none. Where clients may speak one protocol only, that one gets all bytes.
//! The time for the first bytes is part of the time for the first head: bytes that may still become a preface buy no time.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::byte_stream::ByteStream;
use crate::drain::Membership;
use crate::listener::{Protocol, Protocols};
use crate::metrics::Metrics;
use crate::settings::Limits;
use crate::timer::Timer;

/// What an HTTP/2 client with prior knowledge sends first (RFC 9113 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Room for what is read from a connection. Small, because every idle connection has it.
pub(crate) const READ_BYTES: usize = 4 * 1024;

/// A stream, and what has been read ahead from it.
pub(crate) struct ReadAhead<T> {
    pub(crate) io: T,
    /// All bytes since the first.
    pub(crate) read: BytesMut,
    /// Whether the last read filled its room, so that the kernel may hold more.
    pub(crate) may_have_more: bool,
    /// Since when more of a head is waited for.
    pub(crate) head_since: Option<Instant>,
    /// Armed for no later than the first head may take.
    pub(crate) timer: Timer,
}

/// What the first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    /// The client speaks it, and at least one byte was read.
    Protocol(Protocol),
    /// Time is up, and what was read may still become a preface.
    Late,
    /// The client has said too little, and is gone or was silent for too long.
    Nothing,
}

impl<T: ByteStream> ReadAhead<T> {
    pub(crate) fn new(io: T) -> Self {
        let read = BytesMut::with_capacity(READ_BYTES);
        Self { io, read, may_have_more: false, head_since: None, timer: Timer::default() }
    }

    /// Reads until it is clear which of `protocols` the client speaks.
    ///
    /// # Cancel safety
    /// What was read stays in `self`.
    pub(crate) async fn detect(
        &mut self,
        protocols: Protocols,
        limits: &Limits,
        metrics: &Metrics,
        drain: &mut Membership,
    ) -> Detected {
        let mut silent_since = None;
        poll_fn(|cx| {
            loop {
                if let Some(protocol) = spoken(&self.read, protocols) {
                    return Poll::Ready(Detected::Protocol(protocol));
                }
                match self.poll_read(cx) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Detected::Nothing),
                    Poll::Ready(Ok(read)) => metrics.bytes_in.add(read as u64),
                    Poll::Pending => break,
                }
            }
            if !self.read.is_empty() {
                let since = *self.head_since.get_or_insert_with(Instant::now);
                ready!(self.timer.poll(cx, since + limits.head_time));
                return Poll::Ready(Detected::Late);
            }
            let silence = match drain.poll_draining(cx) {
                // A fresh connection has to say something as soon as a head has to be whole.
                Poll::Pending => limits.head_time,
                // It may have been accepted only because of the drain, with its request on the way.
                Poll::Ready(()) => limits.linger_time,
            };
            let since = *silent_since.get_or_insert_with(Instant::now);
            ready!(self.timer.poll(cx, since + silence));
            metrics.idle_closed.add(1);
            Poll::Ready(Detected::Nothing)
        })
        .await
    }

    /// Reads once; 0 is the end. There is room, since a whole preface is enough to decide.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = self.read.capacity() - self.read.len();
        let read = ready!(pin!(self.io.read_buf(&mut self.read)).poll(cx))?;
        self.may_have_more = read == room;
        Poll::Ready(Ok(read))
    }
}

/// What a client speaks whose first bytes are `read`, where they are enough to tell.
fn spoken(read: &[u8], protocols: Protocols) -> Option<Protocol> {
    if read.is_empty() {
        return None;
    }
    match (protocols.has(Protocol::Http1), protocols.has(Protocol::Http2)) {
        (_, false) => Some(Protocol::Http1),
        (false, true) => Some(Protocol::Http2),
        (true, true) if read.starts_with(PREFACE) => Some(Protocol::Http2),
        (true, true) if PREFACE.starts_with(read) => None,
        (true, true) => Some(Protocol::Http1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_decides_where_both_may_be_spoken() {
        use Protocol::{Http1, Http2};
        let (both, one, two) =
            (Protocols::only(Http1).and(Http2), Protocols::only(Http1), Protocols::only(Http2));
        let more = [PREFACE, b"\0\0"].concat();
        for (read, protocols, expected) in [
            (&b""[..], both, None),
            (b"", one, None),
            (b"", two, None),
            (b"P", both, None),
            (&PREFACE[..23], both, None),
            (PREFACE, both, Some(Http2)),
            (&more, both, Some(Http2)),
            (b"PO", both, Some(Http1)),
            (b"PRI * HTTP/2.0\r\n\r\nXX", both, Some(Http1)),
            (b"GET / HTTP/1.1\r\n\r\n", both, Some(Http1)),
            (PREFACE, one, Some(Http1)),
            (b"P", one, Some(Http1)),
            (b"GET / HTTP/1.1\r\n\r\n", two, Some(Http2)),
        ] {
            assert_eq!(spoken(read, protocols), expected, "{:?} of {protocols:?}", read.escape_ascii());
        }
    }
}
