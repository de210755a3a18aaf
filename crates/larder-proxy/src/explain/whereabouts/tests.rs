//! Where things are told to lie and to go, for a rule with two stores.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use larder_cache::{CachePolicy, ExchangeTimes, Storability};
use larder_files::{FileStore, FilesSettings, TargetUri};
use larder_http::time::{Clock, Now};
use larder_observe::{Diagnostics, Metrics, RouteId};
use larder_store::{CacheKey, MemoryStoreSettings, StoredBody, StoredResponse};

use super::*;
use crate::explain::{Explanation, Question};
use crate::plan::Plan;
use crate::proxy::Proxy;
use crate::settings::{
    KeySettings, PlaceMatch, ProxySettings, RuleSettings, SiteSettings, StoreRule, TypePattern,
};
use crate::worker::Worker;

const MEMORY: MemoryStoreSettings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 };

/// `example.com`, which keeps pages in plain files and all else in memory.
struct Fixture {
    worker: Arc<Worker>,
    settings: Arc<RuleSettings>,
    files: Arc<Store>,
    tier: Arc<FileStore>,
    clock: Clock,
    folder: std::path::PathBuf,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.files.close();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Fixture {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("larder-where-{name}-{}", std::process::id()));
        let clock = Clock::default();
        let tier = FileStore::open(&FilesSettings::new(&folder, 1 << 20)).unwrap();
        let files = Store::new(&MEMORY, Some(Arc::clone(&tier)));
        let own = Store::in_memory(&MEMORY);
        let metrics = Arc::new(Metrics::new(1, crate::vocabulary(), clock.now().wall, "0"));
        let pages = PlaceMatch { types: vec![TypePattern::new("text/*")], ..PlaceMatch::default() };
        let settings = Arc::new(RuleSettings {
            store_id: metrics.cache("own"),
            rule_id: Default::default(),
            store_from: StoreFrom::Site,
            places: vec![StoreRule {
                what: pages,
                store: Arc::clone(&files),
                store_id: metrics.cache("pages"),
                rule_id: Default::default(),
            }],
            ..crate::testing::rule(&own)
        });
        let site = SiteSettings {
            name: "example.com".into(),
            route: RouteId::default(),
            hosts: vec!["example.com".to_owned()],
            origin: Some(0),
            root: None,
            websocket: false,
            tls: None,
            purge: crate::settings::Access::Closed,
            rules: Vec::new(),
            otherwise: Arc::clone(&settings),
        };
        let plan = Plan::new(ProxySettings {
            sites: vec![site],
            origins: vec![crate::testing_proxy::no_app()],
            stores: vec![own, Arc::clone(&files)],
            trusted: Arc::new(|_| false),
            orphan_time: ProxySettings::ORPHAN_TIME,
            hit_for_miss: ProxySettings::HIT_FOR_MISS,
            purges: 16,
        });
        let diagnostics = Diagnostics::to(clock.clone(), std::io::sink()).unwrap();
        let proxy = Proxy::new(clock.clone(), metrics, diagnostics);
        let worker = Arc::new(Worker::new(&proxy, 0, plan.unwrap()).unwrap());
        Self { worker, settings, files, tier, clock, folder }
    }

    async fn explain(&self, target: &str, running: bool) -> Explanation {
        let url = format!("http://example.com{target}");
        let question = Question::parse("GET", &url, [], Bytes::new(), true).unwrap();
        Arc::clone(&self.worker).explain(question, running).await.unwrap()
    }

    fn head(&self, said: &[(&'static str, &'static str)]) -> (HeaderMap, StoredHead) {
        let question = Question::parse("GET", "http://example.com/a", [], Bytes::new(), true).unwrap();
        let request = question.head;
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let fields: HeaderMap = said.iter().map(field).collect();
        let now: Now = self.clock.now();
        let times = ExchangeTimes { request: now, response: now };
        let policy = CachePolicy::default();
        let judged = larder_cache::storable(&request, StatusCode::OK, &fields, times, &policy);
        let Storability::Storable(freshness) = judged else { panic!("{judged:?}") };
        (fields.clone(), StoredHead::new(&request, StatusCode::OK, fields, freshness, &policy))
    }

    fn key(target: &str) -> CacheKey {
        let question = Question::parse("GET", &format!("http://example.com{target}"), [], Bytes::new(), true);
        crate::key::key(&question.unwrap().head, &KeySettings::default(), None, b"")
    }

    fn keep(&self, store: &Arc<Store>, target: &str, said: &[(&'static str, &'static str)]) {
        let key = Self::key(target);
        let body = StoredBody::new(vec![Bytes::from_static(b"0123")], store.reserve(100).unwrap());
        let room = store.reserve(1000).unwrap();
        let response = StoredResponse::new(Arc::new(self.head(said).1), Arc::new(body), 0, room);
        assert!(store.insert(&key, Arc::new(response), |_| true, || true));
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }

    async fn counted(&self) {
        self.until(|| self.tier.usage().is_counted).await;
    }

    /// Where a response with these fields would go.
    fn destination(&self, said: &[(&'static str, &'static str)], running: bool) -> Destination {
        let question = Question::parse("GET", "http://example.com/a", [], Bytes::new(), true).unwrap();
        let worker_plan = self.worker.worker_plan.load_full();
        let (_, site) = worker_plan.plan.router.site("example.com").unwrap();
        let (plan, settings) = (&worker_plan.plan, &self.settings);
        let (worker, now) = (&self.worker, self.clock.now());
        let walk = Walk { worker, plan, site, settings, question, versions: None, now, running };
        let (fields, head) = self.head(said);
        walk.destination((StatusCode::OK, &fields, Some(4)), &head).1
    }
}

const PAGE: (&str, &str) = ("content-type", "text/html");
const FRESH: (&str, &str) = ("cache-control", "max-age=60");

#[tokio::test]
async fn stores_are_told_in_the_order_in_which_they_are_looked_through() {
    let fixture = Fixture::new("order");
    let told = |stored: &crate::explain::Stored| {
        let each = stored.stores.iter();
        each.map(|store| (store.store.clone(), store.places.clone())).collect::<Vec<_>>()
    };
    let folder = fixture.folder.to_str().unwrap().to_owned();
    let memory = || super::MEMORY.to_owned();
    let expected = [("own".to_owned(), vec![memory()]), ("pages".to_owned(), vec![memory(), folder])];
    assert_eq!(told(&fixture.explain("/a", true).await.stored), expected);
    let alone = told(&fixture.explain("/a", false).await.stored);
    assert!(alone.iter().all(|(_, places)| places.is_empty()), "{alone:?}");
}

#[tokio::test]
async fn a_file_is_told_with_its_path_and_what_is_none_with_the_reason() {
    let fixture = Fixture::new("file");
    fixture.counted().await;
    fixture.keep(&fixture.files, "/page", &[PAGE, FRESH]);
    let path = fixture.folder.join("example.com/page");
    // A response leaves memory only after its file is complete.
    let key = Fixture::key("/page");
    let in_memory = || fixture.files.responses(&key, Duration::ZERO).0;
    fixture.until(|| path.exists() && in_memory().is_empty()).await;
    let uri = |target| TargetUri {
        scheme: larder_http::message::Scheme::Http,
        authority: "example.com",
        path: target,
        query: None,
    };
    assert!(fixture.tier.look_blocking(&uri("/page")).is_some());
    let told = fixture.explain("/page", true).await;
    let response = &told.stored.responses[0];
    assert_eq!((response.store.as_str(), &response.places[..]), ("pages", &[path.display().to_string()][..]));
    assert_eq!((told.stored.responses.len(), &response.held_back), (1, &None));
    assert!(response.selected && told.cache_status.starts_with("larder; hit"), "{told:?}");

    fixture.keep(&fixture.files, "/coded", &[PAGE, FRESH, ("content-encoding", "gzip")]);
    let told = fixture.explain("/coded", true).await;
    let response = &told.stored.responses[0];
    let why = response.held_back.as_ref().map(|why| why.token.as_str());
    assert_eq!((&response.places[..], why), (&["memory".to_owned()][..], Some("encoded")));

    fixture.keep(&fixture.settings.store, "/data", &[FRESH]);
    let told = fixture.explain("/data", true).await;
    let response = &told.stored.responses[0];
    assert_eq!((response.store.as_str(), &response.held_back), ("own", &None));
}

#[tokio::test]
async fn a_destination_is_told_with_who_says_so_and_what_keeps_it_from_the_files() {
    let fixture = Fixture::new("destination");
    fixture.counted().await;
    let own = fixture.destination(&[FRESH], true);
    assert_eq!((own.store.as_str(), own.entry, own.reason.token.as_str()), ("own", None, "site"));
    assert_eq!((own.places, own.held_back), (vec!["memory".to_owned()], None));
    let page = fixture.destination(&[PAGE, FRESH], true);
    assert_eq!((page.store.as_str(), page.entry, page.reason.token.as_str()), ("pages", Some(1), "place"));
    assert_eq!((&page.conditions[..], page.held_back), (&["type text/*".to_owned()][..], None));
    let varying = [PAGE, FRESH, ("vary", "x-a")];
    let token = |told: Destination| told.held_back.map(|why| why.token);
    assert_eq!(token(fixture.destination(&varying, true)), Some("varies".to_owned()));
    assert_eq!(token(fixture.destination(&varying, false)), None, "a config alone knows of no directory");
}
