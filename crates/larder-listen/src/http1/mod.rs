//! The server side of HTTP/1.0 and 1.1 on one connection (RFC 9112).
//!
//! In: a connection, with the bytes that were read from it to detect the protocol. Out: calls of the service, one after the other,
//! and their answers framed. One task owns a connection and everything in it: the service's future is polled inside it, so that a hit costs one read, one call and one
//! write, no channel and no timer. The walk of a connection:
//!
//! ```text
//!            +--------------------- keep alive ----------------------+
//!            v                                                       |
//! detect -> head -> refused ----------------------------> linger     |
//!            |                                              ^        |
//!            v                                              |        |
//!          call -> client left -> closed                    |        |
//!            |  \-> content broke -> refused                |        |
//!            v                                              |        |
//!         respond -> 101 -> tunnel                          |        |
//!            |   \-> body broke -- the framing shows it ----+        |
//!            |              \-> it would look whole -> reset         |
//!            +----> done ------- must close ----------------+--------+
//!                     \-> the client wanted the end -> closed
//! ```
//!
//! After a refusal nothing is read as a request any more (a desynchronised client is how smuggling begins); the
//! connection is only drained for a moment, so that the client sees its answer and not a reset. A response that is cut ends
//! so, too: without its last chunk, or short of its length, nobody takes it for whole, and all before the cut arrives.

mod exchange;
pub(crate) mod head;
mod incoming;
pub(crate) mod respond;
mod tunnel;

use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use larder_http::authority::Authority;
use larder_http::message::Tunnel;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::delivery::Report;
use crate::detect::{READ_BYTES, ReadAhead};
use crate::drain::Membership;
use crate::error::Refusal;
use crate::linger::linger;
use crate::outbox::{Outbox, Written};
use crate::service::{Interims, Service};
use crate::timer::{Pace, Timer};
use head::Scan;

/// What the read buffer grows by, at least, while content is read.
const READ_CONTENT_BYTES: usize = 32 * 1024;

/// What to do after an exchange.
enum Next {
    KeepAlive,
    /// Nothing is lost by closing at once.
    Close,
    /// The client may still be sending, and must see its answer.
    Linger,
    /// What was sent must not look complete, or the client does not take it.
    Reset,
    /// The 101 has been written: no HTTP from here on.
    Tunnel(Tunnel),
}

/// Why writing stopped.
enum Stop {
    Gone,
    Stalled,
}

struct Conn<'a, T, S: Service> {
    io: T,
    read: BytesMut,
    eof: bool,
    /// Whether the last read filled its room, so that the kernel may hold more.
    may_have_more: bool,
    out: Outbox,
    /// On the response that is being sent.
    report: Option<Report<'a, S>>,
    /// When the last response was sent.
    idle_since: Option<Instant>,
    timer: Timer,
    scan: Scan,
    /// Kept for the next exchange.
    interims: Option<Interims>,
    /// The host of the last request.
    known: Option<Authority>,
    context: &'a ConnectionContext<S>,
    drain: &'a mut Membership,
    /// Since when more of the first head is waited for.
    head_since: Option<Instant>,
}

/// Serves a connection whose client speaks HTTP/1, until it closes.
pub(crate) async fn serve<T: ByteStream, S: Service>(
    stream: ReadAhead<T>,
    context: &ConnectionContext<S>,
    drain: &mut Membership,
) {
    let mut conn = Conn::new(stream, context, drain);
    loop {
        let next = match conn.next_head().await {
            Arrived::Head(extent) => conn.exchange(extent).await,
            Arrived::Refused(refusal) => conn.refuse(refusal).await,
            Arrived::Nothing => Next::Close,
        };
        match next {
            Next::KeepAlive => {}
            Next::Close => return conn.close(),
            Next::Linger => return conn.linger().await,
            Next::Reset => return conn.io.reset_when_closed(),
            Next::Tunnel(tunnel) => {
                let idle = context.settings.limits.tunnel_idle;
                return tunnel::run(conn.io, conn.read, tunnel, idle, &context.metrics).await;
            }
        }
    }
}

/// Refuses a client whose protocol is not known, and closes.
pub(crate) async fn refuse<T: ByteStream, S: Service>(
    stream: ReadAhead<T>,
    refusal: Refusal,
    context: &ConnectionContext<S>,
    drain: &mut Membership,
) {
    let mut conn = Conn::new(stream, context, drain);
    if let Next::Linger = conn.refuse(refusal).await {
        conn.linger().await;
    }
}

/// What came where a head was expected.
enum Arrived {
    Head(Range<usize>),
    Refused(Refusal),
    Nothing,
}

impl<'a, T: ByteStream, S: Service> Conn<'a, T, S> {
    fn new(stream: ReadAhead<T>, context: &'a ConnectionContext<S>, drain: &'a mut Membership) -> Self {
        let ReadAhead { io, read, may_have_more, head_since, timer } = stream;
        Self {
            io,
            read,
            eof: false,
            may_have_more,
            out: Outbox::default(),
            report: None,
            idle_since: None,
            timer,
            scan: Scan::default(),
            interims: None,
            known: None,
            context,
            drain,
            head_since,
        }
    }

    /// Waits for a whole head.
    async fn next_head(&mut self) -> Arrived {
        self.scan.reset();
        let mut idle_since = self.idle_since.take();
        let mut head_since = self.head_since.take();
        poll_fn(|cx| {
            loop {
                if let Some(arrived) = self.scan_head() {
                    return Poll::Ready(arrived);
                }
                if self.eof {
                    return Poll::Ready(Arrived::Nothing);
                }
                match self.poll_fill(cx, READ_BYTES) {
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Arrived::Nothing),
                    Poll::Pending => break,
                }
            }
            let limits = &self.context.settings.limits;
            if self.read.is_empty() {
                if self.drain.poll_draining(cx).is_ready() {
                    return Poll::Ready(Arrived::Nothing);
                }
                let since = *idle_since.get_or_insert_with(Instant::now);
                ready!(self.timer.poll(cx, since + limits.keep_alive_idle));
                self.context.metrics.idle_closed.add(1);
                return Poll::Ready(Arrived::Nothing);
            }
            let since = *head_since.get_or_insert_with(Instant::now);
            ready!(self.timer.poll(cx, since + limits.head_time));
            Poll::Ready(Arrived::Refused(Refusal::HeadTimeout))
        })
        .await
    }

    fn scan_head(&mut self) -> Option<Arrived> {
        match self.scan.advance(&self.read, &self.context.settings.limits) {
            Ok(None) => None,
            Ok(Some(extent)) => Some(Arrived::Head(extent)),
            Err(refusal) => Some(Arrived::Refused(refusal)),
        }
    }

    /// Takes the head at `extent` from the buffer.
    fn parse(&mut self, extent: &Range<usize>) -> Result<head::ParsedHead, Refusal> {
        let bytes = self.read.split_to(extent.end).freeze();
        let ConnectionContext { settings, scheme, peer, .. } = self.context;
        head::parse(&bytes, extent, &self.scan, *scheme, peer.local, &settings.limits, &mut self.known)
    }

    /// Reads once into the buffer; 0 is the end, which is noted.
    fn poll_fill(&mut self, cx: &mut Context<'_>, at_least: usize) -> Poll<io::Result<usize>> {
        // Back to the front of the buffer where nobody holds what was read before: a connection that walked through all of it
        // would take as many lines of the processor's caches as sixty heads.
        if !self.read.try_reclaim(at_least) && self.read.capacity() - self.read.len() < 512 {
            self.read.reserve(at_least);
        }
        let room = self.read.capacity() - self.read.len();
        let read = ready!(pin!(self.io.read_buf(&mut self.read)).poll(cx))?;
        self.may_have_more = read == room;
        self.eof |= read == 0;
        self.context.metrics.bytes_in.add(read as u64);
        Poll::Ready(Ok(read))
    }

    /// Writes everything that is queued.
    fn poll_flush(&mut self, cx: &mut Context<'_>, pace: &mut Option<Pace>) -> Poll<Result<(), Stop>> {
        while !self.out.is_empty() {
            match self.out.poll_write(cx, &mut self.io) {
                Poll::Ready(Ok(Written { bytes: 0, .. }) | Err(_)) => return Poll::Ready(Err(Stop::Gone)),
                Poll::Ready(Ok(written)) => {
                    self.context.metrics.bytes_out.add(written.bytes as u64);
                    if written.from_file > 0 {
                        self.context.metrics.bytes_from_files.add(written.from_file as u64);
                    }
                    if let Some(report) = &mut self.report {
                        report.body_bytes += written.content as u64;
                    }
                    if let Some(pace) = pace {
                        pace.moved(written.bytes as u64);
                    }
                }
                Poll::Pending => {
                    let limits = &self.context.settings.limits;
                    let pace = pace.get_or_insert_with(|| {
                        Pace::new(limits.write_idle, limits.rate_window, limits.rate_min)
                    });
                    ready!(pace.poll_stalled(cx, &mut self.timer));
                    self.context.metrics.write_stalled.add(1);
                    return Poll::Ready(Err(Stop::Stalled));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Answers a request that was refused. Whatever follows it is not read as a request.
    async fn refuse(&mut self, refusal: Refusal) -> Next {
        let context = self.context;
        context.metrics.count_refusal(refusal);
        context.service.refused(refusal, Some(context.peer.clone()));
        self.out.inline(|out| respond::write_refusal(out, refusal, &context.settings.clock));
        let mut pace = None;
        match poll_fn(|cx| self.poll_flush(cx, &mut pace)).await {
            Ok(()) => Next::Linger,
            Err(Stop::Gone | Stop::Stalled) => Next::Close,
        }
    }

    /// Closes both directions. Behind a response that is not whole, the client is not told that nothing more was meant to follow.
    fn close(&mut self) {
        if self.out.is_empty() {
            self.io.end();
        }
    }

    /// Closes our direction and reads on for a moment.
    async fn linger(&mut self) {
        let ConnectionContext { settings, metrics, .. } = self.context;
        linger(&mut self.io, self.eof, &mut self.timer, &settings.limits, metrics).await;
    }
}
