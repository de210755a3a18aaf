//! The listener: sockets in, validated requests out to a [`Service`], responses back onto the wire.
//!
//! In: connections of clients, in clear text with HTTP/1.0, 1.1 and 2 (prior knowledge) on the same port, or over TLS. Out: for each
//! request one call of a [`Service`] with a typed head that holds end-to-end fields only; whatever two parsers could
//! read differently has been refused before. The answer is framed here and nowhere else (RFC 9112, RFC 9113).
//!
//! A [`Listener`] is a value: an address, a [`Transport`] and the [`Protocols`] on it. A connection has two stages with an
//! [`Accepted`] transport between them: [`accept`] takes it from the socket, `tls` shakes hands where that is its transport, and `detect` tells what
//! the client speaks on it.
//! `http1` and `http2` each own their protocol; [`drain`] ends connections in good order; [`metrics`] counts.
//! Deliberately absent: any knowledge of sites, caches or origins, of certificates, and trust in forwarded fields.

pub mod accept;
mod accepted;
mod any_service;
pub mod byte_stream;
mod cell;
pub mod connection;
mod content;
mod context;
mod date;
mod delivery;
mod detect;
pub mod drain;
mod error;
mod http1;
mod http2;
mod linger;
pub mod listener;
pub mod metrics;
mod outbox;
mod service;
mod settings;
mod slots;
mod socket;
#[cfg(test)]
mod sockets;
mod timer;
mod tls;

pub use accept::accept_loop;
pub use accepted::Accepted;
pub use any_service::AnyService;
pub use cell::Cell;
pub use connection::serve_connection;
pub use drain::{Drain, DrainSignal};
pub use error::{ListenError, Refusal};
pub use listener::{Bound, BoundSocket, Listener, Protocol, Protocols, Transport, bind};
pub use metrics::Metrics;
pub use service::{BoxedCall, Interims, Service};
pub use settings::{Limits, Settings, TrustedPeers};
pub use slots::Slots;
pub use tls::{HandshakeFailure, Handshakes};

/// What the fuzzers and the differential tests look at; not for use by other crates.
#[doc(hidden)]
pub mod testing {
    pub use crate::http1::head::{ParsedHead, Scan, parse};
    pub use crate::http2::hpack::decode::{
        Counted, DecodeError, DecodedField, Decoder, HeadLimits, Malformed,
    };
    pub use crate::http2::hpack::encode::{Block, Encoder};
}
