//! TLS towards servers, origins and others: whom to trust, who we are, what is spoken inside (RFC 8446, RFC 9525, RFC 7301).
//!
//! In: the settings. Out: a rustls configuration with the one provider (`provider.rs`), what a file (`pinned.rs`) or the system trusts, and a
//! certificate of our own where one is configured. One configuration serves all workers, so sessions resume across
//! connections of one origin only; what is offered by ALPN is set per connection kind on a copy of it.
//! Files are read at start and reload only, and whatever is wrong with them is found there.

mod certificate;
mod client;
mod connector;
mod error;
mod failure;
mod pinned;
mod provider;
mod settings;

pub use client::{HTTP1, HTTP2, client_config, offering, speaks_nothing_offered};
pub use connector::{Connector, TlsStream, refusal};
pub use error::SetupError;
pub use failure::{TlsFailure, alert_within};
pub use provider::provider;
pub use settings::{ClientCertificate, TlsSettings};
