//! Failures to HTTP: small, honest, uncacheable. What went wrong inside is for the log, not for the page.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Response, ResponseHead};

use crate::failure::Failure;

/// A page of one line.
pub(crate) fn failure(failure: Failure) -> Response {
    let mut fields = HeaderMap::with_capacity(6);
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if failure.status == StatusCode::SERVICE_UNAVAILABLE {
        // A certificate takes longer than a place in a queue.
        let seconds = if failure == Failure::CERTIFICATE_PENDING { "10" } else { "1" };
        fields.insert(RETRY_AFTER, HeaderValue::from_static(seconds));
    }
    if failure.status == StatusCode::METHOD_NOT_ALLOWED {
        fields.insert(http::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    let reason = failure.status.canonical_reason().unwrap_or("Error");
    let page = format!("{} {reason}\n", failure.status.as_u16());
    Response::new(ResponseHead::new(failure.status, fields), Body::Full(page.into()))
}
