//! Certificates from an authority, ordered and renewed by ACME (RFC 8555, RFC 8737, RFC 9773).
//!
//! In: host names and where the authority is. Out: certificates with their keys, to the part that serves them ([`Certificates`]); proofs
//! for the authority, for the threads that serve ([`Challenges`]); events, a status of each name, and counts. One thread with one runtime
//! does everything ([`Acme`]). Its pure parts are in files of their own: `schedule.rs` says when, `storage.rs` what lies on the disk and
//! survives which crash, `order.rs` and `proof.rs` have the steps of an order. docs/design/acme.md has the reasons. Deliberately absent:
//! wildcards and proofs by DNS, certificates that a handshake asks for, metrics and configuration: the binary connects them.

mod account;
mod acme;
mod challenges;
mod client;
mod error;
mod event;
mod facts;
mod managed;
mod nonces;
mod order;
mod proof;
mod record;
mod renewal;
mod requests;
mod schedule;
mod settings;
mod setup;
mod status;
mod storage;
mod surroundings;
mod thread;

pub use acme::Acme;
pub use challenges::Challenges;
pub use error::{AcmeError, Failure, FailureKind};
pub use event::{Event, Report, Step};
pub use schedule::{Lifetime, Next, Why};
pub use settings::{AcmeSettings, ChallengeKind, ExternalAccount, NAMES_MAX};
pub use status::{CertificateStatus, LastFailure};
pub use storage::StorageError;
pub use surroundings::{Certificates, Surroundings};
