//! A raw client: it sends exactly the bytes it is told and reads answers without forgiving anything.
//!
//! In: a [`Request`] or literal bytes. Out: a [`Response`] with its fields in order, its interim responses, and how
//! it ended. Connections stay open until they are dropped, so a test can pipeline, hold, half-close or abort.
//! HTTP/2 goes through the `h2` crate and gives the same [`Response`].
//!
//! Deliberately absent: pools, redirects, retries, cookies.

mod http2;
mod progress;
mod request;
mod response;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConnection;
use tokio_rustls::rustls::pki_types::ServerName;

pub use http2::exchange_http2;
pub use progress::Progress;
pub use request::{Content, Request};
pub use response::{End, InterimResponse, Response};

use crate::Error;
use crate::wire::{Fields, Wire};

/// One HTTP/1 connection.
#[derive(Debug)]
pub struct Connection {
    wire: Wire,
}

impl Connection {
    /// Connects; `limit` bounds each single wait afterwards.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::TimedOut`].
    pub async fn open(addr: SocketAddr, limit: Duration) -> Result<Self, Error> {
        let stream = tokio::time::timeout(limit, TcpStream::connect(addr))
            .await
            .map_err(|_| Error::TimedOut("connect"))??;
        Ok(Self { wire: Wire::new(stream, limit) })
    }

    /// The same over TLS, asking for `name`; what `connector` trusts and offers is the test's.
    ///
    /// # Errors
    /// [`Error::Io`], which has what the handshake failed for; [`Error::TimedOut`].
    pub async fn open_tls(
        addr: SocketAddr,
        name: &str,
        connector: &TlsConnector,
        limit: Duration,
    ) -> Result<Self, Error> {
        let name = ServerName::try_from(name.to_owned()).map_err(std::io::Error::other)?;
        let open = async { connector.connect(name, TcpStream::connect(addr).await?).await };
        let stream = tokio::time::timeout(limit, open).await.map_err(|_| Error::TimedOut("handshake"))??;
        Ok(Self { wire: Wire::secured(stream, limit) })
    }

    /// What the handshake has agreed on; `None` in clear text.
    pub fn session(&self) -> Option<&ClientConnection> {
        self.wire.session()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As [`Wire::write`].
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.wire.write(bytes).await
    }

    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// As [`Connection::read_response`].
    pub async fn exchange(&mut self, request: &Request) -> Result<Response, Error> {
        // A server may answer and close before it has read everything; what it said still counts.
        let written = self.write(&request.to_http1()).await;
        match self.read_response(&request.method, &Progress::default()).await {
            Err(error) => Err(written.err().unwrap_or(error)),
            answered => answered,
        }
    }

    /// Reads one final response, with the interim ones before it, and tells `progress` about its body.
    ///
    /// # Errors
    /// [`Error::Cut`] where the connection ends before the final head, [`Error::Malformed`], [`Error::TimedOut`].
    pub async fn read_response(&mut self, method: &str, progress: &Progress) -> Result<Response, Error> {
        response::read(&mut self.wire, method, progress).await
    }

    /// Exactly `count` bytes, for what follows an accepted upgrade.
    ///
    /// # Errors
    /// [`Error::Cut`] where there are fewer.
    pub async fn read_exact(&mut self, count: u64) -> Result<Vec<u8>, Error> {
        let mut framing = crate::wire::Framing::Length(count);
        let mut out = Vec::new();
        while let Some(piece) = self.wire.read_piece(&mut framing, &mut Fields::default()).await? {
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }

    /// What has come, as soon as there is any; nothing at the end of the connection.
    ///
    /// # Errors
    /// As [`Wire::read_some`].
    pub async fn read_some(&mut self) -> Result<Bytes, Error> {
        self.wire.read_some().await
    }

    /// Everything up to and with `end`, as it comes; for what is to be compared byte by byte.
    ///
    /// # Errors
    /// As [`Wire::read_until`].
    pub async fn read_until(&mut self, end: &[u8]) -> Result<Bytes, Error> {
        self.wire.read_until(end).await
    }

    /// Everything to the end of the connection, as it comes, and how it ended.
    ///
    /// # Errors
    /// Beside what came, as [`Wire::read_to_end`].
    pub async fn read_to_end(&mut self) -> (Bytes, Result<(), Error>) {
        self.wire.read_to_end().await
    }

    /// Whether the other side ends the connection, without another byte, within `wait`.
    ///
    /// # Errors
    /// [`Error::Malformed`] where more bytes come.
    pub async fn ends_within(&mut self, wait: Duration) -> Result<bool, Error> {
        if !self.wire.ahead().is_empty() {
            return Err(Error::malformed("bytes after the response", self.wire.ahead()));
        }
        match tokio::time::timeout(wait, self.wire.fill("end of connection")).await {
            Err(_) | Ok(Err(Error::TimedOut(_))) => Ok(false),
            Ok(Ok(0) | Err(_)) => Ok(true),
            Ok(Ok(_)) => Err(Error::malformed("bytes after the response", self.wire.ahead())),
        }
    }

    /// Bytes that came after the last response and that nobody has read.
    pub fn ahead(&self) -> &[u8] {
        self.wire.ahead()
    }

    /// Ends the sending direction.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn close_write(&mut self) -> Result<(), Error> {
        self.wire.close_write().await
    }

    /// Closes with a reset.
    pub fn abort(self) {
        self.wire.reset();
    }
}

#[cfg(test)]
mod tests;
