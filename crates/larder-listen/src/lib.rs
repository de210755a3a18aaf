//! The listener: sockets in, validated requests out to a [`Service`], responses back onto the wire.
//!
//! In: connections of clients, clear text, HTTP/1.0, 1.1 and 2 (prior knowledge) on the same port. Out: for each
//! request one call of a [`Service`] with a typed head that holds end-to-end fields only; whatever two parsers could
//! read differently has been refused before. The answer is framed here and nowhere else (RFC 9112, RFC 9113).
//!
//! The modules: [`accept`] opens sockets and hands connections to [`connection`], which tells HTTP/1 from HTTP/2;
//! `http1` and `http2` each own their protocol; [`drain`] ends them in good order; [`metrics`] counts.
//! Deliberately absent: any knowledge of sites, caches or origins, trust in forwarded fields, and TLS, which will
//! enter as another [`connection::Transport`].

pub mod accept;
pub mod connection;
mod content;
mod date;
mod delivery;
pub mod drain;
mod error;
mod http1;
mod http2;
pub mod metrics;
mod service;
mod settings;
mod slots;
mod socket;
mod timer;

pub use accept::{Bound, Opening, accept_loop, bind};
pub use connection::serve_connection;
pub use drain::{Drain, DrainSignal};
pub use error::{ListenError, Refusal};
pub use metrics::Metrics;
pub use service::{Interims, Service};
pub use settings::{Limits, Settings};
pub use slots::Slots;

/// What the fuzzers and the differential tests look at; not for use by other crates.
#[doc(hidden)]
pub mod testing {
    pub use crate::http1::head::{ParsedHead, Scan, parse};
}
