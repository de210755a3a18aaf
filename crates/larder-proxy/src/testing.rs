//! Requests, rules and stored heads for unit tests of single steps.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_observe::{CacheId, LoggedRule, RuleId};
use larder_store::Store;

use crate::settings::{FieldEdits, KeySettings, RuleNumber, RuleSettings};

/// `GET target` at `example.com`.
pub(crate) fn request(target: &str) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap(),
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

/// The defaults, with this store.
pub(crate) fn rule(store: &Arc<Store>) -> RuleSettings {
    RuleSettings {
        number: RuleNumber::unique(),
        label: "a rule".into(),
        logged: LoggedRule::default(),
        line: None,
        cache: true,
        policy: CachePolicy::default(),
        store_id: CacheId::default(),
        rule_id: RuleId::default(),
        store: Arc::clone(store),
        store_from: Default::default(),
        places: Vec::new(),
        refresh_ahead: false,
        invalidate: Some(Default::default()),
        collapse_wait: None,
        min_uses: 1,
        fetches_heads: true,
        versions: None,
        key: KeySettings::default(),
        debug: false,
        request: FieldEdits::default(),
        response: FieldEdits::default(),
        fragments: Arc::default(),
    }
}
