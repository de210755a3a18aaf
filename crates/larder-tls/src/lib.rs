//! TLS (RFC 8446, RFC 5246): towards servers, origins and others, and towards clients.
//!
//! In: the settings of both sides. Out: rustls configurations with the one provider (`provider.rs`).
//! Towards servers: whom to trust, which a file (`pinned.rs`) or the system says, and who we are. One configuration serves all workers, so sessions resume across
//! connections of one origin only; what is offered by ALPN is set per connection kind on a copy of it.
//! Towards clients ([`server`]): certificates by name, what is asked of clients, and tickets.
//! Files are read at start and reload, and whatever is wrong with them is found there.

mod certificate;
mod client;
mod connector;
mod error;
mod failure;
mod pinned;
mod provider;
pub mod server;
mod settings;

pub use certificate::{CertificateFacts, KeyKind, date};
pub use client::{HTTP1, HTTP2, client_config, offering, speaks_nothing_offered};
pub use connector::{Connector, TlsStream, refusal};
pub use error::SetupError;
pub use failure::{TlsFailure, alert_within};
pub use provider::provider;
pub use settings::{ClientCertificate, TlsSettings};
