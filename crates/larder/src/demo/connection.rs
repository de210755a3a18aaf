//! A client's connection of a demo's load: HTTP/1.1, kept for one request after the other.
//!
//! In: an address of loopback. Out: a sender of requests. The connection ends when it is dropped.
//! Deliberately absent: what is asked, and what an answer has to be.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::load_error::{CONNECT_TIME, LoadError};

/// An open connection.
pub(super) struct ClientConnection {
    pub(super) sender: SendRequest<Empty<Bytes>>,
    /// Carries the bytes; ends with the client.
    _carrier: JoinSet<()>,
}

impl ClientConnection {
    /// Opens one. Needs a runtime.
    ///
    /// # Errors
    /// It does not come about within 5 s.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, LoadError> {
        let stream = timeout(CONNECT_TIME, TcpStream::connect(address))
            .await
            .map_err(|_| LoadError::ConnectTime)?
            .map_err(LoadError::Connect)?;
        stream.set_nodelay(true).map_err(LoadError::Connect)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        let mut carrier = JoinSet::new();
        // Its errors reach the exchange that they break.
        carrier.spawn(async { drop(connection.await) });
        Ok(Self { sender, _carrier: carrier })
    }
}
