//! Applications, and proxies of one site, for unit tests of what runs whole requests.
//!
//! They stand beside `testing`, which the tests of single steps use: a plan and a proxy name all steps.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use larder_http::time::Clock;
use larder_observe::{Diagnostics, Metrics, OriginId};
use larder_origin::{OriginSettings, OriginState, ServerAddress};
use larder_store::Store;

use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::settings::{OriginChoice, ProxySettings, SiteSettings};

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

/// A proxy with one site and these stores, which has recovered, and the plan of its workers.
pub(crate) fn proxy_of(
    site: SiteSettings,
    origins: Vec<OriginChoice>,
    stores: &[Arc<Store>],
    clock: &Clock,
) -> (Arc<Proxy>, Arc<Plan>) {
    let plan = Plan::new(ProxySettings {
        sites: vec![site],
        origins,
        stores: stores.to_vec(),
        trusted: Arc::new(|_| false),
        orphan_time: ProxySettings::ORPHAN_TIME,
        hit_for_miss: ProxySettings::HIT_FOR_MISS,
        purges: 16,
    });
    let diagnostics = Diagnostics::to(clock.clone(), std::io::sink()).unwrap();
    let metrics = Metrics::new(1, crate::vocabulary(), clock.now().wall, "0");
    let proxy = Proxy::new(clock.clone(), Arc::new(metrics), diagnostics);
    proxy.recover(stores, &|_| Default::default());
    (proxy, plan.unwrap())
}
