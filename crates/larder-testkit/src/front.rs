//! What stands before a scripted origin where larder is to reach it otherwise than over plain TCP: a Unix socket, or
//! anything that a test takes off an accepted socket itself (TLS, a PROXY header).
//!
//! In: connections. Out: the bytes within at the origin, on one connection for each. An orderly end of one side is an
//! orderly end for the other. A reset is not: what surrounds the bytes then ends without a word, as TLS without
//! `close_notify`. All of it ends with the runtime. Deliberately absent: TLS itself, which the tests of larder-origin
//! bring along.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use crate::Error;
use crate::origin::Origin;

/// Listens on a Unix socket at `path`.
///
/// # Errors
/// [`Error::Io`].
pub fn unix(origin: &Origin, path: &Path) -> Result<(), Error> {
    let (listener, to) = (UnixListener::bind(path)?, origin.addr());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(pass_on(socket, to));
        }
    });
    Ok(())
}

/// Listens on a free port of 127.0.0.1; `open` takes off what surrounds the bytes for the origin.
///
/// # Errors
/// [`Error::Io`].
pub async fn tcp<S, F>(
    origin: &Origin,
    open: impl Fn(TcpStream) -> F + Send + 'static,
) -> Result<SocketAddr, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (at, to) = (listener.local_addr()?, origin.addr());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let opened = open(socket);
            tokio::spawn(async move { pass_on(opened.await?, to).await });
        }
    });
    Ok(at)
}

async fn pass_on(mut stream: impl AsyncRead + AsyncWrite + Unpin, to: SocketAddr) -> io::Result<()> {
    let mut origin = TcpStream::connect(to).await?;
    copy_bidirectional(&mut stream, &mut origin).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;
    use crate::client::{Connection, Request};
    use crate::origin::{Answer, PathScript};

    const LIMIT: Duration = Duration::from_secs(5);

    fn origin() -> Origin {
        Origin::simple(vec![PathScript::new("/", [Answer::literal("HTTP/1.1 200 OK\r\n\r\nx")])]).unwrap()
    }

    #[tokio::test]
    async fn what_a_front_takes_off_does_not_reach_the_origin() {
        let origin = origin();
        let open = |mut socket: TcpStream| async move { socket.read_u8().await.map(|_| socket) };
        let at = tcp(&origin, open).await.unwrap();
        let mut client = Connection::open(at, LIMIT).await.unwrap();
        client.write(b"!").await.unwrap();
        let get = Request::new("GET", "/", "a");
        assert_eq!(client.exchange(&get).await.unwrap().body, b"x");
        assert_eq!(origin.log().received(1), get.to_http1());
    }

    #[tokio::test]
    async fn a_unix_socket_leads_to_the_origin() {
        let origin = origin();
        let folder = tempfile::tempdir().unwrap();
        unix(&origin, &folder.path().join("origin.sock")).unwrap();
        let mut client = UnixStream::connect(folder.path().join("origin.sock")).await.unwrap();
        client.write_all(&Request::new("GET", "/", "a").to_http1()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "HTTP/1.1 200 OK\r\n\r\nx");
    }
}
