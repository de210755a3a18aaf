//! Names of servers to addresses, by the system's resolver.
//!
//! In: a host and a port. Out: the addresses in the resolver's order. An answer is kept for a short time, so that a
//! changed record is seen soon and a burst of connections asks once; when a later look-up fails, the last good answer
//! goes on being used, because a resolver that is down should not take the origin with it.
//! Deliberately absent: the records' own lifetimes, which `getaddrinfo` does not tell.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::OriginError;

/// How long an answer is used without asking again.
const FRESH_FOR: Duration = Duration::from_secs(10);

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// The addresses of one server.
pub(crate) struct Resolver {
    host: String,
    port: u16,
    /// An async lock, held while asking: one look-up at a time per server and worker, the others wait for its
    /// answer. Who holds it may be dropped; the next in line then asks itself.
    known: Mutex<Option<Known>>,
}

struct Known {
    since: Instant,
    addresses: Arc<[SocketAddr]>,
}

impl Resolver {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port, known: Mutex::new(None) }
    }

    /// The addresses, at least one.
    ///
    /// # Cancel safety
    /// May be dropped at any time. The caller sets the time limit.
    pub(crate) async fn addresses(&self) -> Result<Arc<[SocketAddr]>, OriginError> {
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            return Ok(Arc::from([SocketAddr::new(ip, self.port)]));
        }
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.since.elapsed() < FRESH_FOR) {
            return Ok(known.addresses.clone());
        }
        match self.look_up().await {
            Ok(addresses) => {
                *known = Some(Known { since: Instant::now(), addresses: addresses.clone() });
                Ok(addresses)
            }
            Err(error) => match known.as_ref() {
                Some(last_good) => Ok(last_good.addresses.clone()),
                None => Err(OriginError::Dns(error)),
            },
        }
    }

    async fn look_up(&self) -> io::Result<Arc<[SocketAddr]>> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        let addresses: Arc<[SocketAddr]> = found.take(ADDRESSES_MAX).collect();
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no addresses"));
        }
        Ok(addresses)
    }
}
