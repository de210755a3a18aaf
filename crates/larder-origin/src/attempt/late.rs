//! The limits of time until a head is there.

use std::time::Duration;

use http::HeaderMap;
use larder_http::body::BodyError;
use larder_http::fields::content_type;
use tokio::time::Instant;

use crate::error::OriginError;
use crate::settings::{OriginSettings, Protocol, Timeouts};
use crate::upload::UploadProgress;

/// How long the head may take: the servers of gRPC send it with the first message, which may be long in coming. gRPC needs HTTP/2; over HTTP/1 its content
/// type is a word that any client may say.
pub(crate) fn first_byte_limit(request: &HeaderMap, settings: &OriginSettings) -> Duration {
    let Timeouts { first_byte, event_stream, .. } = settings.timeouts;
    if settings.protocol != Protocol::Http1 && content_type::is_grpc(request) {
        first_byte.max(event_stream)
    } else {
        first_byte
    }
}

/// Which limit of time passed before the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Late {
    FirstByte,
    Total,
}

impl Late {
    /// When the first of both passes.
    pub(crate) fn at(last_write: Instant, first_byte: Duration, total: Option<Instant>) -> Instant {
        let deadline = last_write + first_byte;
        total.map_or(deadline, |total| total.min(deadline))
    }

    /// Which has passed at `now`, where one has.
    pub(crate) fn which(now: Instant, total: Option<Instant>) -> Self {
        if total.is_some_and(|total| total <= now) { Self::Total } else { Self::FirstByte }
    }

    /// Whose fault it was.
    pub(crate) fn error(self, progress: &UploadProgress) -> OriginError {
        match (progress.error(), self) {
            (Some(error), _) => OriginError::ClientBody(error),
            (None, Self::Total) => OriginError::TotalTimeout,
            // The client is what we are waiting for; its own limit should have ended this before.
            (None, Self::FirstByte) if progress.is_waiting() => OriginError::ClientBody(BodyError::Stalled),
            (None, Self::FirstByte) => OriginError::FirstByteTimeout,
        }
    }
}
