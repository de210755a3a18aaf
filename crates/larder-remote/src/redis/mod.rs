//! Redis and Valkey: the library `redis` on a connection of larder's own.
//!
//! ```text
//!   Client -> Server (breaker) -> Link -> task of the connection -> library -> Checked -> socket
//! ```
//!
//! docs/design/values.md has the reasons.
//! Values are asked for in RESP2. RESP3 is spoken where the server has to tell of changes by itself (`versions`).
//! Deliberately absent: TLS, several servers (Cluster, Sentinel), and subscriptions.

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
mod tracked;

pub(crate) use caller::{CallError, Caller};
pub(crate) use expiry::expires;
pub(crate) use login::{Login, log_in};
pub(crate) use multiplexed::Multiplexed;
#[cfg(feature = "fuzzing")]
pub(crate) use scan::RespVersion;
pub(crate) use scan::{Lists, Scanner};
pub use settings::{Password, RedisSettings};
pub(crate) use tracked::{Changed, RedisReply, Tracked};
