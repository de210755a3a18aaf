//! The origin's end of an accepted upgrade (RFC 6455): a byte stream that counts as an exchange while it lives.
//!
//! In: the connection, after hyper has let go of it with what it had read beyond the 101. Out: both directions. It is
//! load for its server, but it left the queue: a few long tunnels must not keep all requests out.
//! Deliberately absent: the frames inside, copying, and the limit on silence, which belong to whoever joins the ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use larder_http::message::Duplex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::in_flight::InFlight;

pub(crate) struct TunnelStream {
    stream: TokioIo<Upgraded>,
    _in_flight: InFlight,
}

impl TunnelStream {
    pub(crate) fn new(upgraded: Upgraded, mut in_flight: InFlight) -> Self {
        in_flight.leave_seat();
        Self { stream: TokioIo::new(upgraded), _in_flight: in_flight }
    }
}

impl Duplex for TunnelStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(bytes);
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut into);
        polled.map_ok(|()| into.filled().len())
    }

    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
