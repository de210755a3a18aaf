//! A client's socket, of which the event loop hears only when somebody has to wait for it.
//!
//! Most clients have sent their request by the time they are accepted, and the kernel takes a small answer at once: a
//! connection of one request is over without a wait, and telling the event loop of it first and forgetting it afterwards
//! would be a third of its system calls. So reads and writes are tried on the bare socket, and the first that would block
//! registers it.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{SocketFlags, acceptfrom_with};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::connection::Transport;

/// Reads and writes of a bare socket. A registered one gives way to other connections of its worker after a while; a bare one
/// would not, however much its client sends.
const TRIES: u8 = 8;

/// A listening socket, registered with the event loop.
pub(crate) struct Listener(AsyncFd<TcpListener>);

impl Listener {
    /// Registers `listener`, which must not block. Has to run within a tokio runtime with I/O.
    #[expect(unsafe_code, reason = "registering is unsafe for what can change its descriptor")]
    pub(crate) fn register(listener: TcpListener) -> io::Result<Self> {
        // SAFETY: a `TcpListener` owns its descriptor, has the same one all its life, and closes it only when it is dropped,
        // which `AsyncFd` does after it has deregistered it.
        let registered = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) };
        Ok(Self(registered.map_err(|failed| failed.into_parts().1)?))
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

    /// The socket itself, which the event loop forgets.
    pub(crate) fn into_inner(self) -> TcpListener {
        self.0.into_inner()
    }
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
    Bare(std::net::TcpStream, u8),
    Registered(tokio::net::TcpStream),
    /// Could not be registered. Nothing more comes of it.
    Lost,
}

impl Socket {
    /// Our end.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Bare(socket, _) => socket.local_addr(),
            Self::Registered(socket) => socket.local_addr(),
            Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Tries `attempt` on the bare socket; where that would block, the socket is registered, and `None` says to wait.
    fn try_bare<R>(
        &mut self,
        mut attempt: impl FnMut(&mut std::net::TcpStream) -> io::Result<R>,
    ) -> io::Result<Option<R>> {
        let Self::Bare(socket, left) = self else { return Ok(None) };
        while *left > 0 {
            *left -= 1;
            match attempt(socket) {
                Ok(done) => return Ok(Some(done)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if let Self::Bare(socket, _) = std::mem::replace(self, Self::Lost) {
            *self = Self::Registered(tokio::net::TcpStream::from_std(socket)?);
        }
        Ok(None)
    }

    fn registered(&mut self) -> io::Result<Pin<&mut tokio::net::TcpStream>> {
        match self {
            Self::Registered(socket) => Ok(Pin::new(socket)),
            Self::Bare(..) | Self::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(read) = self.try_bare(|socket| socket.read(buffer.initialize_unfilled()))? {
            buffer.advance(read);
            return Poll::Ready(Ok(()));
        }
        self.registered()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.try_bare(|socket| socket.write(bytes))? {
            Some(written) => Poll::Ready(Ok(written)),
            None => self.registered()?.poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.try_bare(|socket| socket.write_vectored(slices))? {
            Some(written) => Poll::Ready(Ok(written)),
            None => self.registered()?.poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is kept back here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Bare(socket, _) => Poll::Ready(socket.shutdown(Shutdown::Write)),
            Self::Registered(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl Transport for Socket {
    fn reset_when_closed(&mut self) {
        let at_once = Some(std::time::Duration::ZERO);
        // It can fail only for a socket that is broken already.
        let _ = match self {
            Self::Bare(socket, _) => socket2::SockRef::from(&*socket).set_linger(at_once),
            Self::Registered(socket) => socket2::SockRef::from(&*socket).set_linger(at_once),
            Self::Lost => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
