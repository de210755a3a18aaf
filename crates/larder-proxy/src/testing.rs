//! Requests, rules, stored heads, and proxies of one store for unit tests.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_observe::{CacheId, Diagnostics, Metrics, OriginId};
use larder_origin::{OriginSettings, OriginState, ServerAddress};
use larder_store::Store;

use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::settings::{
    FieldEdits, KeySettings, OriginChoice, ProxySettings, RuleNumber, RuleSettings, SiteSettings,
};

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

/// The defaults, with this store.
pub(crate) fn rule(store: &Arc<Store>) -> RuleSettings {
    RuleSettings {
        number: RuleNumber::unique(),
        cache: true,
        policy: CachePolicy::default(),
        store_id: CacheId::default(),
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

/// The application `app`, at an address.
pub(crate) fn app(at: SocketAddr) -> OriginChoice {
    let address = ServerAddress::Http { host: at.ip().to_string(), port: at.port() };
    OriginChoice {
        name: "app".into(),
        settings: Arc::new(OriginSettings::new("app", vec![address])),
        state: OriginState::new(),
        id: OriginId::default(),
        hash_by: None,
        sticky: None,
        via: true,
    }
}

/// The application at an address where nothing listens: whatever asked would fail.
pub(crate) fn no_app() -> OriginChoice {
    app(SocketAddr::from(([127, 0, 0, 1], 1)))
}

/// A proxy with one site and one store, which has recovered, and the plan of its workers.
pub(crate) fn proxy_of(
    site: SiteSettings,
    origins: Vec<OriginChoice>,
    store: &Arc<Store>,
    clock: &Clock,
) -> (Arc<Proxy>, Arc<Plan>) {
    let plan = Plan::new(ProxySettings {
        sites: vec![site],
        origins,
        stores: vec![Arc::clone(store)],
        trusted: Arc::new(|_| false),
        orphan_time: ProxySettings::ORPHAN_TIME,
        hit_for_miss: ProxySettings::HIT_FOR_MISS,
        purges: 16,
    });
    let diagnostics = Diagnostics::to(clock.clone(), std::io::sink()).unwrap();
    let metrics = Metrics::new(1, crate::vocabulary(), clock.now().wall, "0");
    let proxy = Proxy::new(clock.clone(), Arc::new(metrics), diagnostics);
    proxy.recover(&[Arc::clone(store)], &|_| Default::default());
    (proxy, plan.unwrap())
}
