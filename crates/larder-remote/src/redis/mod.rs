//! Redis and Valkey: the library `redis` on a connection of larder's own.
//!
//! ```text
//!   Client -> Server (breaker) -> Link -> task of the connection -> library -> Checked -> (TLS) -> socket
//! ```
//!
//! docs/design/values.md has the reasons.
//! Values are asked for in RESP2. RESP3 is spoken where the server has to tell of changes by itself (`versions`).
//! One place makes connections, whatever they are for (`dial.rs`): it knows TLS, passwords, and which server is the master.
//! In a cluster each node is a server of its own, with its breaker and its queue; `cluster.rs` knows which keys it has.
//! Deliberately absent: subscriptions.

mod about;
mod account;
mod call_error;
mod caller;
mod checked;
mod cluster;
mod dial;
mod examine;
mod exchange;
mod expiry;
mod keyspace;
mod login;
mod multiplexed;
mod reach;
mod renewed;
mod reply;
mod round;
mod scan;
mod sentinel;
mod settings;
mod slot;
mod slot_map;
mod tracked;

pub use about::About;
pub(crate) use call_error::CallError;
pub(crate) use caller::Caller;
pub(crate) use cluster::{Cluster, Redirect};
pub(crate) use dial::Dial;
pub use examine::{Examined, Use, examine};
pub(crate) use expiry::expires;
pub(crate) use keyspace::keyspace;
pub use keyspace::{KeyspaceBounds, KeyspaceCursor, KeyspacePage};
pub(crate) use multiplexed::Multiplexed;
#[cfg(feature = "fuzzing")]
pub(crate) use scan::RespVersion;
pub(crate) use scan::{Lists, Scanner};
pub use settings::{Password, RedisPlace, RedisSettings, SentinelSettings};
pub(crate) use slot::slot_of;
pub(crate) use slot_map::NODES_MAX;
pub(crate) use tracked::{Changed, RedisReply, Tracked};
#[cfg(feature = "fuzzing")]
pub(crate) use {sentinel::names_master, slot_map::read_slots};
