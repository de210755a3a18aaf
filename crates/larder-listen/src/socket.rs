//! A client's socket, of which the event loop hears only when somebody has to wait for it.
//!
//! Most clients have sent their request by the time they are accepted, and the kernel takes a small answer at once.
//! So a connection of one request is over without a wait. To register it with the event loop and to remove it again
//! would be a third of its system calls. So reads and writes are tried on the bare socket, and the first that would
//! block registers it; and the kernel is asked to keep a connection back until its first bytes are there. The system
//! calls are made directly: the C library's are points at which a thread may be cancelled, and each pays for that.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::sendfile;
use rustix::io::{Errno, writev};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, recv, send};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::byte_stream::ByteStream;

/// Reads and writes of a bare socket. A registered one gives way to other connections of its worker after a while; a bare one
/// would not, however much its client sends.
const TRIES: u8 = 8;

/// How long the kernel keeps a connection back whose client says nothing.
const DEFERRED_SECONDS: libc::c_int = 1;

/// A listening socket, registered with the event loop.
pub(crate) struct ListeningSocket(AsyncFd<TcpListener>);

impl ListeningSocket {
    /// Registers `listener`, which must not block. Has to run within a tokio runtime with I/O.
    #[expect(unsafe_code, reason = "registering is unsafe for what can change its descriptor")]
    pub(crate) fn register(listener: TcpListener) -> io::Result<Self> {
        // SAFETY: a `TcpListener` owns its descriptor, has the same one all its life, and closes it only when it is dropped,
        // which `AsyncFd` does after it has deregistered it.
        let registered = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) };
        Ok(Self(registered.map_err(|failed| failed.into_parts().1)?))
    }

    /// Has the kernel keep back no connection any more ([`defer`]).
    pub(crate) fn stop_deferring(&self) {
        // It can fail only where nothing was deferred.
        let _ = set_deferred(self.0.get_ref(), 0);
    }

    /// The next connection. Ready with an error that concerns one connection, or the whole socket.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, SocketAddr)>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            if let Ok(accepted) = guard.try_io(|listener| accept(listener.get_ref())) {
                return Poll::Ready(accepted);
            }
        }
    }

    /// The same without waiting, and without asking the event loop.
    ///
    /// # Errors
    /// As [`accept`].
    pub(crate) fn accept_now(&self) -> io::Result<(Socket, SocketAddr)> {
        accept(self.0.get_ref())
    }
}

/// Has the kernel keep connections back until their first bytes have come: whoever accepts one then reads at once, and is not
/// woken before. A client that says nothing is accepted after a second all the same. Where there is no such option
/// (sandboxes that speak for the kernel), connections come when they are made.
pub(crate) fn defer(listener: &impl AsFd) {
    let _ = set_deferred(listener, DEFERRED_SECONDS);
}

#[expect(unsafe_code, reason = "no library has this option")]
fn set_deferred(listener: &impl AsFd, seconds: libc::c_int) -> io::Result<()> {
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
    let (value, length) = ((&raw const seconds).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    let descriptor = listener.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel only reads `length` bytes at `value`.
    let set = unsafe { libc::setsockopt(descriptor, level, option, value, length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the next connection that waits at `listener`, in one system call.
///
/// # Errors
/// Those of `accept4`; `WouldBlock` where none waits and `listener` does not block.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<(Socket, SocketAddr)> {
    let (socket, remote) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let remote = remote.and_then(|remote| SocketAddr::try_from(remote).ok());
    let remote = remote.ok_or(io::ErrorKind::ConnectionAborted)?;
    Ok((Socket::Bare(socket.into(), TRIES), remote))
}

/// A socket from [`accept`].
pub(crate) enum Socket {
    /// Not registered yet, and not blocking; with how often it may still be tried.
    Bare(TcpStream, u8),
    Registered(AsyncFd<TcpStream>),
    /// Could not be registered. Nothing more comes of it.
    Lost,
}

impl Socket {
    /// Our end.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream()?.local_addr()
    }

    fn stream(&self) -> io::Result<&TcpStream> {
        match self {
            Self::Bare(stream, _) => Ok(stream),
            Self::Registered(registered) => Ok(registered.get_ref()),
            Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    #[expect(unsafe_code, reason = "registering is unsafe for what can change its descriptor")]
    fn register(&mut self) -> io::Result<()> {
        if let Self::Bare(stream, _) = std::mem::replace(self, Self::Lost) {
            // SAFETY: as for a listener.
            let registered = unsafe { AsyncFd::register(stream) };
            *self = Self::Registered(registered.map_err(|failed| failed.into_parts().1)?);
        }
        Ok(())
    }

    /// Makes `attempt`, waiting until it can be made. It says how many bytes it has moved; fewer than `most` mean that the
    /// kernel has no more, or takes no more, so that the next attempt can wait at once.
    fn poll_attempt(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        most: usize,
        mut attempt: impl FnMut(&TcpStream) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let registered = match self {
                Self::Bare(stream, tries @ 1..) => {
                    *tries -= 1;
                    match attempt(stream) {
                        Err(Errno::AGAIN) => *tries = 0,
                        Err(Errno::INTR) => {}
                        done => return Poll::Ready(Ok(done?)),
                    }
                    continue;
                }
                Self::Bare(_, 0) => {
                    self.register()?;
                    continue;
                }
                Self::Registered(registered) => registered,
                Self::Lost => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            };
            let mut ready = match direction {
                Direction::In => ready!(registered.poll_read_ready(cx))?,
                Direction::Out => ready!(registered.poll_write_ready(cx))?,
            };
            match attempt(registered.get_ref()) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Ok(moved) => {
                    if 0 < moved && moved < most {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(moved));
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

impl AsyncRead for Socket {
    #[expect(unsafe_code, reason = "the kernel writes into memory that nobody has cleared for it")]
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = buffer.remaining();
        // SAFETY: nothing is taken out of it, and only the kernel writes into it.
        let room = unsafe { buffer.unfilled_mut() };
        let attempt = |stream: &TcpStream| {
            let ((read, _), _) = recv(stream, &mut *room, RecvFlags::empty())?;
            Ok(read.len())
        };
        let read = ready!(self.poll_attempt(cx, Direction::In, most, attempt))?;
        // SAFETY: the kernel has written so many bytes.
        unsafe { buffer.assume_init(read) };
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = |stream: &TcpStream| send(stream, bytes, SendFlags::NOSIGNAL);
        self.poll_attempt(cx, Direction::Out, bytes.len(), attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let most = slices.iter().map(|slice| slice.len()).sum();
        self.poll_attempt(cx, Direction::Out, most, |stream| writev(stream, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is kept back here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream()?.shutdown(Shutdown::Write))
    }
}

impl ByteStream for Socket {
    const SENDS_FILES: bool = true;

    fn poll_write_ahead(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = |stream: &TcpStream| send(stream, bytes, SendFlags::NOSIGNAL | SendFlags::MORE);
        self.poll_attempt(cx, Direction::Out, bytes.len(), attempt)
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        range: Range<u64>,
    ) -> Poll<io::Result<usize>> {
        let most = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        let attempt = |stream: &TcpStream| {
            let mut from = range.start;
            sendfile(stream, file, Some(&mut from), most)
        };
        self.poll_attempt(cx, Direction::Out, most, attempt)
    }

    fn reset_when_closed(&mut self) {
        let at_once = Some(std::time::Duration::ZERO);
        // It can fail only for a socket that is broken already.
        let _ = self.stream().and_then(|stream| socket2::SockRef::from(stream).set_linger(at_once));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::poll_fn;
    use std::io::Write;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn pair() -> (Socket, tokio::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, remote) = accept(&listener).unwrap();
        assert_eq!(remote, client.local_addr().unwrap());
        assert_eq!(socket.local_addr().unwrap(), client.peer_addr().unwrap());
        (socket, client)
    }

    #[tokio::test]
    async fn what_is_there_is_read_and_answered_without_the_event_loop() {
        let (mut socket, mut client) = pair().await;
        // Over loopback it has arrived when the write returns.
        client.write_all(b"ask").await.unwrap();
        let mut asked = [0; 3];
        socket.read_exact(&mut asked).await.unwrap();
        socket.write_all(b"answer").await.unwrap();
        assert!(matches!(socket, Socket::Bare(..)), "nobody had to wait");
        let mut answer = [0; 6];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!((&asked, &answer), (b"ask", b"answer"));
    }

    #[tokio::test]
    async fn who_has_to_wait_is_woken() {
        let (mut socket, mut client) = pair().await;
        let mut asked = [0; 3];
        let ask = async {
            tokio::task::yield_now().await;
            client.write_all(b"ask").await.unwrap();
        };
        let (read, ()) = tokio::join!(socket.read_exact(&mut asked), ask);
        assert_eq!((read.unwrap(), &asked), (3, b"ask"));
        assert!(matches!(socket, Socket::Registered(_)));
        socket.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn who_never_stops_sending_is_registered_all_the_same() {
        let (mut socket, mut client) = pair().await;
        client.write_all(&[0; 100]).await.unwrap();
        for read in 0..20 {
            assert_eq!(matches!(socket, Socket::Bare(..)), read <= TRIES, "{read}");
            socket.read_exact(&mut [0; 1]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_file_goes_out_behind_what_waited_for_it_however_slow_the_client() {
        let (mut socket, mut client) = pair().await;
        let content: Vec<u8> = (0..16_000_000u32).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let read = async {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.unwrap();
            all
        };
        let write = async {
            let ahead = poll_fn(|cx| socket.poll_write_ahead(cx, b"head")).await.unwrap();
            assert_eq!(ahead, 4);
            let mut at = 1000;
            while at < content.len() as u64 {
                let range = at..content.len() as u64;
                at += poll_fn(|cx| socket.poll_send_file(cx, file.as_fd(), range.clone())).await.unwrap()
                    as u64;
            }
            drop(socket);
        };
        let all = tokio::join!(write, read).1;
        assert!(all[..4] == *b"head" && all[4..] == content[1000..]);
    }

    #[tokio::test]
    async fn more_than_the_kernel_takes_goes_out_in_the_end() {
        let (mut socket, mut client) = pair().await;
        let large = vec![7; 16 << 20];
        let read = async {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.unwrap();
            all.len()
        };
        let write = async {
            socket.write_all(&large).await.unwrap();
            assert!(matches!(socket, Socket::Registered(_)));
            drop(socket);
        };
        assert_eq!(tokio::join!(write, read).1, large.len());
    }
}
