//! What is wrong with a certificate, its key, or another file that TLS towards clients is configured with.
//!
//! In: what was found. Out: a sentence about it, and a hint where there is one. Which file it concerns stands beside it, so that whoever knows the config
//! can point at the line.

use std::path::PathBuf;

/// Which of the configured files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFile {
    /// The chain of certificates.
    Chain,
    /// The private key.
    Key,
    /// The authorities of client certificates.
    ClientAuthorities,
    /// A list of revoked client certificates.
    Revoked,
    /// The keys of tickets.
    TicketKeys,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {found}", path.display())]
pub struct ServerFault {
    /// What the file is for.
    pub file: ServerFile,
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong.
    pub found: String,
    /// What may help.
    pub hint: Option<&'static str>,
}

impl ServerFault {
    pub(super) fn new(file: ServerFile, path: &std::path::Path, found: impl Into<String>) -> Self {
        Self { file, path: path.to_owned(), found: found.into(), hint: None }
    }

    pub(super) fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}
