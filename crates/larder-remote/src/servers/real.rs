//! Debian's memcached, and where the client finds it.

pub use larder_testkit::memcached::{Server, TcpServer};

use crate::Address;

/// A server on a Unix socket.
pub trait Listens {
    fn address(&self) -> Address;
}

impl Listens for Server {
    fn address(&self) -> Address {
        Address::Unix(self.socket())
    }
}

/// A server on a port, under one of the names of this machine.
pub trait ListensAt {
    fn address(&self, host: &str) -> Address;
}

impl ListensAt for TcpServer {
    fn address(&self, host: &str) -> Address {
        Address::Tcp { host: host.to_owned(), port: self.port }
    }
}
