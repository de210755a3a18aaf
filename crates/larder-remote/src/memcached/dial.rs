//! A new connection, up to the first reply on it.
//!
//! In: a server. Out: both halves of a connection, and which commands the server knows. `mn` is asked first: `MN` stands for meta commands,
//! `ERROR` for a server or proxy that has only the classic ones. So a connection counts as made when the server has
//! replied: a hung one accepts connections all the same.
//! All addresses of a name are tried at once, and the first that is connected is taken.
//! The time limit is the caller's.

use std::io;
use std::net::SocketAddr;

use bytes::BytesMut;
use futures_util::future::select_ok;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use super::codec::{Decoder, Dialect, Reply, Request};
use crate::address::{Address, Resolve};

/// The most addresses of one name.
const ADDRESSES_MAX: usize = 8;
/// What is read at once.
pub(super) const INBOX: usize = 16 * 1024;

/// A connection that has had its first reply.
pub(super) struct Opened {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) dialect: Dialect,
}

/// Connects, and asks which commands the server knows.
///
/// # Errors
/// No connection could be made, or what came is no reply.
///
/// # Cancel safety
/// Dropping it closes whatever was begun.
pub(super) async fn open(address: &Address, names: &dyn Resolve) -> io::Result<Opened> {
    let (mut reader, mut writer) = connect(address, names).await?;
    let (mut inbox, mut outbox) = (BytesMut::with_capacity(INBOX), BytesMut::new());
    Request::NoOp.write(Dialect::Meta, &mut outbox);
    writer.write_all(&outbox).await?;
    let mut decoder = Decoder::new(0);
    let reply = loop {
        if let Some(reply) = decoder.read(&mut inbox).map_err(|_| rubbish())? {
            break reply;
        }
        if reader.read_buf(&mut inbox).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let dialect = match reply {
        Reply::NoOp => Dialect::Meta,
        Reply::Unknown | Reply::ClientError(_) => Dialect::Classic,
        _ => return Err(rubbish()),
    };
    if inbox.is_empty() { Ok(Opened { reader, writer, dialect }) } else { Err(rubbish()) }
}

fn rubbish() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its first reply is none of the protocol")
}

type Halves = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

async fn connect(address: &Address, names: &dyn Resolve) -> io::Result<Halves> {
    match address {
        Address::Unix(path) => {
            let (reader, writer) = UnixStream::connect(path).await?.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
        Address::Tcp { host, port } => {
            let stream = match host.parse() {
                Ok(ip) => TcpStream::connect(SocketAddr::new(ip, *port)).await?,
                Err(_) => {
                    let addresses = names.addresses(host, *port).await?;
                    let dials =
                        addresses.into_iter().take(ADDRESSES_MAX).map(|at| Box::pin(TcpStream::connect(at)));
                    let dials: Vec<_> = dials.collect();
                    if dials.is_empty() {
                        return Err(io::Error::new(io::ErrorKind::NotFound, "its name has no address"));
                    }
                    select_ok(dials).await?.0
                }
            };
            stream.set_nodelay(true)?;
            let (reader, writer) = stream.into_split();
            Ok((Box::new(reader), Box::new(writer)))
        }
    }
}
