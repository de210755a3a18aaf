//! An open connection to a server, of either version of HTTP.
//!
//! In: what [`crate::connect`] opened. Out: a value that a pool keeps or an exchange holds. Dropping it closes the connection.

use std::sync::Arc;

use hyper::client::conn::http1::SendRequest;

use crate::abort::AbortOnDrop;
use crate::http2::Multiplexed;
use crate::upload::Upload;
use crate::wire::{Trace, WeakSocket};

/// One open connection.
pub(crate) enum Connection {
    /// For one exchange at a time.
    Http1(Exclusive),
    /// For many at once.
    Http2(Arc<Multiplexed>),
}

/// An HTTP/1.1 connection. Dropping it ends its task, and with it the socket, whatever state the exchange is in.
pub(crate) struct Exclusive {
    pub(crate) sender: SendRequest<Upload>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) socket: WeakSocket,
    /// Whether it is one client's and ends with one exchange.
    pub(crate) serves_one: bool,
    pub(crate) _task: AbortOnDrop,
}
