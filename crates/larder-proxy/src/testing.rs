//! Requests for unit tests.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;

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
