//! What is said about the values of one store, whichever server has them.
//!
//! In: the settings of one kind of server. Out: their bounds are checked, and all that differs between the kinds is told apart here, once:
//! how a server is spoken to, which server has a key, how keys and lifetimes are written.
//! Templates of keys, formats of values and lifetimes belong to those who ask.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use larder_http::time::WallTime;
use larder_observe::Diagnostics;

use crate::address::{Address, Resolve};
use crate::ask::Answer;
use crate::error::RemoteError;
use crate::key::RemoteKey;
use crate::label::Label;
use crate::memcached::{Codings, MemcachedSettings, Ring, expires as memcached_expires};
use crate::protocol::Protocol;
use crate::redis::{Cluster, Dial, NODES_MAX, Redirect, RedisSettings, expires as redis_expires, slot_of};
use crate::reply::Reply;

/// The settings of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteSettings {
    /// Values in memcached.
    Memcached(MemcachedSettings),
    /// Values in Redis or Valkey.
    Redis(Box<RedisSettings>),
}

/// Which server has a key.
#[derive(Clone, Debug)]
pub(crate) enum KeyPlaces {
    /// The same one for as long as larder runs.
    Ring(Ring),
    /// The node that the cluster names.
    Cluster(Arc<Cluster>),
}

impl KeyPlaces {
    /// Its place among the servers. `None` where none is known at the moment.
    pub(crate) fn place(&self, key: &[u8]) -> Option<usize> {
        match self {
            Self::Ring(ring) => Some(ring.place(key)),
            Self::Cluster(cluster) => cluster.node_of(key),
        }
    }

    /// The slot of a key, in a cluster.
    pub(crate) fn slot(&self, key: &[u8]) -> Option<u16> {
        match self {
            Self::Ring(_) => None,
            Self::Cluster(_) => Some(slot_of(key)),
        }
    }

    /// Where a request has to go instead, if that is what the answer to it says.
    pub(crate) fn redirected(&self, answer: &Answer) -> Option<Redirect> {
        match (self, answer) {
            (Self::Cluster(cluster), Ok(Reply::ServerError(said))) => cluster.redirected(said),
            _ => None,
        }
    }
}

/// What a kind of server wants.
pub(crate) struct Terms {
    /// The word for it.
    pub(crate) kind: &'static str,
    /// The servers in the order of the settings, or all that a cluster may ever have: what each is called, and how it is reached.
    pub(crate) servers: Vec<(Label, Protocol)>,
    pub(crate) placement: KeyPlaces,
    /// Finds out where the servers are, where that may change.
    pub(crate) watched: Option<Arc<Dial>>,
    /// The key for a name.
    pub(crate) key: fn(Bytes) -> RemoteKey,
    /// How long a value is to stay, as it is written; `None` for less than a second.
    pub(crate) expires: fn(Duration, WallTime) -> Option<u64>,
    pub(crate) codings: Codings,
    pub(crate) timeout: Duration,
    /// The largest value at first, in bytes.
    pub(crate) max_object: usize,
}

impl RemoteSettings {
    pub(crate) fn into_terms(
        self,
        names: &Arc<dyn Resolve>,
        diagnostics: &Diagnostics,
    ) -> Result<Terms, RemoteError> {
        match self {
            Self::Memcached(settings) => {
                settings.check()?;
                let server = |address: Address| {
                    (Label::Fixed(address.to_string()), Protocol::Memcached(address, Arc::clone(names)))
                };
                Ok(Terms {
                    kind: "memcached",
                    placement: KeyPlaces::Ring(Ring::new(settings.placement, &settings.servers)),
                    watched: None,
                    servers: settings.servers.into_iter().map(|of| server(of.address)).collect(),
                    key: RemoteKey::of_memcached,
                    expires: memcached_expires,
                    codings: settings.codings,
                    timeout: settings.timeout,
                    max_object: settings.max_object,
                })
            }
            Self::Redis(settings) => {
                let dial = Arc::new(Dial::new(&settings, &[], Arc::clone(names), diagnostics)?);
                let (servers, placement) = match dial.cluster() {
                    None => {
                        let label = Label::Fixed(settings.place.to_string());
                        let server = (label, Protocol::Redis(Arc::clone(&dial)));
                        (vec![server], KeyPlaces::Ring(Ring::of_one()))
                    }
                    Some(cluster) => {
                        let node = |number| {
                            let dial = Arc::new(dial.node(cluster, number));
                            (Label::of_node(cluster, number), Protocol::Redis(dial))
                        };
                        ((0..NODES_MAX).map(node).collect(), KeyPlaces::Cluster(Arc::clone(cluster)))
                    }
                };
                Ok(Terms {
                    kind: "redis",
                    servers,
                    placement,
                    watched: Some(dial),
                    key: RemoteKey::of_redis,
                    expires: redis_expires,
                    codings: Codings::default(),
                    timeout: settings.timeout,
                    max_object: settings.max_object,
                })
            }
        }
    }
}
