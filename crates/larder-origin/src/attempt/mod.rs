//! One request over one connection, up to its final head, and whether a failure may be repeated.
//!
//! In: a lease on a connection and a request ready to be written. Out: the response with the lease that its body
//! needs, or why there is none. The request comes back as well where sending it again cannot repeat an effect (RFC
//! 9110 9.2.2). That is so if nothing of it was written, or if it was a GET or HEAD without a body on a used
//! connection that closed before one byte of answer. A client's broken upload is told apart from an origin's failure
//! here.
//! The other files have what both versions of HTTP share, and HTTP/1.1 itself; HTTP/2 is in `crate::http2`.

mod http1;
mod interims;
mod late;
mod outcome;

use tokio::time::Instant;

use crate::answer::InterimSink;
use crate::http2;
use crate::lease::{Held, Lease};
use crate::request::Outgoing;
use crate::settings::OriginSettings;

pub(crate) use interims::{Interims, TOO_MANY_INTERIMS, first_few};
pub(crate) use late::{Late, first_byte_limit};
pub(crate) use outcome::{Answered, Failed, is_plain_read};

/// Sends `outgoing` over `lease` and waits for the final head, until `total` at most.
///
/// # Cancel safety
/// May be dropped at any time; the connection is closed, or the stream reset.
pub(crate) async fn attempt(
    lease: Lease,
    outgoing: Outgoing,
    interims: Option<&InterimSink>,
    settings: &OriginSettings,
    total: Option<Instant>,
) -> Result<Answered, Failed> {
    match lease.held {
        Held::Http1(_) => http1::exchange(lease, outgoing, interims, settings, total).await,
        Held::Http2(_) => http2::exchange(lease, outgoing, interims, settings, total).await,
    }
}
