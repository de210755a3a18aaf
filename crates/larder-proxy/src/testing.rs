//! Requests and stored heads for unit tests.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;

/// `GET target` at `example.com`.
pub(crate) fn request(target: &'static str) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(target.as_bytes())).unwrap(),
        version: Version::HTTP_11,
        fields: HeaderMap::new(),
    }
}

/// A stored 200 to `GET target` with these fields.
pub(crate) fn stored_head(target: &'static str, fields: &[(&'static str, &str)]) -> StoredHead {
    let fields = fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    let freshness = Freshness {
        lifetime: std::time::Duration::from_secs(60),
        source: LifetimeSource::MaxAge,
        initial_age: std::time::Duration::ZERO,
        received: Clock::default().now(),
        no_cache: false,
    };
    let (request, policy) = (request(target), CachePolicy::default());
    StoredHead::new(&request, StatusCode::OK, fields.collect(), freshness, &policy)
}
