//! What is said about a store in memcached.
//!
//! In: the config, already read. Out: checked bounds. Templates of keys, formats of values and lifetimes belong to those who ask.

use std::time::Duration;

use crate::address::Address;
use crate::error::RemoteError;

/// The most servers of one store.
const SERVERS_MAX: usize = 256;
/// The greatest weight of one server.
const WEIGHT_MAX: u32 = 256;
/// The greatest sum of weights: the ring has 160 points for each.
const WEIGHTS_MAX: u32 = 4096;

/// How keys find their server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// libmemcached with `ketama_weighted`.
    #[default]
    Ketama,
    /// libmemcached with consistent distribution and nothing else.
    Consistent,
    /// nginx's `hash KEY consistent`.
    Nginx,
}

/// A server of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteServer {
    /// Where it listens.
    pub address: Address,
    /// Its share of the keys, 1 where nothing else is said.
    pub weight: u32,
}

/// Which flags tell that a value is compressed. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings {
    /// Bits of which one tells gzip, as nginx's `memcached_gzip_flag`.
    pub gzip_flag: u32,
    /// Bits of which one tells zlib; pylibmc sets 8.
    pub zlib_flag: u32,
}

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemcachedSettings {
    /// At least one.
    pub servers: Vec<RemoteServer>,
    /// How keys find their server, where there are several.
    pub placement: Placement,
    /// The longest that a look-up takes, connecting included. 200 ms where nothing else is said.
    pub timeout: Duration,
    /// The largest value in bytes, as it comes and as it is decoded.
    pub max_object: usize,
    /// How values are decoded.
    pub codings: Codings,
}

impl MemcachedSettings {
    /// Checks servers and weights.
    pub(crate) fn check(&self) -> Result<(), RemoteError> {
        let sum = self.servers.iter().map(|server| u64::from(server.weight)).sum::<u64>();
        match () {
            () if self.servers.is_empty() => Err(RemoteError::Servers("a store in memcached needs a server")),
            () if self.servers.len() > SERVERS_MAX => {
                Err(RemoteError::Servers("a store in memcached takes 256 servers at most"))
            }
            () if self.servers.iter().any(|server| server.weight == 0 || server.weight > WEIGHT_MAX) => {
                Err(RemoteError::Servers("a weight is from 1 to 256"))
            }
            () if sum > u64::from(WEIGHTS_MAX) => {
                Err(RemoteError::Servers("the weights of all servers are 4096 together at most"))
            }
            () => Ok(()),
        }
    }
}
