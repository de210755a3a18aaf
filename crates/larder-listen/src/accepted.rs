//! What the first stage of a connection gives the second.

use larder_http::message::Peer;

use crate::listener::{Protocols, Transport};

/// An accepted transport, of which nothing has been read.
#[derive(Debug)]
pub struct Accepted<T> {
    /// The bytes in both directions.
    pub stream: T,
    /// Both ends.
    pub peer: Peer,
    /// What carries the bytes.
    pub transport: Transport,
    /// What the client may speak: the listener's protocols, or the one of them that a handshake agreed on.
    pub protocols: Protocols,
}
