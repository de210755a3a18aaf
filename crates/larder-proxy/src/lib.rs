//! The way of a request, from the listener to the origin and back.
//!
//! ```text
//! route -> key -> lookup -> fresh? ---------------------------> respond -> log
//!                      \-> stale, miss -> collapse -> forward -----^
//!                                                       fetch, fill
//! ```
//! In: requests that a listener validated. Out: responses, each with its `Cache-Status`. Each step is a module (a
//! folder); step modules never import each other. Two places hand values from step to step: `serve` for a client's
//! exchange, `forward` for an origin fetch, which outlives it. Deliberately absent: sockets, the config's text, and
//! every rule of caching (that is `larder-cache`).

mod asked;
mod assemble;
mod background;
mod before;
mod collapse;
mod decision;
mod detail;
mod exchange;
pub mod explain;
mod facts;
mod failure;
mod fetch;
mod fill;
mod fleet;
#[cfg(test)]
mod fleet_of_one;
mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "fuzzing")]
mod fuzzing_decoding;
mod help;
mod invalidation;
mod key;
mod labels;
mod lookup;
mod losses;
mod not_stored;
pub mod objects;
mod place;
mod placement;
mod plan;
mod proxy;
mod purge;
pub mod purges;
mod receipt;
mod respond;
mod root;
mod route;
mod sampled;
mod serve;
mod service;
pub mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_proxy;
mod uses;
mod versions;
mod words;
mod worker;
mod worker_plan;

pub use fleet::{FleetReceipt, MemberReceipt, Membership, OwnPurge, Placing};
pub use invalidation::{Heard, InvalidationKind, PredicateCounts, Reach};
pub use labels::vocabulary;
pub use larder_cache::purge::Scope;
pub use plan::{Plan, PlanError};
pub use proxy::{Gauges, Proxy};
pub use service::ProxyService;
pub use words::{Word, Words, words};
pub use worker::{Prepared, Worker};
