//! Sockets out: one exchange with an origin over HTTP/1.1, its connections, their pool, limits, DNS and TLS.
//!
//! In: an [`OriginRequest`] made of typed parts. Out: an [`OriginResponse`] whose fields are end-to-end only and whose
//! body is pulled, or an [`OriginError`] that says whose fault it was and which status it becomes. The request on the
//! wire is built anew: Host, framing and connection-level fields are ours and are never copied (RFC 9110 7.6.1, RFC
//! 9112 6). hyper's client speaks the protocol; this crate decides what may be sent, believed, reused and retried.
//!
//! An [`Origin`] belongs to one worker, so that connections never cross cores; what holds for the whole process
//! (open connections, counters, the TLS configuration) lies in [`Shared`].
//!
//! **Invariant**: a connection goes back to its pool only after both messages ended where their framing said. In every
//! other case, cancellation at any await included, it is closed, because that is what dropping it does.
//!
//! Deliberately absent: caching, redirects, trailers (dropped in both directions), decoding of content, hedging, and
//! any retry beyond the one that cannot repeat an effect.

mod answer;
mod attempt;
mod connect;
mod download;
mod error;
mod metrics;
mod origin;
mod pool;
mod request;
mod resolve;
mod settings;
mod tls;
mod tunnel;
mod upload;
mod wire;

pub use answer::{InterimSink, OriginResponse, Timing};
pub use error::{Fault, OriginError, SetupError};
pub use metrics::{Metrics, Shared, Visit};
pub use origin::{Origin, Unresolved};
pub use request::OriginRequest;
pub use settings::{HeadLimits, OriginSettings, ServerAddress, Timeouts, TlsSettings};
