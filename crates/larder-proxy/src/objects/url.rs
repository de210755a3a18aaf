//! A URL as a person types it.
//!
//! In: text. Out: its parts, as a listener would have them, and the request of a visitor who sends no field.

use bytes::Bytes;
use http::{HeaderMap, Method, Version};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::{Target, absolute_form};

use super::error::ObjectsError;

/// A URL, taken apart as a listener would.
pub(super) struct Url {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) target: Target,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, ObjectsError> {
        let wrong = || ObjectsError::Url(text.to_owned());
        let without_fragment = text.split('#').next().unwrap_or_default();
        let raw = Bytes::copy_from_slice(without_fragment.as_bytes());
        let (scheme, authority, target) = absolute_form(&raw).map_err(|_| wrong())?;
        Ok(Self {
            scheme,
            authority: Authority::parse(authority, scheme).map_err(|_| wrong())?,
            target: Target::parse(target).map_err(|_| wrong())?,
        })
    }

    /// A GET for it from a visitor who sends no field.
    pub(super) fn request(&self) -> RequestHead {
        RequestHead {
            method: Method::GET,
            scheme: self.scheme,
            authority: self.authority.clone(),
            target: self.target.clone(),
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        }
    }
}
