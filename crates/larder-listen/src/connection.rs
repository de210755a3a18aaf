//! One client's connection, before it is known which protocol it speaks.
//!
//! HTTP/2 with prior knowledge starts with a fixed preface (RFC 9113 3.4) which no HTTP/1 request can be taken for.
//! Whatever is neither goes to HTTP/1, whose parser refuses it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use larder_http::message::Peer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::drain::{DrainSignal, Membership};
use crate::http1::{self, Ended};
use crate::http2;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;

/// A stream that a connection can run on.
pub trait Transport: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Whether [`Self::poll_send_file`] works.
    const SENDS_FILES: bool = false;

    /// Writes bytes behind which a file follows at once: the kernel may keep them back for it.
    fn poll_write_ahead(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write(cx, bytes)
    }

    /// Writes `range` of a file, as far as the kernel takes it, and says how much that was.
    ///
    /// # Errors
    /// Those of `sendfile`; `Unsupported` where the stream is no socket.
    fn poll_send_file(&mut self, _: &mut Context<'_>, _: &File, _: Range<u64>) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Makes the next close a reset, so that nothing sent so far can be taken for a whole. Where the stream cannot,
    /// it just closes.
    fn reset_when_closed(&mut self) {}
}

impl Transport for tokio::io::DuplexStream {}

/// What a connection of either protocol runs with.
#[derive(Clone)]
pub(crate) struct Surroundings<S> {
    pub(crate) peer: Peer,
    pub(crate) settings: Arc<Settings>,
    pub(crate) service: S,
    pub(crate) metrics: Arc<Metrics>,
}

/// Serves one connection to its end, over HTTP/1 or HTTP/2 as the client begins.
///
/// # Cancel safety
/// Dropping it closes the connection; calls of the service that run in it are dropped, and their responses reported
/// as not complete.
pub async fn serve_connection<T: Transport, S: Service>(
    io: T,
    peer: Peer,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    drain: DrainSignal,
) {
    serve_member(io, peer, settings, service, metrics, drain.join()).await;
}

/// The same for a connection that has joined the drain: whoever spawns it joins first, so that a drain that starts
/// before the task first runs waits for it as well.
pub(crate) async fn serve_member<T: Transport, S: Service>(
    io: T,
    peer: Peer,
    settings: Arc<Settings>,
    service: S,
    metrics: Arc<Metrics>,
    mut membership: Membership,
) {
    let _open = Open::count(metrics.clone());
    let around = Surroundings { peer, settings, service, metrics };
    if let Ended::Http2 { io, read } = http1::serve(io, &around, &mut membership).await {
        http2::serve(io, read.freeze(), &around, &mut membership).await;
    }
}

/// Holds the gauge of open connections up.
struct Open(Arc<Metrics>);

impl Open {
    fn count(metrics: Arc<Metrics>) -> Self {
        metrics.open.add(1);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.sub(1);
    }
}
