//! What a client reads and writes: a socket, bare or over TLS.
//!
//! In: an address and, over TLS, what the client trusts. Out: bytes. The handshake is over when it is opened.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::scenario::HOST;

/// Longest wait for any byte.
const READ_MAX: Duration = Duration::from_secs(30);

/// See the head of the file.
pub(super) enum Stream {
    Clear(TcpStream),
    Secured(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Connects, and over TLS agrees on the one protocol that `tls` offers.
    ///
    /// # Errors
    /// No connection, a handshake that fails, or one without an agreement.
    pub(super) fn open(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        let socket = TcpStream::connect(address).context("larder")?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(READ_MAX))?;
        let Some(config) = tls else { return Ok(Self::Clear(socket)) };
        let session = ClientConnection::new(Arc::clone(config), ServerName::try_from(HOST)?)?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).context("handshake")?;
        }
        ensure!(stream.conn.alpn_protocol().is_some(), "no protocol was agreed on");
        Ok(Self::Secured(Box::new(stream)))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.read(buffer),
            Self::Secured(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.write(bytes),
            Self::Secured(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Clear(socket) => socket.flush(),
            Self::Secured(stream) => stream.flush(),
        }
    }
}
