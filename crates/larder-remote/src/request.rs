//! What is asked of a server, whatever protocol it speaks.

use bytes::Bytes;

use crate::key::RemoteKey;

/// One request. Each has exactly one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Look a value up.
    Get(RemoteKey),
    /// Put a value there.
    Set {
        key: RemoteKey,
        /// As the protocol counts it.
        expires: u64,
        value: Bytes,
    },
    /// Put a value there unless there is one.
    Claim {
        key: RemoteKey,
        /// As the protocol counts it.
        expires: u64,
        value: Bytes,
    },
    /// Remove a value.
    Delete(RemoteKey),
    /// A value is in use, as far as the server counts that.
    Touch(RemoteKey),
    /// Of a node of a cluster that is about to get the key.
    Asking(Box<Request>),
    /// Nothing, but with a reply.
    NoOp,
}
