//! Listeners as values: an address, the transport of its connections, and the protocols on them.
//!
//! In: a listener, and the number of workers. Out: one socket for each worker, shared by SO_REUSEPORT, so that the kernel
//! spreads connections and workers share nothing. SO_REUSEPORT would hide that another process listens on the same port, so
//! each address is bound once without it as a probe. The probe does not listen: clients that came to it would be reset when it is closed.
//! Deliberately absent: the choice of how many workers there are. HTTP/3 will be another [`Transport`] and another [`Protocol`].

use std::io;
use std::net::{SocketAddr, TcpListener};

use larder_http::message::Scheme;
use socket2::{Domain, Type};

use crate::error::ListenError;
use crate::socket;

/// Connections that may wait to be accepted, as far as the system allows as many.
const BACKLOG: i32 = 4096;

/// What carries connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP, in clear text.
    Tcp,
    /// TLS over TCP.
    Tls,
}

impl Transport {
    /// The scheme of the requests that come over it.
    pub const fn scheme(self) -> Scheme {
        match self {
            Self::Tcp => Scheme::Http,
            Self::Tls => Scheme::Https,
        }
    }

    /// The protocols that larder can tell apart on it.
    const fn protocols(self) -> Protocols {
        match self {
            Self::Tcp | Self::Tls => Protocols::only(Protocol::Http1).and(Protocol::Http2),
        }
    }
}

/// What a client speaks on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and 1.1.
    Http1,
    /// HTTP/2. In clear text the client has to know of it (RFC 9113 3.3).
    Http2,
}

/// A set of protocols, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols(u8);

impl Protocols {
    /// `protocol` and no other.
    pub const fn only(protocol: Protocol) -> Self {
        Self(1 << protocol as u8)
    }

    /// These and `protocol`.
    pub const fn and(self, protocol: Protocol) -> Self {
        Self(self.0 | 1 << protocol as u8)
    }

    /// Whether `protocol` is among them.
    pub const fn has(self, protocol: Protocol) -> bool {
        self.0 & 1 << protocol as u8 != 0
    }
}

/// A place to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where. Port 0 stands for any that is free.
    pub address: SocketAddr,
    /// Whether `[::]` takes IPv4 connections as well. Means nothing for another address. Default false.
    pub takes_ipv4: bool,
    /// What carries its connections. Default TCP.
    pub transport: Transport,
    /// What clients may speak on them. Default all that larder can tell apart.
    pub protocols: Protocols,
}

impl From<SocketAddr> for Listener {
    fn from(address: SocketAddr) -> Self {
        let transport = Transport::Tcp;
        Self { address, takes_ipv4: false, transport, protocols: transport.protocols() }
    }
}

/// A listener with one socket for each worker.
#[derive(Debug)]
pub struct Bound {
    /// Which; with the real port, where 0 was asked for.
    pub listener: Listener,
    /// One for each worker.
    pub sockets: Vec<BoundSocket>,
}

/// One worker's socket of a listener, not yet registered with any runtime.
#[derive(Debug)]
pub struct BoundSocket {
    pub(crate) listener: Listener,
    pub(crate) socket: TcpListener,
}

impl BoundSocket {
    /// Where it listens, with the real port.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Opens `workers` sockets that listen on `address`: see [`Listener::bind`].
///
/// # Errors
/// The address is in use, or cannot be bound.
pub fn bind(address: SocketAddr, workers: usize) -> Result<Bound, ListenError> {
    Listener::from(address).bind(workers)
}

impl Listener {
    /// Opens `workers` sockets that listen there. Blocks for no longer than the system calls take.
    ///
    /// # Errors
    /// The address is in use, or cannot be bound.
    pub fn bind(self, workers: usize) -> Result<Bound, ListenError> {
        let probe = self.hold(false).map_err(|source| self.failed(source))?;
        let real = probe.local_addr().map_err(|source| self.failed(source))?.as_socket();
        drop(probe);
        Self { address: real.unwrap_or(self.address), ..self }.bind_beside_ours(workers)
    }

    /// The same on a port where this process listens already: a probe would find that.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind_beside_ours(self, workers: usize) -> Result<Bound, ListenError> {
        let open = |_| Ok(BoundSocket { listener: self, socket: self.open()?.into() });
        let sockets = (0..workers).map(open).collect::<io::Result<_>>();
        Ok(Bound { listener: self, sockets: sockets.map_err(|source| self.failed(source))? })
    }

    fn failed(&self, source: io::Error) -> ListenError {
        match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(self.address),
            _ => ListenError::Bind { address: self.address, source },
        }
    }

    fn open(&self) -> io::Result<socket2::Socket> {
        let socket = self.hold(true)?;
        socket.listen(BACKLOG)?;
        socket::defer(&socket);
        Ok(socket)
    }

    /// Binds the address, which fails where anything listens there that does not share it, and does not listen.
    fn hold(&self, is_shared: bool) -> io::Result<socket2::Socket> {
        let (kind, protocol) = match self.transport {
            Transport::Tcp | Transport::Tls => (Type::STREAM, socket2::Protocol::TCP),
        };
        let domain = Domain::for_address(self.address);
        let socket = socket2::Socket::new(domain, kind.nonblocking(), Some(protocol))?;
        // Without it, a restart would have to wait for the last process's connections to be forgotten.
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(is_shared)?;
        if self.address.is_ipv6() {
            // Said each time: what holds where it is not said is a setting of the system.
            socket.set_only_v6(!self.takes_ipv4)?;
        }
        // Accepted sockets inherit it: no system call per connection.
        socket.set_tcp_nodelay(true)?;
        socket.bind(&self.address.into())?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_it_was_made_of() {
        use Protocol::{Http1, Http2};
        let (one, two) = (Protocols::only(Http1), Protocols::only(Http2));
        for (set, has) in [
            (one, [true, false]),
            (two, [false, true]),
            (one.and(Http1), [true, false]),
            (two.and(Http1), [true, true]),
        ] {
            assert_eq!([set.has(Http1), set.has(Http2)], has, "{set:?}");
        }
    }

    #[test]
    fn no_client_reaches_what_only_looks_whether_a_port_is_free() {
        let listener = Listener::from(SocketAddr::from(([127, 0, 0, 1], 0)));
        let probe = listener.hold(false).unwrap();
        let address = probe.local_addr().unwrap().as_socket().unwrap();
        let client = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        // At another address, so that it cannot connect to itself.
        client.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
        let refused = client.connect(&address.into()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
