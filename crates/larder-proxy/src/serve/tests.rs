//! What requests tell the fleet of this larder, and what they say of its lease; the fleet is one that only takes note.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use larder_cache::purge::{Mode, Predicate, What};
use larder_http::body::Body;
use larder_http::message::Peer;
use larder_http::time::Clock;
use larder_http::trailers;
use larder_observe::RouteId;
use larder_store::{MemoryStoreSettings, Store};
use larder_testkit::origin::{Answer, Origin, Seen};

use super::*;
use crate::fleet_of_one::{FleetOfOne, Propagated};
use crate::settings::{Access, AccessRules, Secret, SiteSettings};

const LIMIT: Duration = Duration::from_secs(20);
const TOKEN: &str = "Bearer sesame";

/// A larder in front of an application.
pub(super) struct Fixture {
    pub(super) worker: Arc<Worker>,
    fleet: FleetOfOne,
    _origin: Origin,
}

impl Fixture {
    /// The application may take the lease, or bring it back.
    pub(super) fn new(choose: impl Fn(&Seen, &AtomicBool) -> Answer + Send + Sync + 'static) -> Self {
        let has_lease = Arc::new(AtomicBool::new(true));
        let lease = Arc::clone(&has_lease);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let origin = Origin::answering(any, LIMIT, move |seen| choose(seen, &lease)).unwrap();
        let store = Store::in_memory(&MemoryStoreSettings { memory: 4 << 20, max_object: 1 << 20 });
        let access = AccessRules {
            from: None,
            token: Some(Secret::new(TOKEN.trim_start_matches("Bearer "))),
            header: None,
            soft: false,
            location: None,
            patterns: false,
            absent: None,
        };
        let site = SiteSettings {
            name: "all".into(),
            route: RouteId::default(),
            hosts: Vec::new(),
            origin: Some(0),
            root: None,
            websocket: false,
            tls: None,
            purge: Access::Open(Arc::new(access)),
            rules: Vec::new(),
            otherwise: Arc::new(crate::testing::rule(&store)),
        };
        let clock = Clock::default();
        let app = crate::testing_proxy::app(origin.addr());
        let (proxy, plan) =
            crate::testing_proxy::proxy_of(site, vec![app], std::slice::from_ref(&store), &clock);
        let of_fleet = Arc::downgrade(&proxy);
        let fleet = FleetOfOne::new(&has_lease, move || of_fleet.upgrade().unwrap().last_invalidation());
        proxy.join(Arc::new(fleet.clone()));
        let worker = Arc::new(Worker::new(&proxy, 0, plan).unwrap());
        Self { worker, fleet, _origin: origin }
    }

    /// The status of an answer, and what it says of the cache.
    pub(super) async fn ask(
        &self,
        method: Method,
        target: &'static str,
        fields: &[(&'static str, &str)],
    ) -> (u16, String) {
        let mut head = RequestHead { method, ..crate::testing::request(target) };
        for (name, value) in fields {
            head.fields.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let request = Request {
            head,
            body: Body::Empty,
            websocket: false,
            trailers: trailers::Wish::default(),
            peer: Peer::clear(nobody, nobody),
        };
        let serving = serve(&self.worker, request, &Interims::default());
        let (response, _) = tokio::time::timeout(LIMIT, serving).await.unwrap();
        let status = response.head.status.as_u16();
        let fields = response.head.into_fields();
        (status, fields["cache-status"].to_str().unwrap().to_owned())
    }
}

pub(super) fn page(_: &Seen, _: &AtomicBool) -> Answer {
    Answer::new(200, &["Cache-Control: max-age=60", "ETag: \"a\""], "page")
}

/// What the fleet was told since it was asked last: the URL of each entry.
fn told(fixture: &Fixture) -> Vec<String> {
    let url = |told: Propagated| {
        // Where the entry is read back before that, a fetch from before it counts as later.
        assert!(told.last > told.announced, "it is in force first: {told:?}");
        match &told.predicates[..] {
            [Predicate { what: What::Url { authority, target }, mode: Mode::Hard, .. }] => {
                format!("{authority}{target}")
            }
            _ => panic!("{told:?}"),
        }
    };
    fixture.fleet.told.lock().drain(..).map(url).collect()
}

#[tokio::test]
async fn what_an_unsafe_request_invalidates_is_in_force_before_the_fleet_is_told() {
    let fixture = Fixture::new(page);
    fixture.ask(Method::GET, "/a", &[]).await;
    assert_eq!(fixture.ask(Method::POST, "/a", &[]).await.0, 200);
    assert_eq!(told(&fixture), ["example.com/a"]);
}

#[tokio::test]
async fn what_is_fetched_anew_is_in_force_before_the_fleet_is_told() {
    let fixture = Fixture::new(page);
    fixture.ask(Method::GET, "/a", &[]).await;
    for wish in [("cache-control", "no-cache"), ("x-refresh", "1")] {
        fixture.ask(Method::GET, "/a", &[wish]).await;
        assert_eq!(told(&fixture), Vec::<String>::new(), "by one who may not purge");
        fixture.ask(Method::GET, "/a", &[wish, ("authorization", TOKEN)]).await;
        assert_eq!(told(&fixture), ["example.com/a"], "{wish:?}");
    }
}

#[tokio::test]
async fn the_lease_is_told_of_as_it_was_when_what_is_stored_was_judged() {
    // The lease comes and goes while the origin is asked.
    let fixture = Fixture::new(|seen, has_lease| {
        has_lease.fetch_xor(true, Ordering::SeqCst);
        page(seen, has_lease)
    });
    let ask = async || {
        let (status, said) = fixture.ask(Method::GET, "/a", &[]).await;
        assert_eq!(status, 200);
        said.rsplit("detail=").next().unwrap().to_owned()
    };
    ask().await;
    assert!(!fixture.fleet.has_lease.load(Ordering::SeqCst));
    assert_eq!(ask().await, "no-lease");
    assert!(fixture.fleet.has_lease.load(Ordering::SeqCst));
    // With the lease everything is known again that was purged meanwhile.
    fixture.fleet.has_lease.store(false, Ordering::SeqCst);
    assert!(!fixture.worker.proxy.heed_lease());
    fixture.fleet.has_lease.store(true, Ordering::SeqCst);
    assert!(fixture.ask(Method::GET, "/a", &[]).await.1.contains("; hit"));
    // Purges may have been missed for another reason.
    fixture.worker.proxy.doubt_stored();
    assert_eq!(ask().await, "below-floor");
}
