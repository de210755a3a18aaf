//! What is said about the values of one store, whichever server has them.
//!
//! In: the settings of one kind of server. Out: their bounds are checked, and all that differs between the kinds is told apart here, once:
//! how a server is spoken to, which server has a key, how keys and lifetimes are written.
//! Templates of keys, formats of values and lifetimes belong to those who ask.

use std::time::Duration;

use bytes::Bytes;
use larder_http::time::WallTime;

use crate::address::Address;
use crate::error::RemoteError;
use crate::key::RemoteKey;
use crate::memcached::{Codings, MemcachedSettings, Ring, expires as memcached_expires};
use crate::protocol::Protocol;
use crate::redis::{RedisSettings, expires as redis_expires};

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteSettings {
    /// Values in memcached.
    Memcached(MemcachedSettings),
    /// Values in Redis or Valkey.
    Redis(RedisSettings),
}

/// What a kind of server wants.
pub(crate) struct Terms {
    /// The word for it.
    pub(crate) kind: &'static str,
    pub(crate) protocol: Protocol,
    /// In the order of the settings.
    pub(crate) addresses: Vec<Address>,
    pub(crate) ring: Ring,
    /// The key for a name.
    pub(crate) key: fn(Bytes) -> RemoteKey,
    /// How long a value is to stay, as it is written; `None` for less than a second.
    pub(crate) expires: fn(Duration, WallTime) -> Option<u64>,
    pub(crate) codings: Codings,
    pub(crate) timeout: Duration,
    pub(crate) max_object: usize,
}

impl RemoteSettings {
    pub(crate) fn into_terms(self) -> Result<Terms, RemoteError> {
        match self {
            Self::Memcached(settings) => {
                settings.check()?;
                Ok(Terms {
                    kind: "memcached",
                    protocol: Protocol::Memcached,
                    ring: Ring::new(settings.placement, &settings.servers),
                    addresses: settings.servers.into_iter().map(|server| server.address).collect(),
                    key: RemoteKey::of_memcached,
                    expires: memcached_expires,
                    codings: settings.codings,
                    timeout: settings.timeout,
                    max_object: settings.max_object,
                })
            }
            Self::Redis(settings) => Ok(Terms {
                kind: "redis",
                protocol: Protocol::Redis(settings.login().into()),
                ring: Ring::of_one(),
                addresses: vec![settings.address],
                key: RemoteKey::of_redis,
                expires: redis_expires,
                codings: Codings::default(),
                timeout: settings.timeout,
                max_object: settings.max_object,
            }),
        }
    }
}
