//! What a request says of itself where it asks for a flight.

use std::sync::Arc;

use http::HeaderValue;
use larder_cache::VaryNames;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::CacheKey;

use crate::settings::RuleNumber;

/// A request that needs the origin.
pub(crate) struct FlightRequest<'a> {
    pub(crate) key: &'a CacheKey,
    /// Tells the rules apart: another may edit requests otherwise, or store elsewhere.
    pub(crate) rule: RuleNumber,
    /// As the origin will receive it.
    pub(crate) request: &'a Arc<RequestHead>,
    /// The Vary of responses under this key, as far as it is known.
    pub(crate) expected: Option<VaryNames>,
    /// Whether somebody waits for more than the head.
    pub(crate) wants_content: bool,
    /// The last invalidation before. Asked under the lock of the table's shard: a flight that was not in the table when that was
    /// looked through has a later one.
    pub(crate) number: &'a dyn Fn() -> u64,
    /// The same when the request came: what was fetched after that is new enough for it.
    pub(crate) arrived: u64,
    /// When it was found that the origin has to be asked.
    pub(crate) begun: Now,
}

/// The Range of a request that a flight is told apart by, and the condition that it is under.
pub(super) fn range_of(request: &RequestHead) -> (Option<&HeaderValue>, Option<&HeaderValue>) {
    (request.fields.get(http::header::RANGE), request.fields.get(http::header::IF_RANGE))
}
