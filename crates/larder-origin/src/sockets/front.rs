//! The testkit's fronts before a scripted origin, as addresses of servers; and one that takes off a PROXY header.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::ServerAddress;
use larder_testkit::front;
use larder_testkit::origin::Origin;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;

/// The address of a server called `localhost` that speaks TLS.
pub fn https(port: u16) -> ServerAddress {
    ServerAddress::Https { host: "localhost".into(), port }
}

/// The address of a server without TLS.
pub fn http(port: u16) -> ServerAddress {
    ServerAddress::Http { host: "127.0.0.1".into(), port }
}

/// A port that nobody listens on: bound, never listened.
pub fn dead_port() -> (socket2::Socket, u16) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    (socket, port)
}

/// A server whose connections `open` makes those of `origin`.
pub async fn before<S, F>(
    origin: &Origin,
    address: fn(u16) -> ServerAddress,
    open: impl Fn(TcpStream) -> F + Send + 'static,
) -> ServerAddress
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    address(front::tcp(origin, open).await.unwrap().port())
}

/// A server on a Unix socket.
pub fn unix(origin: &Origin, path: &Path) -> ServerAddress {
    front::unix(origin, path).unwrap();
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
