//! Requests, responses and moments for the tests of all modules.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::{Now, WallTime};

use crate::age::ExchangeTimes;
use crate::head::StoredHead;
use crate::policy::CachePolicy;
use crate::storable::{Storability, storable};

/// When the examples happen.
pub(crate) const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const DATE_SECONDS: u64 = 784_111_777;

/// `ms` after [`DATE`]; the monotonic clock has run for some time by then.
pub(crate) fn at_ms(ms: u64) -> Now {
    Now {
        wall: WallTime(DATE_SECONDS * 1000 + ms),
        monotonic: Duration::from_secs(1_000) + Duration::from_millis(ms),
    }
}

/// An exchange at [`DATE`] that took no time.
pub(crate) fn at_once() -> ExchangeTimes {
    ExchangeTimes { request: at_ms(0), response: at_ms(0) }
}

/// Field lines in order.
pub(crate) fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    lines.iter().fold(HeaderMap::new(), |mut fields, (name, value)| {
        let value = HeaderValue::from_str(value).unwrap();
        fields.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
        fields
    })
}

/// A request for `http://example.org/a/b?q`.
pub(crate) fn request(method: &str, lines: &[(&str, &str)]) -> RequestHead {
    RequestHead {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.org"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(b"/a/b?q")).unwrap(),
        version: Version::HTTP_11,
        fields: fields(lines),
    }
}

/// What `request` would have stored at [`DATE`] from a 200 with these fields.
pub(crate) fn stored(asked: &[(&str, &str)], said: &[(&str, &str)], policy: &CachePolicy) -> StoredHead {
    let (request, said) = (request("GET", asked), fields(said));
    match storable(&request, StatusCode::OK, &said, at_once(), policy) {
        Storability::Storable(freshness) => {
            StoredHead::new(&request, StatusCode::OK, said, freshness, policy)
        }
        Storability::NotStorable(reason) => panic!("{reason:?}: {said:?}"),
    }
}
