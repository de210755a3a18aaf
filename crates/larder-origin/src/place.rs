//! Where a server is reached at this moment: what is left of an address once names are looked up.
//!
//! In: a literal address, a path, or what DNS answered. Out: something a socket can connect to, cheap to clone, and
//! together with its server the identity of an endpoint. Prints as in a log: `192.0.2.1:80`, `unix:/run/app.sock`.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// One place to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(Arc<Path>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
