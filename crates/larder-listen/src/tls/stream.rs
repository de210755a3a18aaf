//! A connection over TLS, as HTTP sees it: clear bytes in, clear bytes out.
//!
//! In: a byte stream, and a session of rustls on it. Out: another byte stream. What is sealed cannot be taken back, and the socket may take a part of it only. So a write that was
//! sealed counts as written as far as the socket has taken its records, and the caller offers the rest again, as it does for a bare socket. What is counted as sent has
//! left, and a client that takes nothing is seen to take nothing. The end is told (close_notify, RFC 8446 6.1) by an orderly shutdown alone: what is cut must not look whole.

use std::io::{self, BufRead as _, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::byte_stream::ByteStream;

/// A client's stream after a handshake.
pub(crate) struct TlsStream<T> {
    io: T,
    session: Box<ServerConnection>,
    /// Clear bytes that were sealed and not yet counted as written. They are the first that the caller offers next.
    owed: usize,
    /// Sealed bytes that the socket has not taken, when it was last asked.
    unsent: usize,
}

impl<T: ByteStream> TlsStream<T> {
    pub(super) fn new(io: T, session: Box<ServerConnection>) -> Self {
        Self { io, session, owed: 0, unsent: 0 }
    }

    pub(super) fn session(&self) -> &ServerConnection {
        &self.session
    }

    /// Writes what is sealed.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut out = RecordsOut { io: &mut self.io, cx, unsent: &mut self.unsent };
            match self.session.write_tls(&mut out) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.unsent = 0;
        Poll::Ready(Ok(()))
    }

    /// Reads once from the socket; 0 is its end.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self.session.read_tls(&mut RecordsIn { io: &mut self.io, cx }) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            read => Poll::Ready(read),
        }
    }

    /// Opens what was read.
    ///
    /// # Errors
    /// It is against the rules of TLS; the client is told of it, as far as that goes without waiting.
    pub(super) fn open(&mut self) -> Result<(), rustls::Error> {
        let opened = self.session.process_new_packets();
        if opened.is_err() {
            let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
        }
        opened.map(|_| ())
    }
}

impl<T: ByteStream> AsyncRead for TlsStream<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut reader = this.session.reader();
            match reader.fill_buf() {
                // The client has said that nothing follows.
                Ok([]) => return Poll::Ready(Ok(())),
                Ok(clear) => {
                    let taken = clear.len().min(buffer.remaining());
                    buffer.put_slice(clear.get(..taken).unwrap_or_default());
                    reader.consume(taken);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It has ended without saying so: what came last may be cut.
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(this.poll_fill(cx))?;
            this.open().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            // What the session itself has to say, such as a new key.
            if this.owed == 0 && this.session.wants_write() {
                let _ = this.poll_send(cx)?;
            }
        }
    }
}

impl<T: ByteStream> AsyncWrite for TlsStream<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.owed == 0 {
            // Nothing is sealed ahead of what still waits for the socket.
            ready!(this.poll_send(cx))?;
            this.owed = this.session.writer().write_vectored(slices)?;
            if this.owed == 0 {
                return Poll::Ready(Ok(0));
            }
        }
        let sending = this.poll_send(cx)?;
        // A record is longer than what is sealed in it.
        let unsent = if sending.is_ready() { 0 } else { this.owed.min(this.unsent) };
        match this.owed - unsent {
            0 => Poll::Pending,
            written => {
                this.owed = unsent;
                Poll::Ready(Ok(written))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Said once, however often it is called.
        this.session.send_close_notify();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.io).poll_shutdown(cx)
    }
}

impl<T: ByteStream> ByteStream for TlsStream<T> {
    const READS_ALL: bool = false;

    fn end(&mut self) {
        self.session.send_close_notify();
        let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    fn reset_when_closed(&mut self) {
        self.io.reset_when_closed();
    }
}

/// A stream as rustls reads it. A read that would have to wait fails, with the waker in place.
pub(super) struct RecordsIn<'a, 'b, T> {
    pub(super) io: &'a mut T,
    pub(super) cx: &'a mut Context<'b>,
}

impl<T: ByteStream> io::Read for RecordsIn<'_, '_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        match Pin::new(&mut *self.io).poll_read(self.cx, &mut buffer) {
            Poll::Ready(Ok(())) => Ok(buffer.filled().len()),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// The same for what is sealed, of which it notes how much is left.
struct RecordsOut<'a, 'b, T> {
    io: &'a mut T,
    cx: &'a mut Context<'b>,
    unsent: &'a mut usize,
}

impl<T: ByteStream> io::Write for RecordsOut<'_, '_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        *self.unsent = slices.iter().map(|slice| slice.len()).sum();
        let io = Pin::new(&mut *self.io);
        let written = match slices {
            [one] => io.poll_write(self.cx, one),
            many => io.poll_write_vectored(self.cx, many),
        };
        match written {
            Poll::Ready(Ok(written)) => {
                *self.unsent = self.unsent.saturating_sub(written);
                Ok(written)
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
