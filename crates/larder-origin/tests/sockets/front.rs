//! What stands before a scripted origin where larder is to speak something else than plain HTTP over TCP: TLS, a PROXY
//! header, a Unix socket.
//!
//! In: an accepted socket, and what opens it. Out: the bytes within it at the testkit's origin, on one connection for each.
//! The testkit has no such layers: a larder that it tests as a whole speaks plain HTTP to its origins.
//! All of it ends with the test's runtime.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use larder_origin::ServerAddress;
use larder_testkit::origin::Origin;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener};

/// The address of a server called `localhost` that speaks TLS.
pub fn https(port: u16) -> ServerAddress {
    ServerAddress::Https { host: "localhost".into(), port }
}

/// The address of a server without TLS.
pub fn http(port: u16) -> ServerAddress {
    ServerAddress::Http { host: "127.0.0.1".into(), port }
}

/// Listens on a free port, which `address` makes an address of; `open` takes off what surrounds the bytes for `origin`.
pub async fn before<S, F>(
    origin: &Origin,
    address: fn(u16) -> ServerAddress,
    open: impl Fn(TcpStream) -> F + Send + 'static,
) -> ServerAddress
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = address(listener.local_addr().unwrap().port());
    let to = origin.addr();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let opened = open(socket);
            tokio::spawn(async move { pass_on(opened.await?, to).await });
        }
    });
    address
}

/// Listens on a Unix socket at `path`.
pub fn unix(origin: &Origin, path: &Path) -> ServerAddress {
    let (listener, to) = (UnixListener::bind(path).unwrap(), origin.addr());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(pass_on(socket, to));
        }
    });
    ServerAddress::Unix(path.into())
}

/// The PROXY headers that came, in order.
pub type Headers = Arc<Mutex<Vec<Vec<u8>>>>;

/// Takes a PROXY header of version 2 off a connection, and keeps it.
pub async fn take_header(mut socket: TcpStream, headers: Headers) -> io::Result<TcpStream> {
    let mut header = vec![0; 16];
    socket.read_exact(&mut header).await?;
    let length = u16::from_be_bytes([header[14], header[15]]);
    header.resize(16 + usize::from(length), 0);
    socket.read_exact(&mut header[16..]).await?;
    headers.lock().push(header);
    Ok(socket)
}

/// Passes on the bytes of both sides. An orderly end of one is an orderly end for the other. A reset is not: TLS then ends
/// without `close_notify`.
async fn pass_on(mut stream: impl AsyncRead + AsyncWrite + Unpin, to: SocketAddr) -> io::Result<()> {
    let mut origin = TcpStream::connect(to).await?;
    copy_bidirectional(&mut stream, &mut origin).await.map(drop)
}
