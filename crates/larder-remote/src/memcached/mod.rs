//! memcached: its protocol, how applications place keys, and how they compress values.
//!
//! ```text
//!   Client -> ring -> Server (breaker) -> Link -> task of the connection -> Conversation -> codec -> socket
//! ```
//!
//! docs/design/memcached.md has the reasons.
//! Deliberately absent: the binary protocol, SASL, UDP, and several keys in one request.

pub(crate) mod codec;
mod conversation;
mod dial;
mod examine;
mod expiry;
mod md5;
mod outstanding;
mod ring;
mod settings;
mod value;

pub(crate) use conversation::Conversation;
pub(crate) use dial::{Opened, open};
pub use examine::examine;
pub(crate) use expiry::expires;
pub use ring::Ring;
pub use settings::{Codings, MemcachedSettings, Placement, RemoteServer};
pub(crate) use value::decoded;
