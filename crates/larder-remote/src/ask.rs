//! A request on its way to a connection, with who waits for its reply.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::deadline::Deadline;
use crate::error::Failure;
use crate::reply::Reply;
use crate::request::Request;

/// Replies that may be outstanding at once on a connection.
pub(crate) const OUTSTANDING_MAX: usize = 1024;

/// What a request brought.
pub(crate) type Answer = Result<Reply, Failure>;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) request: Request,
    pub(crate) deadline: Deadline,
    pub(crate) reply: oneshot::Sender<Answer>,
    /// One of the places of this connection, held until the reply has come.
    pub(crate) seat: OwnedSemaphorePermit,
}

impl Ask {
    /// Tells its caller, if there still is one.
    pub(crate) fn fail(self, failure: Failure) {
        let _ = self.reply.send(Err(failure));
    }
}
