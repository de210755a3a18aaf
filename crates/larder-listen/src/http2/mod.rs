//! The server side of HTTP/2 (RFC 9113), on the `h2` crate.
//!
//! In: a connection whose client began with the preface. Out: one task per stream, each a call of the service. This
//! file owns the connection: it accepts streams, closes it when it is idle, when the drain starts, or when the client
//! resets more streams than it lets finish. `h2` itself bounds what a frame, a header list, a run of CONTINUATION, of
//! empty DATA or of protocol errors may cost; its limits are set here, none is left to its default unseen.
//! Deliberately absent: server push, extended CONNECT, priorities.

mod content;
mod head;
pub(crate) mod hpack;
mod prefixed;
mod stream;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, SendResponse};
use tokio::time::{Instant, timeout};

use crate::byte_stream::ByteStream;
use crate::context::ConnectionContext;
use crate::drain::Membership;
use crate::service::Service;
use crate::settings::Limits;
use crate::timer::Timer;
use prefixed::Prefixed;

/// Unread content per stream and per connection: a few round trips of an ordinary line.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Response content waiting inside `h2`, per stream. 128 streams of it bound what a client that stops reading pins.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that were reset and whose late frames are still tolerated.
const RESET_STREAMS_KEPT: usize = 50;
/// Streams reset before they were even accepted, and resets that the client's errors force on us, before it is told
/// to calm down.
const PENDING_RESETS_MAX: usize = 20;
const ERROR_RESETS_MAX: usize = 200;
/// How long a connection that was told to go away may take to do so, once no stream is open.
const GOODBYE: Duration = Duration::from_secs(5);

/// What the streams of one connection count together.
#[derive(Debug, Default)]
struct Streams {
    open: AtomicUsize,
    finished: AtomicU64,
    reset: AtomicU64,
}

/// Serves `io` to its end; `ahead` is what was read from it already.
pub(crate) async fn serve<T: ByteStream, S: Service>(
    io: T,
    ahead: Bytes,
    context: &ConnectionContext<S>,
    drain: &mut Membership,
) {
    let limits = &context.settings.limits;
    let io = Prefixed::new(ahead, io, context.metrics.clone());
    let handshake = builder(limits).handshake::<_, Bytes>(io);
    let Ok(Ok(mut connection)) = timeout(limits.head_time, handshake).await else {
        return context.metrics.http2_errors.add(1);
    };
    let streams = Arc::new(Streams::default());
    let mut timer = Timer::default();
    let mut idle_since = None;
    let mut is_leaving = false;
    loop {
        let accepted = poll_fn(|cx| {
            loop {
                match connection.poll_accept(cx) {
                    Poll::Ready(Some(Ok(accepted))) => {
                        idle_since = None;
                        return Poll::Ready(Some(accepted));
                    }
                    Poll::Ready(Some(Err(error))) => {
                        if !error.is_io() {
                            context.metrics.http2_errors.add(1);
                        }
                        return Poll::Ready(None);
                    }
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => {}
                }
                if !is_leaving && streams.is_flooded(limits.resets_max) {
                    context.metrics.resets.add(1);
                    connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                    is_leaving = true;
                    continue;
                }
                if !is_leaving && drain.poll_draining(cx).is_ready() {
                    connection.graceful_shutdown();
                    is_leaving = true;
                    continue;
                }
                // While streams are open the timer only makes sure that their end is noticed.
                let is_idle = streams.open.load(Ordering::Relaxed) == 0;
                let wait = if is_leaving { GOODBYE } else { limits.keep_alive_idle };
                let since = match idle_since {
                    Some(since) if is_idle => since,
                    _ => Instant::now(),
                };
                idle_since = is_idle.then_some(since);
                ready!(timer.poll(cx, since + wait));
                if idle_since.is_none_or(|since| since.elapsed() < wait) {
                    continue;
                }
                if is_leaving {
                    return Poll::Ready(None);
                }
                context.metrics.idle_closed.add(1);
                connection.graceful_shutdown();
                is_leaving = true;
                idle_since = None;
            }
        })
        .await;
        let Some((request, respond)) = accepted else {
            return;
        };
        streams.open.fetch_add(1, Ordering::Relaxed);
        context.metrics.requests_http2.add(1);
        tokio::spawn(Box::pin(run_stream(request, respond, context.clone(), Open(streams.clone()))));
    }
}

async fn run_stream<S: Service>(
    request: http::Request<h2::RecvStream>,
    respond: SendResponse<Bytes>,
    context: ConnectionContext<S>,
    open: Open,
) {
    let streams = &open.0;
    match stream::serve(request, respond, &context).await {
        stream::End::Finished => streams.finished.fetch_add(1, Ordering::Relaxed),
        stream::End::Reset => streams.reset.fetch_add(1, Ordering::Relaxed),
    };
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(RESET_STREAMS_KEPT)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(Some(ERROR_RESETS_MAX));
    builder
}

impl Streams {
    fn is_flooded(&self, resets_max: u64) -> bool {
        let finished = self.finished.load(Ordering::Relaxed);
        self.reset.load(Ordering::Relaxed) > finished.saturating_add(resets_max)
    }
}

/// Counts a stream as open until dropped.
struct Open(Arc<Streams>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
