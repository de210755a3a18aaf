//! A client for values that applications write into memcached.
//!
//! In: keys. Out: values with the time that they have left, or why there is none; and what is written and deleted through a queue.
//!
//! ```text
//!   worker:  Client -> ring -> Server (breaker) -> Link -> task of the connection -> codec -> socket
//!   process: Memcached -> queue of each server -> writer's task -> Link -> ..       probe, while the breaker is open
//! ```
//!
//! docs/design/memcached.md has the reasons.
//! Deliberately absent: the binary protocol, SASL, UDP, and several keys in one request.

mod client;
pub(crate) mod codec;
mod connection;
mod dial;
mod expiry;
mod md5;
mod outstanding;
mod queue;
mod ring;
mod server;
mod servers;
mod settings;
mod value;
mod writer;

pub use client::{Client, Found, LookedUp};
pub use codec::Ttl;
pub use queue::{Deletion, Offered};
pub use ring::Ring;
pub use servers::Memcached;
pub use settings::{Codings, MemcachedSettings, Placement, RemoteServer};
