//! Sockets out: one exchange with one of an origin's servers, their choice and their health, connections, DNS, TLS.
//!
//! In: an [`OriginRequest`] made of typed parts. Out: an [`OriginResponse`] whose fields are end-to-end only and whose
//! body is pulled, or an [`OriginError`] that says whose fault it was and which status it becomes. The request on the
//! wire is built anew: Host, framing and connection-level fields are ours and are never copied (RFC 9110 7.6.1, RFC
//! 9112 6). hyper's client speaks the protocol; this crate decides what may be sent, believed, reused and retried.
//!
//! An [`Origin`] belongs to one worker, so that connections never cross cores; what holds for the whole process
//! (open connections, counters, the TLS configuration, how each server is doing, the queue) lies in [`OriginState`].
//!
//! ```text
//!   Origin::send -> queue -> fleet: which server? -> kept connection, or dial -> attempt -> head -> accept -> body
//!                              ^                        |  (other addresses, once another server)
//!                              +---- opt-in retry ------+---------+
//! ```
//!
//! **Invariant**: a connection goes back to its pool only after both messages ended where their framing said. In every
//! other case, cancellation at any await included, it is closed, because that is what dropping it does.
//!
//! Deliberately absent: caching, redirects, decoding of content, and hedging.

mod abort;
mod accept;
mod answer;
mod attempt;
mod connect;
mod connection;
mod connections;
mod counters;
mod download;
mod error;
mod exposition;
mod fleet;
mod health;
mod http2;
mod in_flight;
mod lease;
mod origin;
mod place;
mod pool;
mod progress;
mod proxy_protocol;
mod reach;
mod request;
mod resolve;
mod resources;
mod room;
mod settings;
#[cfg(test)]
mod sockets;
mod state;
mod tunnel;
mod upload;
mod wire;

pub use answer::{InterimSink, OriginResponse, Timing};
pub use connections::Connections;
pub use counters::Counters;
pub use error::{Fault, OriginError, OriginFailure, SetupError};
pub use exposition::Visit;
pub use fleet::{
    CheckReport, HEAD_TIMES, NotATag, ServerReport, ServerState, ServerTag, head_time_bound, stable_hash,
};
pub use larder_tls::TlsFailure;
pub use origin::{Origin, Unresolved};
pub use progress::Progress;
pub use request::{Affinity, OriginRequest};
pub use settings::{
    Balance, Ejection, HeadLimits, HealthCheck, InFlightLimit, OriginSettings, Protocol, ResolveSettings,
    Retry, SentHost, ServerAddress, ServerSettings, Timeouts,
};
pub use state::OriginState;
