//! A tunnel after an accepted upgrade: bytes in both directions, nothing interpreted (RFC 9110 7.8).
//!
//! It starts only after the 101 has been written. Bytes that the client sent ahead of it are delivered first. Ends
//! when both sides have ended, when one breaks, or when nothing has passed for the idle limit.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use larder_http::message::Tunnel;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::timer::Timer;

/// Runs a tunnel to its end.
pub(super) async fn run<T: AsyncRead + AsyncWrite + Unpin>(
    client: T,
    ahead: BytesMut,
    tunnel: Tunnel,
    idle: Duration,
    metrics: &Metrics,
) {
    let passed = AtomicU64::new(0);
    let mut client = Counted { inner: client, passed: &passed };
    let mut origin = OriginEnd(tunnel);
    let mut copying = pin!(async {
        origin.write_all(&ahead).await?;
        drop(ahead);
        copy_bidirectional(&mut client, &mut origin).await
    });
    let (mut timer, mut last_passed, mut since) = (Timer::default(), 0, Instant::now());
    poll_fn(|cx| {
        if copying.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let now_passed = passed.load(Ordering::Relaxed);
        if now_passed != last_passed {
            last_passed = now_passed;
            since = Instant::now();
        }
        timer.poll(cx, since + idle).map(|()| metrics.tunnel_idle.add(1))
    })
    .await;
}

/// The origin's end, as the runtime's functions want it.
struct OriginEnd(Tunnel);

impl AsyncRead for OriginEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = self.0.0.as_mut().poll_read(cx, buffer.initialize_unfilled());
        polled.map_ok(|read| buffer.advance(read))
    }
}

impl AsyncWrite for OriginEnd {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.0.as_mut().poll_shutdown(cx)
    }
}

/// Counts what passes, in both directions.
struct Counted<'a, T> {
    inner: T,
    passed: &'a AtomicU64,
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<'_, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if polled.is_ready() {
            self.passed.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<'_, T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if polled.is_ready() {
            self.passed.fetch_add(1, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
