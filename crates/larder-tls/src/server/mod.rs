//! TLS towards clients: which certificate they are shown, what is asked of them, and what they resume.
//!
//! In: the sites with their certificates and policies, and what a client says first. Out: the configuration for its connection, or the alert that it gets. A client that asks for
//! a name gets the certificates of the site that has the name, chosen as requests choose sites, and of no other site.
//! Everything is read and judged before anything is replaced: a [`ServerTls`] is whole or is not made.

mod choice;
mod client_policy;
mod compression;
mod fault;
mod identity;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tickets;

pub use choice::{
    CertificateStore, ChallengeCertificates, ServerTls, ServerTlsSettings, SiteCertificates, SiteTls,
    TlsChoice,
};
pub use client_policy::{ClientPolicy, ClientPolicyFiles};
pub use fault::{ServerFault, ServerFile};
pub use identity::{Identity, IdentityFiles, uncovered};
pub use tickets::{TicketCounts, TicketKeys};
