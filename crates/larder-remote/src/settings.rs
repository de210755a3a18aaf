//! What is said about the values of one store, whichever server has them.
//!
//! In: the settings of one kind of server. Out: their bounds are checked, and all that differs between the kinds is told apart here, once:
//! how a server is spoken to, which server has a key, how keys and lifetimes are written.
//! Templates of keys, formats of values and lifetimes belong to those who ask.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use larder_http::time::WallTime;

use crate::address::{Address, Resolve};
use crate::error::RemoteError;
use crate::key::RemoteKey;
use crate::memcached::{Codings, MemcachedSettings, Ring, expires as memcached_expires};
use crate::protocol::Protocol;
use crate::redis::{Dial, RedisSettings, expires as redis_expires};

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteSettings {
    /// Values in memcached.
    Memcached(MemcachedSettings),
    /// Values in Redis or Valkey.
    Redis(Box<RedisSettings>),
}

/// What a kind of server wants.
pub(crate) struct Terms {
    /// The word for it.
    pub(crate) kind: &'static str,
    /// The servers in the order of the settings: what each is called, and how it is reached.
    pub(crate) servers: Vec<(String, Protocol)>,
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
    pub(crate) fn into_terms(self, names: &Arc<dyn Resolve>) -> Result<Terms, RemoteError> {
        match self {
            Self::Memcached(settings) => {
                settings.check()?;
                let server =
                    |address: Address| (address.to_string(), Protocol::Memcached(address, Arc::clone(names)));
                Ok(Terms {
                    kind: "memcached",
                    ring: Ring::new(settings.placement, &settings.servers),
                    servers: settings.servers.into_iter().map(|of| server(of.address)).collect(),
                    key: RemoteKey::of_memcached,
                    expires: memcached_expires,
                    codings: settings.codings,
                    timeout: settings.timeout,
                    max_object: settings.max_object,
                })
            }
            Self::Redis(settings) => Ok(Terms {
                kind: "redis",
                ring: Ring::of_one(),
                servers: vec![(
                    settings.place.to_string(),
                    Protocol::Redis(Arc::new(Dial::new(&settings, Arc::clone(names))?)),
                )],
                key: RemoteKey::of_redis,
                expires: redis_expires,
                codings: Codings::default(),
                timeout: settings.timeout,
                max_object: settings.max_object,
            }),
        }
    }
}
