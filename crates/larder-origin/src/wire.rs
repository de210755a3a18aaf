//! The bytes of one connection, between an HTTP library and the kernel.
//!
//! In: a socket, clear or TLS. Out: the same as a byte stream that also keeps a [`Trace`]: how much was read and
//! written and when, which is what retry and time limits are decided by. `h2` sits on it as well, with no need of the
//! second and the fourth of what follows. Counting happens above TLS, so a session
//! ticket is not taken for an answer.
//!
//! Four things hyper cannot do from where it stands are done here:
//! - [`Socket::is_quiet`] asks the kernel, not the runtime's cached readiness, whether bytes or an end wait on an
//!   unused connection. hyper asks the cache, which lags by up to one turn of the event loop; in that gap, bytes that
//!   nobody asked for would be read as the answer to the next request.
//! - A failed write is held back while an answer may still be readable: an origin that refuses an upload answers and
//!   closes, and hyper would report the broken pipe in place of the 413 that is waiting.
//! - After [`RUN_BYTES`] without a pause the worker's other tasks and timers get a turn. hyper reads on for as long as
//!   there is something to read, also where none of it is content: a chunk size of endless zeroes would hold a worker.
//! - [`Trace::refuse_reads`] ends an exchange from inside hyper's callback for interim responses.

use std::future::Future as _;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use crate::room::OpenConnection;

/// What may be read in one turn: more than a socket holds as a rule, and little work even where it is read bytewise.
const RUN_BYTES: usize = 256 * 1024;

/// What a TLS record holds (RFC 8446 5.1). No more is written at once: of several records the first may be on its way
/// when the next fails, and all that is told then is that writing failed. Of one that was not sent whole, the peer can
/// read nothing, so what was not counted as written cannot have been acted on.
const TLS_RECORD_BYTES: usize = 16 * 1024;

/// A connected socket. The only long-lived owner is the connection's task; the pool holds a [`WeakSocket`], so a
/// connection whose task has ended is closed at once.
#[derive(Clone, Debug)]
pub(crate) enum Socket {
    Tcp(Arc<TcpStream>),
    Unix(Arc<UnixStream>),
}

/// Looks at a socket without keeping it open.
#[derive(Clone, Debug)]
pub(crate) enum WeakSocket {
    Tcp(Weak<TcpStream>),
    Unix(Weak<UnixStream>),
}

impl WeakSocket {
    /// See [`Socket::is_quiet`]; a socket that is gone is not quiet.
    pub(crate) fn is_quiet(&self) -> bool {
        let socket = match self {
            Self::Tcp(socket) => socket.upgrade().map(Socket::Tcp),
            Self::Unix(socket) => socket.upgrade().map(Socket::Unix),
        };
        socket.is_some_and(|socket| socket.is_quiet())
    }

    /// Whether the peer has closed its end, also where there is something to read before that end; asks the kernel,
    /// like [`Socket::is_quiet`]. A socket that is gone has ended.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Self::Tcp(socket) => socket.upgrade().is_none_or(|socket| is_hung_up(socket.as_ref())),
            Self::Unix(socket) => socket.upgrade().is_none_or(|socket| is_hung_up(socket.as_ref())),
        }
    }
}

fn is_hung_up(socket: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    match rustix::event::poll(&mut asked, Some(&Timespec::default())) {
        Ok(_) => {
            asked.iter().any(|fd| fd.revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR))
        }
        // Interrupted: not known, and the connection's own task will tell.
        Err(_) => false,
    }
}

impl Socket {
    pub(crate) fn downgrade(&self) -> WeakSocket {
        match self {
            Self::Tcp(socket) => WeakSocket::Tcp(Arc::downgrade(socket)),
            Self::Unix(socket) => WeakSocket::Unix(Arc::downgrade(socket)),
        }
    }

    /// Whether the kernel has neither bytes nor an end nor an error waiting to be read.
    fn is_quiet(&self) -> bool {
        let socket = match self {
            Self::Tcp(socket) => SockRef::from(socket.as_ref()),
            Self::Unix(socket) => SockRef::from(socket.as_ref()),
        };
        let mut byte = [MaybeUninit::uninit()];
        matches!(socket.peek(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Repeats a socket operation until the kernel agrees with the runtime's readiness.
macro_rules! when_ready {
    ($self:expr, $cx:expr, $poll:ident, $socket:ident => $attempt:expr) => {
        match &*$self {
            Socket::Tcp($socket) => loop {
                ready!($socket.$poll($cx))?;
                match $attempt {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return Poll::Ready(done),
                }
            },
            Socket::Unix($socket) => loop {
                ready!($socket.$poll($cx))?;
                match $attempt {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return Poll::Ready(done),
                }
            },
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        when_ready!(self, cx, poll_read_ready, socket => socket.try_read_buf(buf).map(|_| ()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        when_ready!(self, cx, poll_write_ready, socket => socket.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        when_ready!(self, cx, poll_write_ready, socket => socket.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = match &*self {
            Self::Tcp(socket) => SockRef::from(socket.as_ref()),
            Self::Unix(socket) => SockRef::from(socket.as_ref()),
        };
        Poll::Ready(socket.shutdown(std::net::Shutdown::Write))
    }
}

/// Clear text or TLS over a socket.
pub(crate) enum Transport {
    Clear(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl Transport {
    pub(crate) fn socket(&self) -> &Socket {
        match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    fn as_read(&mut self) -> Pin<&mut (dyn AsyncRead + Send + Unpin)> {
        match self {
            Self::Clear(socket) => Pin::new(socket),
            Self::Tls(stream) => Pin::new(stream),
        }
    }

    fn as_write(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Clear(socket) => Pin::new(socket),
            Self::Tls(stream) => Pin::new(stream),
        }
    }
}

/// What went over a connection, readable from outside its task.
#[derive(Debug)]
pub(crate) struct Trace {
    opened: Instant,
    read_bytes: AtomicU64,
    written_bytes: AtomicU64,
    /// Microseconds after `opened`.
    last_write: AtomicU64,
    reads_refused: AtomicBool,
    reports_failed_writes: AtomicBool,
}

/// How much had gone over a connection when an exchange began on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    read_bytes: u64,
    written_bytes: u64,
}

impl Trace {
    fn new() -> Self {
        Self {
            opened: Instant::now(),
            read_bytes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            last_write: AtomicU64::new(0),
            reads_refused: AtomicBool::new(false),
            reports_failed_writes: AtomicBool::new(false),
        }
    }

    /// Marks the beginning of an exchange; the time of the last write starts anew.
    pub(crate) fn begin(&self) -> Mark {
        self.note_write(0);
        self.mark()
    }

    /// Marks this moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            read_bytes: self.read_bytes.load(Ordering::Relaxed),
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
        }
    }

    /// Whether any byte of an answer came since `mark`.
    pub(crate) fn has_read_since(&self, mark: Mark) -> bool {
        self.read_bytes.load(Ordering::Relaxed) != mark.read_bytes
    }

    /// Whether any byte of a request left since `mark`.
    pub(crate) fn has_written_since(&self, mark: Mark) -> bool {
        self.written_bytes.load(Ordering::Relaxed) != mark.written_bytes
    }

    /// When the last byte was written, or the exchange began.
    pub(crate) fn last_write(&self) -> Instant {
        self.opened + Duration::from_micros(self.last_write.load(Ordering::Relaxed))
    }

    /// Makes every further read fail, and with it the exchange.
    pub(crate) fn refuse_reads(&self) {
        self.reads_refused.store(true, Ordering::Relaxed);
    }

    /// Whether [`refuse_reads`](Self::refuse_reads) was called.
    pub(crate) fn are_reads_refused(&self) -> bool {
        self.reads_refused.load(Ordering::Relaxed)
    }

    /// From now on the bytes are not HTTP/1.1, and a failed write is reported as it happens.
    pub(crate) fn report_failed_writes(&self) {
        self.reports_failed_writes.store(true, Ordering::Relaxed);
    }

    fn note_write(&self, bytes: usize) {
        let micros = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_write.store(micros, Ordering::Relaxed);
        self.written_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// One connection's transport under its trace. Owned by hyper's connection, then perhaps by a tunnel.
pub(crate) struct Wire {
    transport: Transport,
    trace: Arc<Trace>,
    is_write_broken: bool,
    /// Read since the last pause.
    run_bytes: usize,
    _open: OpenConnection,
}

impl Wire {
    pub(crate) fn new(transport: Transport, open: OpenConnection) -> Self {
        Self { transport, trace: Arc::new(Trace::new()), is_write_broken: false, run_bytes: 0, _open: open }
    }

    pub(crate) fn trace(&self) -> Arc<Trace> {
        self.trace.clone()
    }

    /// Turns a failed write into one that never becomes ready. No waker is kept on purpose: hyper waits for reading
    /// at the same time, a socket that cannot be written is readable (data, an end or the error), and should all that
    /// fail the limit on the first byte ends the exchange.
    fn hold_back<T>(&mut self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Ready(Err(_)) if !self.trace.reports_failed_writes.load(Ordering::Relaxed) => {
                self.is_write_broken = true;
                Poll::Pending
            }
            other => other,
        }
    }

    fn wrote(&mut self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes @ 1..)) = outcome {
            self.trace.note_write(bytes);
        }
        self.hold_back(outcome)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.trace.are_reads_refused() {
            return Poll::Ready(Err(io::Error::other("reading was refused")));
        }
        if self.run_bytes >= RUN_BYTES {
            self.run_bytes = 0;
            // Its first poll puts this task behind the others and the timers; there is nothing else in it to wait for.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let outcome = self.transport.as_read().poll_read(cx, buf);
        let read = buf.filled().len().saturating_sub(before);
        self.run_bytes = if outcome.is_pending() { 0 } else { self.run_bytes.saturating_add(read) };
        if read > 0 {
            self.trace.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        }
        outcome
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_write_broken {
            return Poll::Pending;
        }
        let outcome = match &mut self.transport {
            Transport::Clear(socket) => Pin::new(socket).poll_write(cx, buf),
            Transport::Tls(stream) => {
                let record = buf.get(..TLS_RECORD_BYTES).unwrap_or(buf);
                Pin::new(stream).poll_write(cx, record)
            }
        };
        self.wrote(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_write_broken {
            return Poll::Pending;
        }
        let outcome = self.transport.as_write().poll_write_vectored(cx, bufs);
        self.wrote(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self.transport, Transport::Clear(_))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_write_broken {
            return Poll::Pending;
        }
        let outcome = self.transport.as_write().poll_flush(cx);
        self.hold_back(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.as_write().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
