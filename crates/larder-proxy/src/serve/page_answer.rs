//! Conditions, ranges and HEAD, answered from a page of which all is in memory.

use std::sync::Arc;

use http::header::{IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, HeaderName, StatusCode};
use larder_http::body::{Body, Pieces};
use larder_http::message::{RequestHead, Response};
use larder_http::time::WallTime;

use crate::assemble::WholePage;
use crate::exchange::Exchange;
use crate::respond;

/// A page whose bytes are all there, as far as the request asks for it. It has no date that a condition could be compared with: no
/// time tells that a branch was taken otherwise.
pub(super) fn page_answer(
    exchange: &Exchange,
    head: (StatusCode, HeaderMap),
    page: Arc<WholePage>,
) -> Response {
    let (request, now) = (&exchange.asked.head, exchange.started.wall);
    if !WITH_DATES.iter().any(|name| request.fields.contains_key(name)) {
        return sized(request, head, now, page);
    }
    let mut undated = request.clone();
    WITH_DATES.iter().for_each(|name| drop(undated.fields.remove(name)));
    sized(&undated, head, now, page)
}

/// Conditions with a date.
const WITH_DATES: [HeaderName; 2] = [IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE];

pub(super) fn sized(
    request: &RequestHead,
    head: (StatusCode, HeaderMap),
    now: WallTime,
    page: Arc<WholePage>,
) -> Response {
    let length = page.length();
    let owner: Arc<dyn Pieces> = page;
    respond::sized(request, head, length, now, |range| match range.is_empty() {
        true => Body::Empty,
        false => Body::Pieces { owner: Arc::clone(&owner), range },
    })
}
