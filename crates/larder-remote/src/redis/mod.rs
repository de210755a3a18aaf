//! Redis and Valkey: the library `redis` on a connection of larder's own.
//!
//! ```text
//!   Client -> Server (breaker) -> Link -> task of the connection -> library -> Checked -> socket
//! ```
//!
//! docs/design/values.md has the reasons.
//! Deliberately absent: TLS, several servers (Cluster, Sentinel), RESP3, and subscriptions.

mod account;
mod caller;
mod checked;
mod exchange;
mod expiry;
mod login;
mod multiplexed;
mod reply;
mod scan;
mod settings;

pub(crate) use caller::{CallError, Caller};
pub(crate) use expiry::expires;
pub(crate) use login::{Login, log_in};
pub(crate) use multiplexed::Multiplexed;
pub(crate) use scan::{Lists, Scanner};
pub use settings::{Password, RedisSettings};
