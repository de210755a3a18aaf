//! One HTTP/2 connection, and the room on it.
//!
//! In: a wire that was agreed to speak HTTP/2. Out: a [`Multiplexed`] connection that hands out [`Slot`]s, as long as it has room
//! and neither side has counted too much of what looks like an attack.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use larder_http::message::Scheme;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use super::load::Load;
use super::task;
use crate::error::OriginError;
use crate::settings::HeadLimits;
use crate::wire::{Trace, WeakSocket, Wire};

/// Streams at once on a connection, however many the peer would take.
const STREAMS_MAX: usize = 100;
/// Content that may wait for its reader, per stream.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// As much as all streams together, so that readers who do not read use up nobody else's window. What a slow reader
/// can pin is its own stream's window, on however many connections the readers are spread.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_MAX as u32;
/// Request content waiting inside `h2`, per stream.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that we reset, most of them because their clients left, before a connection is left. Peers that guard
/// against resets count them by the hundred, and then close it for everybody.
const RESETS_MAX: usize = 100;
/// Streams that the peer breaks before a connection is left.
const FAULTS_MAX: usize = 50;
/// Streams that were reset and whose late frames are still tolerated: all that there can be in a connection's life,
/// those included that are reset after it was left.
const RESET_STREAMS_KEPT: usize = RESETS_MAX + FAULTS_MAX + STREAMS_MAX;
/// How long they are: on a slow way, the window of a download that was given up takes a while to arrive.
const RESET_STREAMS_KEPT_FOR: Duration = Duration::from_secs(60);
/// Resets that the peer's errors force on us before `h2` ends the connection, the streams under way with it. Frames
/// that come later than that count one each, so this is far beyond what ends well.
const ERROR_RESETS_MAX: usize = 4096;
/// A connection is left after ten thousand streams (clients use odd numbers), so that what either side counts over
/// its life begins anew.
pub(super) const LAST_STREAM_ID: u32 = 2 * 10_000 - 1;

/// An open connection. Ends with its last owner.
pub(crate) struct Multiplexed {
    pub(super) sender: SendRequest<Bytes>,
    pub(super) scheme: Scheme,
    pub(super) trace: Arc<Trace>,
    socket: WeakSocket,
    opened: Instant,
    load: Arc<Load>,
    /// Whether the peer has said how many streams it takes.
    settled: watch::Receiver<bool>,
    /// The connection's task notices when this is gone.
    _owner: oneshot::Sender<Infallible>,
}

impl Multiplexed {
    /// Begins HTTP/2 on `wire`. The first request need not wait for the peer's settings; the second does, because only
    /// they say whether there is room for it.
    pub(crate) async fn start(
        wire: Wire,
        socket: WeakSocket,
        scheme: Scheme,
        limits: &HeadLimits,
    ) -> Result<Arc<Self>, OriginError> {
        let trace = wire.trace();
        trace.report_failed_writes();
        let (sender, mut connection) =
            builder(limits).handshake::<_, Bytes>(wire).await.map_err(|_| OriginError::Closed)?;
        let load = Arc::new(Load::new());
        let opened = Instant::now();
        let (owner, is_owned) = oneshot::channel();
        let (settle, settled) = watch::channel(false);
        let watch = task::Watch::new(connection.ping_pong(), trace.clone(), load.clone());
        tokio::spawn(task::drive(connection, watch, settle, is_owned));
        Ok(Arc::new(Self { sender, scheme, trace, socket, opened, load, settled, _owner: owner }))
    }

    /// When the handshake was over.
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }

    /// To be waited for where the peer has not said yet how many streams it takes.
    pub(crate) fn unsettled(&self) -> Option<Unsettled> {
        (!*self.settled.borrow()).then(|| Unsettled(self.settled.clone()))
    }

    /// Whether this may take a stream, now or when it has room again.
    pub(crate) fn is_usable(&self, idle_limit: Duration) -> bool {
        if self.load.is_retired.load(Ordering::Relaxed) || !self.is_open() {
            return false;
        }
        // Between exchanges the connection's task may not have run since the peer closed.
        self.unused_since().is_none_or(|since| since.elapsed() < idle_limit && !self.socket.is_ended())
    }

    /// Whether a stream could be opened, as far as the connection's task has seen.
    pub(super) fn is_open(&self) -> bool {
        let mut sender = self.sender.clone();
        // A clone has no request pending of its own, so this only tells of the connection and keeps no waker.
        !matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_)))
    }

    /// Since when nothing uses this; `None` while something does.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        (self.load.in_use.load(Ordering::Relaxed) == 0).then(|| *self.load.used.lock())
    }

    /// Room for one more stream, if there is; `freed` is told when there is again.
    pub(crate) fn enter(self: &Arc<Self>, freed: &Arc<Notify>) -> Option<Slot> {
        let most = self.sender.current_max_send_streams().min(STREAMS_MAX);
        let has_room = self.load.in_use.load(Ordering::Relaxed) < most;
        has_room.then(|| Self::enter_new(self, freed))
    }

    /// Room for the first stream, which a connection is taken to have until its peer says otherwise. Where it takes
    /// none at all, that stream waits inside `h2` until its limit of time.
    pub(crate) fn enter_new(connection: &Arc<Self>, freed: &Arc<Notify>) -> Slot {
        connection.load.in_use.fetch_add(1, Ordering::Relaxed);
        Slot { connection: connection.clone(), freed: freed.clone(), has_ended: AtomicBool::new(false) }
    }

    /// Takes no further stream. Those under way go on.
    pub(super) fn retire(&self) {
        self.load.retire();
    }
}

/// A connection whose peer has not said how many streams it takes. Does not keep it open.
pub(crate) struct Unsettled(watch::Receiver<bool>);

impl Unsettled {
    /// Waits until it has, or is gone.
    ///
    /// # Cancel safety
    /// May be dropped at any time. The caller sets the time limit.
    pub(crate) async fn settles(mut self) {
        let _ = self.0.wait_for(|is_settled| *is_settled).await;
    }
}

/// One exchange's room on a connection. Frees it when dropped; the stream itself ends with its handles, and is taken to
/// have been reset by that unless it had ended before.
pub(crate) struct Slot {
    pub(super) connection: Arc<Multiplexed>,
    freed: Arc<Notify>,
    has_ended: AtomicBool,
}

impl Slot {
    /// The stream has ended on both sides.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// What is left of the stream is of no use to anybody, and will be reset.
    pub(crate) fn leave(&self) {
        self.end();
        let load = &self.connection.load;
        load.count(&load.resets, RESETS_MAX);
    }

    /// The stream has ended because the peer broke the protocol on it.
    pub(crate) fn blame(&self) {
        self.end();
        let load = &self.connection.load;
        load.count(&load.faults, FAULTS_MAX);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let load = &self.connection.load;
        if !self.has_ended.load(Ordering::Relaxed) {
            self.leave();
        }
        *load.used.lock() = Instant::now();
        load.in_use.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_one();
    }
}

fn builder(limits: &HeadLimits) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(1)
        .enable_push(false)
        // Twice what is allowed, counted as RFC 9113 10.5.1 counts: beyond that a stream fails for a reason that `h2`
        // does not tell from others, up to that it is we who say that a head is too large.
        .max_header_list_size(u32::try_from(limits.bytes_max.saturating_mul(2)).unwrap_or(u32::MAX))
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(RESET_STREAMS_KEPT)
        .reset_stream_duration(RESET_STREAMS_KEPT_FOR)
        .max_local_error_reset_streams(Some(ERROR_RESETS_MAX));
    builder
}
