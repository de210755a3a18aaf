//! What a connection of HTTP/1 or HTTP/2 runs on: bytes in both directions, and what a socket can do beyond that.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

/// A stream that a connection can run on.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Whether [`Self::poll_send_file`] works.
    const SENDS_FILES: bool = false;

    /// Whether a read that does not fill its room has taken all that the kernel had.
    const READS_ALL: bool = true;

    /// Writes bytes behind which a file follows at once: the kernel may keep them back for it.
    fn poll_write_ahead(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self).poll_write(cx, bytes)
    }

    /// Writes `range` of a file, as far as the kernel takes it, and says how much that was.
    ///
    /// # Errors
    /// Those of `sendfile`; `Unsupported` where the stream is no socket.
    fn poll_send_file(
        &mut self,
        _: &mut Context<'_>,
        _: BorrowedFd<'_>,
        _: Range<u64>,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Says that nothing more follows, where the stream can say that and it can be said without waiting. To be called before an orderly close
    /// that nothing is left to be written ahead of.
    fn end(&mut self) {}

    /// Makes the next close a reset, so that nothing sent so far can be taken for a whole. Where the stream cannot,
    /// it just closes.
    fn reset_when_closed(&mut self) {}
}

impl ByteStream for tokio::io::DuplexStream {}
