//! Values that lie in another program's memory: the clients, their time limits, their breaker, their figures.
//!
//! In: keys, and values that applications or larder put there. Out: values, or why there is none at this moment. A failure here is
//! a value with a reason and never an error of a request: whoever asked goes on as on a miss.
//! Each worker has connections of its own. What holds for the process (how a server is doing, the queue of what is
//! to be written, counters) is shared. No look-up takes longer than its time limit, and a server that fails is left alone
//! until a probe has found it well; no request ever is that probe.
//!
//! ```text
//!   worker:  Client -> which server has the key -> Server (breaker) -> Link -> task of the connection -> protocol -> socket
//!   process: RemoteStore -> queue of each server -> writer's task -> Link -> ..       probe, while the breaker is open
//! ```
//!
//! memcached and Redis differ in [`RemoteSettings`] and in what a connection speaks (`protocol.rs`), and nowhere else.
//!
//! **Invariant**: a reply is handed to the request whose turn it is, or to nobody. The task of a connection owns the order of
//! replies, so a caller that leaves changes nothing about it.
//!
//! Deliberately absent: rules of caching, formats of values, and how a key is made of a request.

mod address;
mod ask;
mod breaker;
mod client;
mod clients;
mod clock;
mod connect;
mod deadline;
mod error;
pub mod fleet;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key;
mod label;
mod link;
pub mod memcached;
mod metrics;
mod probe;
mod protocol;
mod queue;
pub mod redis;
mod reply;
mod request;
mod server;
#[cfg(test)]
mod servers;
mod settings;
mod store;
mod sync;
mod until;
pub mod versions;
mod writer;

pub use address::{Address, Addresses, Resolve, SystemNames};
pub use breaker::Breaker;
pub use client::{Claimed, Client, Found, LookedUp};
pub use clients::Clients;
pub use deadline::{Deadline, Limits};
pub use error::{Failure, RemoteError, Unfit};
pub use key::RemoteKey;
pub use metrics::ServerReport;
pub use queue::{Deletion, MadeValue, Offered};
pub use reply::Ttl;
pub use server::ServerOutlook;
pub use settings::RemoteSettings;
pub use store::RemoteStore;
