//! A socket to a server.
//!
//! In: where it listens. Out: both halves of a connection. All addresses of a name are tried at once, and the first that is connected is
//! taken. The time limit is the caller's.

use std::io;
use std::net::SocketAddr;

use futures_util::future::select_ok;
use larder_tls::Connector;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::{Address, Resolve};

/// The most addresses of one name.
const ADDRESSES_MAX: usize = 8;

/// What a server sends.
pub(crate) type Reader = Box<dyn AsyncRead + Send + Unpin>;
/// What it is sent.
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Connects.
///
/// # Errors
/// No connection could be made.
///
/// # Cancel safety
/// Dropping it closes whatever was begun.
pub(crate) async fn connect(address: &Address, names: &dyn Resolve) -> io::Result<(Reader, Writer)> {
    match address {
        Address::Unix(path) => {
            let (reader, writer) = UnixStream::connect(path).await?.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
        Address::Tcp { host, port } => {
            let (reader, writer) = connect_tcp((host, *port), names).await?.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
    }
}

/// The same over TLS.
///
/// # Errors
/// No connection could be made, or the server is not the one that it has to be.
///
/// # Cancel safety
/// Dropping it closes whatever was begun.
pub(crate) async fn connect_over(
    tls: &Connector,
    (host, port): (&str, u16),
    names: &dyn Resolve,
) -> io::Result<(Reader, Writer)> {
    let stream = tls.connect(host, connect_tcp((host, port), names).await?).await?;
    let (reader, writer) = tokio::io::split(stream);
    Ok((Box::new(reader), Box::new(writer)))
}

async fn connect_tcp((host, port): (&str, u16), names: &dyn Resolve) -> io::Result<TcpStream> {
    let stream = match host.parse() {
        Ok(ip) => TcpStream::connect(SocketAddr::new(ip, port)).await?,
        Err(_) => {
            let addresses = names.addresses(host, port).await?;
            let dials = addresses.into_iter().take(ADDRESSES_MAX).map(|at| Box::pin(TcpStream::connect(at)));
            let dials: Vec<_> = dials.collect();
            if dials.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "its name has no address"));
            }
            select_ok(dials).await?.0
        }
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}
