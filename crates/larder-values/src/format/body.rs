//! The bytes of a body alone: a 200 of the store's type, for all who ask, as the application put it there.
//!
//! In: how long a copy may be used. Out: the head of that 200. Its lifetime is explicit: a value that lies where every request for
//! the URL finds it is for every visitor, whatever cookies they have. Date is now.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead};
use larder_http::message::RequestHead;
use larder_http::time::Now;

use crate::settings::ValuesSettings;

pub(super) fn head(
    settings: &ValuesSettings,
    request: &RequestHead,
    policy: &CachePolicy,
    (now, most): (Now, Duration),
) -> StoredHead {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, settings.default_type.clone());
    let freshness = Freshness {
        lifetime: most,
        source: LifetimeSource::Remote,
        initial_age: Duration::ZERO,
        received: now,
        no_cache: false,
    };
    StoredHead::new(request, StatusCode::OK, fields, freshness, policy)
}
