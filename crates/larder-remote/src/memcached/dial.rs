//! A new connection to memcached, up to the first reply on it.
//!
//! In: a socket. Out: a connection, and which commands the server knows. `mn` is asked first: `MN` stands for meta commands, `ERROR` for a
//! server or proxy that has only the classic ones. So a connection counts as made when the server has replied: a hung one
//! accepts connections all the same.
//! The time limit is the caller's.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::codec::{Decoder, Dialect};
use crate::connect::{Reader, Writer};
use crate::reply::Reply;
use crate::request::Request;

/// What is read at once.
pub(super) const INBOX: usize = 16 * 1024;

/// A connection that has had its first reply.
pub(crate) struct Opened {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) dialect: Dialect,
}

/// Asks which commands the server knows.
///
/// # Errors
/// The connection broke, or what came is no reply.
///
/// # Cancel safety
/// Dropping it closes the connection.
pub(crate) async fn open((mut reader, mut writer): (Reader, Writer)) -> io::Result<Opened> {
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
