//! What can go wrong, and why a look-up brought nothing.
//!
//! Setting a client up can fail, and that is an error. A look-up cannot: it has a reason why there is no value, which is a value
//! itself and a word in metrics and messages.

use std::fmt;
use std::io;

/// An error of setting up or of writing.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The text is no address of a server.
    #[error("`{text}` is no address: {why}")]
    Address {
        /// What was read.
        text: String,
        /// What is expected.
        why: &'static str,
    },
    /// Servers or weights are outside of their bounds.
    #[error("{0}")]
    Servers(&'static str),
    /// TLS cannot be spoken as configured.
    #[error(transparent)]
    Tls(larder_tls::SetupError),
    /// No thread or no event queue could be had.
    #[error("cannot start the writer")]
    Thread(#[source] io::Error),
    /// No node of the cluster is known to have the key.
    #[error("no node of the cluster is known to have the key")]
    Unplaced,
    /// The queue has no room for a deletion.
    #[error("too much waits for the server")]
    QueueFull,
    /// Nobody carries out the deletion any more: the client was closed.
    #[error("the server did not confirm")]
    Unconfirmed,
}

/// Why a server had no usable reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// As many requests as may be outstanding are.
    Busy,
    /// The breaker is open: the server was not asked.
    Skipped,
    /// No connection could be made.
    Connect,
    /// No reply came in time.
    TimedOut,
    /// The connection ended, or writing failed.
    Closed,
    /// The connection was ended because another server is the right one now.
    Moved,
    /// What came is no reply to what was asked.
    Malformed,
    /// The server announced a value beyond `max_object`.
    TooLarge,
    /// The server says that it cannot.
    Refused,
}

impl Failure {
    /// The word for messages.
    pub fn token(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Skipped => "skipped",
            Self::Connect => "connect",
            Self::TimedOut => "timeout",
            Self::Closed => "closed",
            Self::Moved => "moved",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "too many requests wait for it",
            Self::Skipped => "it is left alone",
            Self::Connect => "no connection can be made",
            Self::TimedOut => "no reply came in time",
            Self::Closed => "the connection broke",
            Self::Moved => "another server has its place",
            Self::Malformed => "what it sent is no reply to what was asked",
            Self::TooLarge => "it announced a value beyond max_object",
            Self::Refused => "it says that it cannot",
        })
    }
}

/// Why a value that is there is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is not of the form that it should have.
    Malformed,
    /// It is for another request than this one.
    OtherVariant,
}
