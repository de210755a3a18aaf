//! Values that lie in another program's memory: the clients, their time limits, their breaker, their figures.
//!
//! In: keys, and values that applications or larder put there. Out: values, or why there is none at this moment. A failure here is
//! a value with a reason and never an error of a request: whoever asked goes on as on a miss.
//! Each worker has connections of its own. What holds for the process (how a server is doing, the queue of what is
//! to be written, counters) is shared. No look-up takes longer than its time limit, and a server that fails is left alone
//! until a probe has found it well; no request ever is that probe.
//!
//! **Invariant**: a reply is handed to the request whose turn it is, or to nobody. The task of a connection owns the order of
//! replies, so a caller that leaves changes nothing about it.
//!
//! Deliberately absent: rules of caching, formats of values, and how a key is made of a request.

mod address;
mod breaker;
mod deadline;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key;
pub mod memcached;
mod metrics;
#[cfg(test)]
mod servers;

pub use address::{Address, Addresses, Resolve, SystemNames};
pub use breaker::Breaker;
pub use deadline::{Deadline, Limits};
pub use error::{Failure, RemoteError, Unfit};
pub use key::RemoteKey;
pub use metrics::ServerReport;
