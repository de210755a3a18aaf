//! A new connection to a server: socket, PROXY header, TLS, HTTP.
//!
//! In: the place where a configured server is reached at this moment. Out: a [`Connection`] whose task runs, within one
//! limit of time, speaking the version of HTTP that the settings or the TLS handshake chose (RFC 7301; RFC 9113 3.3
//! for HTTP/2 without TLS). Everything that can be wrong with the settings is found when a [`Dial`] is made.
//! Deliberately absent: names (a place is an address already), and the choice among places.

use std::io;
use std::sync::Arc;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use larder_http::message::{Peer, Scheme};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::abort::AbortOnDrop;
use crate::connection::{Connection, Exclusive};
use crate::error::{OriginError, SetupError};
use crate::http2::Multiplexed;
use crate::place::Place;
use crate::proxy_protocol;
use crate::room::Room;
use crate::settings::{HeadLimits, OriginSettings, Protocol};
use crate::upload::Upload;
use crate::wire::{Socket, Transport, Wire};

/// hyper panics below this.
const BUFFER_BYTES_MIN: usize = 8192;

/// How to open connections to one configured server.
pub(crate) struct Dial {
    tls: Option<Tls>,
    protocol: Protocol,
    proxy_protocol: bool,
    head: HeadLimits,
    max_connections: usize,
    room: Arc<Room>,
}

struct Tls {
    /// Offers what the settings allow.
    connector: TlsConnector,
    /// Offers HTTP/1.1 alone.
    http1_only: TlsConnector,
    /// What is asked for (SNI) and checked.
    name: ServerName<'static>,
}

impl Dial {
    /// Prepares to speak `tls`, where a server is spoken to in it, under the name `host_for_tls` where the settings name
    /// no other.
    ///
    /// # Errors
    /// A name that TLS cannot carry, files that cannot be used, HTTP/2 together with PROXY headers.
    pub(crate) fn new(
        tls: Option<&Arc<ClientConfig>>,
        host_for_tls: &str,
        settings: &OriginSettings,
        room: &Arc<Room>,
    ) -> Result<Self, SetupError> {
        if settings.proxy_protocol && settings.protocol != Protocol::Http1 {
            return Err(SetupError::Conflict(
                "proxy_protocol names one client per connection, http/2 has many",
            ));
        }
        let tls = tls.map(|config| Tls::new(config, host_for_tls, settings)).transpose()?;
        // Without ALPN nobody chooses, so the version that every server speaks is spoken.
        let protocol = match settings.protocol {
            Protocol::Auto if tls.is_none() => Protocol::Http1,
            protocol => protocol,
        };
        Ok(Self {
            tls,
            protocol,
            proxy_protocol: settings.proxy_protocol,
            head: settings.head,
            max_connections: settings.max_connections,
            room: Arc::clone(room),
        })
    }

    /// Whether a connection may turn out to be one that exchanges share.
    pub(crate) fn may_share(&self) -> bool {
        self.protocol != Protocol::Http1
    }

    /// Whether the server may be spoken to in either version.
    pub(crate) fn speaks_both(&self) -> bool {
        self.protocol == Protocol::Auto
    }

    /// Opens a connection for `peer`, which only a PROXY header looks at.
    ///
    /// # Cancel safety
    /// May be dropped at any time; a half-open connection is closed.
    pub(crate) async fn connect(
        &self,
        place: &Place,
        peer: Option<Peer>,
        deadline: Instant,
    ) -> Result<Connection, OriginError> {
        self.open(place, peer, deadline, self.protocol).await
    }

    /// The same, but speaks HTTP/1.1 whatever else the server may speak: WebSocket needs that (RFC 6455 4.1).
    ///
    /// # Errors
    /// Also [`OriginError::NoWebsocket`], where HTTP/2 is spoken by prior knowledge; with TLS the server chooses.
    ///
    /// # Cancel safety
    /// May be dropped at any time; a half-open connection is closed.
    pub(crate) async fn connect_http1(
        &self,
        place: &Place,
        peer: Option<Peer>,
        deadline: Instant,
    ) -> Result<Connection, OriginError> {
        if self.protocol == Protocol::Http2 && self.tls.is_none() {
            return Err(OriginError::NoWebsocket);
        }
        self.open(place, peer, deadline, Protocol::Http1).await
    }

    async fn open(
        &self,
        place: &Place,
        peer: Option<Peer>,
        deadline: Instant,
        protocol: Protocol,
    ) -> Result<Connection, OriginError> {
        let open = self.room.enter(self.max_connections, deadline).await?;
        let opening = async {
            let (transport, is_http2) = self.transport(place, peer, protocol).await?;
            let scheme = if self.tls.is_some() { Scheme::Https } else { Scheme::Http };
            let socket = transport.socket().downgrade();
            let wire = Wire::new(transport, open);
            if is_http2 {
                return Multiplexed::start(wire, socket, scheme, &self.head).await.map(Connection::Http2);
            }
            let trace = wire.trace();
            let (sender, connection) = handshake(wire, &self.head).await?;
            let task = tokio::spawn(async move {
                // How it ended is told to whoever uses the sender or reads the body.
                let _ = connection.with_upgrades().await;
            });
            Ok(Connection::Http1(Exclusive {
                sender,
                trace,
                socket,
                serves_one: self.proxy_protocol,
                _task: AbortOnDrop(task.abort_handle()),
            }))
        };
        tokio::time::timeout_at(deadline, opening).await.map_err(|_| OriginError::ConnectTimeout)?
    }

    /// A socket with everything on it that comes before HTTP, and whether HTTP/2 follows.
    async fn transport(
        &self,
        place: &Place,
        peer: Option<Peer>,
        protocol: Protocol,
    ) -> Result<(Transport, bool), OriginError> {
        let mut socket = match place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(connect_error)?;
                stream.set_nodelay(true).map_err(OriginError::ConnectFailed)?;
                Socket::Tcp(Arc::new(stream))
            }
            Place::Unix(path) => {
                Socket::Unix(Arc::new(UnixStream::connect(path).await.map_err(connect_error)?))
            }
        };
        if self.proxy_protocol {
            let header = proxy_protocol::header(peer);
            socket.write_all(&header).await.map_err(OriginError::ConnectFailed)?;
        }
        let Some(tls) = &self.tls else {
            return Ok((Transport::Clear(socket), protocol == Protocol::Http2));
        };
        let connector = if protocol == Protocol::Http1 { &tls.http1_only } else { &tls.connector };
        let stream = connector.connect(tls.name.clone(), socket).await.map_err(OriginError::tls)?;
        let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(larder_tls::HTTP2);
        if protocol == Protocol::Http2 && !chose_http2 {
            let error = io::Error::other(rustls::Error::NoApplicationProtocol);
            return Err(OriginError::tls(error));
        }
        Ok((Transport::Tls(Box::new(stream)), chose_http2))
    }
}

impl Tls {
    fn new(config: &ClientConfig, host: &str, settings: &OriginSettings) -> Result<Self, SetupError> {
        let host = settings.tls.server_name.as_deref().unwrap_or(host);
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| SetupError::ServerName(host.to_owned()))?;
        let offered: &[&[u8]] = match settings.protocol {
            Protocol::Http1 => &[larder_tls::HTTP1],
            Protocol::Http2 => &[larder_tls::HTTP2],
            Protocol::Auto => &[larder_tls::HTTP2, larder_tls::HTTP1],
        };
        Ok(Self {
            connector: larder_tls::offering(config, offered).into(),
            http1_only: larder_tls::offering(config, &[larder_tls::HTTP1]).into(),
            name,
        })
    }
}

fn connect_error(error: io::Error) -> OriginError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => OriginError::ConnectRefused,
        // The kernel's own limit, where it is shorter than ours.
        io::ErrorKind::TimedOut => OriginError::ConnectTimeout,
        _ => OriginError::ConnectFailed(error),
    }
}

type HyperConnection = http1::Connection<TokioIo<Wire>, Upload>;

async fn handshake(
    wire: Wire,
    limits: &HeadLimits,
) -> Result<(http1::SendRequest<Upload>, HyperConnection), OriginError> {
    let mut builder = http1::Builder::new();
    // hyper's size limit counts what lies in its buffer, and the buffer's own limit is what bounds a head that never
    // ends; the same number also bounds how much of a body is read or written ahead.
    builder
        .max_headers(limits.fields_max)
        .max_header_size(limits.bytes_max.max(BUFFER_BYTES_MIN))
        .max_buf_size(limits.bytes_max.max(BUFFER_BYTES_MIN));
    builder.handshake(TokioIo::new(wire)).await.map_err(|_| OriginError::Closed)
}
