//! The errors of the kit: each says what could not be done at the raw end of a connection or in a scenario file.
//!
//! A response that breaks off after its head is not an error but a [`crate::client::End`]: tests expect it.

use std::io;

/// What went wrong on this side of a test.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket failed.
    #[error("socket: {0}")]
    Io(#[from] io::Error),
    /// The other end closed or reset before it had said everything.
    #[error("connection ended in {0}")]
    Cut(&'static str),
    /// Bytes that HTTP does not allow there.
    #[error("malformed {what}: {found}")]
    Malformed {
        /// The part of the message.
        what: &'static str,
        /// What stood there.
        found: String,
    },
    /// Nothing came in time.
    #[error("timed out in {0}")]
    TimedOut(&'static str),
    /// A client was told to leave.
    #[error("aborted by the test")]
    Aborted,
    /// An HTTP/2 stream or connection failed.
    #[error("HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    /// A scenario file that says something unknown, contradictory or too little.
    #[error("{0}")]
    Scenario(String),
}

impl Error {
    /// A [`Error::Malformed`] that quotes at most 120 bytes of what was found.
    pub fn malformed(what: &'static str, found: &[u8]) -> Self {
        let shown = found.get(..120).unwrap_or(found);
        Self::Malformed { what, found: shown.escape_ascii().to_string() }
    }
}
