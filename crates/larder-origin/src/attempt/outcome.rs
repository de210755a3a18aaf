//! What came of an attempt.

use http::{Method, Response};

use crate::download::Incoming;
use crate::error::OriginError;
use crate::http2::Uploading;
use crate::lease::Lease;
use crate::request::Outgoing;

/// An attempt that failed.
pub(crate) struct Failed {
    pub(crate) error: OriginError,
    /// The request, where sending it again cannot repeat an effect.
    pub(crate) again: Option<Outgoing>,
    /// Whether the server wants it over HTTP/1.1 (RFC 9113 7).
    pub(crate) needs_http1: bool,
}

impl Failed {
    pub(crate) fn new(error: OriginError, again: Option<Outgoing>) -> Self {
        Self { error, again, needs_http1: false }
    }
}

/// What came of an attempt that did not fail.
pub(crate) struct Answered {
    pub(crate) lease: Lease,
    pub(crate) response: Response<Incoming>,
    pub(crate) is_upload_complete: bool,
    /// The rest of the upload, where it goes on beside the response.
    pub(crate) uploading: Option<Uploading>,
}

/// Whether sending a request once more cannot do more than asking twice.
pub(crate) fn is_plain_read(outgoing: &Outgoing) -> bool {
    outgoing.body.is_nothing() && matches!(*outgoing.head.method(), Method::GET | Method::HEAD)
}
