//! A new connection to a server: address, socket, TLS, HTTP.
//!
//! In: a server of an origin. Out: a [`Connection`] whose task runs, all within one time limit. Addresses are tried in
//! the resolver's order; each gets an equal share of the time that is left, so that one that swallows packets does
//! not use up the others' time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use crate::error::{OriginError, SetupError};
use crate::metrics::Shared;
use crate::pool::{AbortOnDrop, Connection, Pool};
use crate::resolve::Resolver;
use crate::settings::{HeadLimits, OriginSettings, ServerAddress};
use crate::upload::Upload;
use crate::wire::{Socket, Transport, Wire};

/// hyper panics below this.
const BUFFER_BYTES_MIN: usize = 8192;

/// One server of an origin, as one worker sees it.
pub(crate) struct Server {
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) pool: Arc<Pool>,
    resolver: Option<Resolver>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Server {
    pub(crate) fn new(
        address: &ServerAddress,
        settings: &OriginSettings,
        shared: &Arc<Shared>,
    ) -> Result<Self, SetupError> {
        let tls = match address {
            ServerAddress::Https { host, .. } => {
                let name =
                    ServerName::try_from(host.clone()).map_err(|_| SetupError::ServerName(host.clone()))?;
                Some((TlsConnector::from(shared.tls(settings)?), name))
            }
            _ => None,
        };
        Ok(Self {
            address: Arc::new(address.clone()),
            pool: Pool::new(settings.max_idle, settings.idle, shared.clone()),
            resolver: address.host_and_port().map(|(host, port)| Resolver::new(host, port)),
            tls,
        })
    }

    /// Resolves the name, if there is one.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn resolve(&self, settings: &OriginSettings) -> Result<(), OriginError> {
        let Some(resolver) = &self.resolver else {
            return Ok(());
        };
        let addresses = tokio::time::timeout(settings.timeouts.connect, resolver.addresses());
        addresses.await.map_err(|_| OriginError::ConnectTimeout)?.map(|_| ())
    }

    /// Opens a connection.
    ///
    /// # Cancel safety
    /// May be dropped at any time; a half-open connection is closed.
    pub(crate) async fn connect(
        &self,
        settings: &OriginSettings,
        shared: &Arc<Shared>,
    ) -> Result<Connection, OriginError> {
        let open = shared.open(settings.max_connections)?;
        let deadline = Instant::now() + settings.timeouts.connect;
        let transport = tokio::time::timeout_at(deadline, self.transport(deadline))
            .await
            .map_err(|_| OriginError::ConnectTimeout)??;
        let socket = transport.socket().downgrade();
        let wire = Wire::new(transport, open);
        let trace = wire.trace();
        let (sender, connection) = handshake(wire, &settings.head).await?;
        let task = tokio::spawn(async move {
            // How it ended is told to whoever uses the sender or reads the body.
            let _ = connection.with_upgrades().await;
        });
        Ok(Connection { sender, trace, socket, _task: AbortOnDrop(task.abort_handle()) })
    }

    async fn transport(&self, deadline: Instant) -> Result<Transport, OriginError> {
        let socket = match (self.address.as_ref(), &self.resolver) {
            (ServerAddress::Unix(path), _) => {
                Socket::Unix(Arc::new(UnixStream::connect(path).await.map_err(connect_error)?))
            }
            (_, Some(resolver)) => tcp(&resolver.addresses().await?, deadline).await?,
            (_, None) => return Err(OriginError::Dns(io::ErrorKind::NotFound.into())),
        };
        let Some((connector, name)) = &self.tls else {
            return Ok(Transport::Clear(socket));
        };
        let stream = connector.connect(name.clone(), socket).await.map_err(OriginError::Tls)?;
        Ok(Transport::Tls(Box::new(stream)))
    }
}

async fn tcp(addresses: &[SocketAddr], deadline: Instant) -> Result<Socket, OriginError> {
    let mut last_error = OriginError::Dns(io::ErrorKind::NotFound.into());
    for (tried, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len().saturating_sub(tried)).unwrap_or(u32::MAX).max(1);
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Err(_) => last_error = OriginError::ConnectTimeout,
            Ok(Err(error)) => last_error = connect_error(error),
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(OriginError::ConnectFailed)?;
                return Ok(Socket::Tcp(Arc::new(stream)));
            }
        }
    }
    Err(last_error)
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
