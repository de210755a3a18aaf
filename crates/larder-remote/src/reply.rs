//! What a server says to a request, whatever protocol it speaks.

use std::time::Duration;

use bytes::Bytes;

/// How long a value stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The server does not tell: memcached's classic commands have no word for it.
    Unknown,
    /// Until it is removed.
    Unlimited,
    /// For so long.
    Left(Duration),
}

/// A value as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// As the reply repeats it; empty where the protocol does not.
    pub(crate) key: Bytes,
    pub(crate) flags: u32,
    pub(crate) ttl: Ttl,
    /// Its application has marked it stale (memcached's `X`).
    pub(crate) is_stale: bool,
    /// Somebody is to write it anew (memcached's `W`, `Z`). An empty value with this mark only holds the place.
    pub(crate) is_awaited: bool,
    pub(crate) body: Bytes,
}

/// The reply to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Value(Value),
    /// Nothing is there. Newer memcacheds repeat the key.
    Absent(Option<Bytes>),
    /// Something is there that is no value, such as a list of Redis.
    NoValue,
    Stored,
    NotStored,
    Deleted,
    NotFound,
    NoOp,
    /// The command is not known.
    Unknown,
    /// The request was wrong, in the server's words.
    ClientError(String),
    /// The server cannot, in its words.
    ServerError(String),
}
