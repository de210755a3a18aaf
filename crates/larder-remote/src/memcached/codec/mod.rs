//! The protocol's words: requests are written, replies are read.
//!
//! In: a [`Request`](crate::request::Request), or the bytes that a server sends. Out: bytes, or
//! [`Reply`](crate::reply::Reply)s. Pure: no socket, no clock.
//!
//! Look-ups are meta commands (`mg key k v f t`) where a server knows them, because only these tell the time that a value has left, and
//! repeat the key. Writing and deleting are the classic `set` and `delete` with every server. The meta commands for them say nothing
//! more that is of use here, and versions before 1.6.10 spell them and their replies in another way.
//! Protocol: doc/protocol.txt of memcached.

mod reply;
mod request;

pub(crate) use reply::{Decoder, Malformed};
pub(crate) use request::Dialect;

/// The end of every line.
const LINE_END: &[u8] = b"\r\n";
