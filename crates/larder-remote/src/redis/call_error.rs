//! Why a call came to nothing.

use crate::error::Failure;

/// See the head of the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// No connection, or what came is no reply.
    #[error("{0}")]
    Failed(Failure),
    /// No connection could be made, for this reason.
    #[error("no connection: {0}")]
    Connect(String),
    /// The server says that it cannot.
    #[error("it says: {0}")]
    Says(String),
    /// No majority has said that the server is the right one.
    #[error("no majority has said of late which servers are the right ones")]
    Unvouched,
}
