//! What is stored under one site whose rule normalises queries: found, listed and purged; also where a disk does not confirm.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::purge::{Mode, Scope, Selector};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead};
use larder_disk::engine::{Disk, DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_http::time::Clock;
use larder_observe::{Label as _, RouteId};
use larder_store::{MemoryStoreSettings, Store, StoredBody, StoredResponse};

use super::*;
use crate::invalidation::InvalidationKind;
use crate::key;
use crate::purges::{AuditEntry, Dialect, Order, PurgeError, Sender};
use crate::settings::{KeySettings, QueryParts, RuleSettings, SiteSettings};

pub(super) struct Fixture {
    pub(super) worker: Arc<Worker>,
    pub(super) stores: Stores,
    pub(super) clock: Clock,
    _folder: tempfile::TempDir,
}

impl Fixture {
    /// Purges a URL, as the admin address does.
    async fn purge(&self, url: &str) -> Result<AuditEntry, PurgeError> {
        let order = Order {
            wait: None,
            selectors: vec![Selector::Url(url.into())],
            mode: Mode::Hard,
            scope: Arc::new(Scope::any()),
            here: Vec::new(),
            takes_patterns: true,
        };
        self.worker.purge(&order, Sender { dialect: Dialect::Api, peer: None, by: "admin" }).await
    }

    /// Two stores, `memory` and `disk`.
    fn new() -> Self {
        let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
        let settings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 };
        let path = folder.path().join("d1");
        let disk = Disk::open(DiskSettings {
            path,
            size: DiskSize::Bytes(64 << 20),
            idle: None,
            files: Default::default(),
        })
        .unwrap();
        let disks = Disks::new(Layout::Single, vec![disk], 1 << 20);
        let stores = vec![
            ("memory".to_owned(), Store::in_memory(&settings)),
            ("disk".to_owned(), Store::new(&settings, Some(disks))),
        ];
        Self::of(stores, clock, folder)
    }

    /// These stores, of which the first is the site's.
    pub(super) fn of(stores: Stores, clock: Clock, folder: tempfile::TempDir) -> Self {
        let key = KeySettings {
            query: QueryParts::Except(vec!["utm_*".to_owned()]),
            cookies: vec!["lang".to_owned()],
            ..KeySettings::default()
        };
        let rule = RuleSettings { key, ..crate::testing::rule(&stores[0].1) };
        let site = SiteSettings {
            name: "example.com".into(),
            route: RouteId::default(),
            hosts: vec!["example.com".to_owned()],
            origin: None,
            root: None,
            websocket: false,
            tls: None,
            purge: crate::settings::Access::Closed,
            rules: Vec::new(),
            otherwise: Arc::new(rule),
        };
        let all: Vec<_> = stores.iter().map(|(_, store)| Arc::clone(store)).collect();
        let (proxy, plan) = crate::testing_proxy::proxy_of(site, Vec::new(), &all, &clock);
        let worker = Arc::new(Worker::new(&proxy, 0, plan).unwrap());
        Self { worker, stores, clock, _folder: folder }
    }

    /// Stores `body` under a URL in one of the stores, made for a request with these fields.
    fn keep(&self, store: usize, url: &str, cookie: Option<&'static str>, vary: bool, body: &'static str) {
        let Url { scheme, authority, target } = Url::parse(url).unwrap();
        let mut head = crate::testing::request("/");
        (head.scheme, head.authority, head.target) = (scheme, authority, target);
        head.fields.extend(cookie.map(|value| (http::header::COOKIE, HeaderValue::from_static(value))));
        let mut said = HeaderMap::new();
        said.insert("cache-control", HeaderValue::from_static("max-age=60"));
        said.insert("content-type", HeaderValue::from_static("text/plain"));
        if vary {
            said.insert("vary", HeaderValue::from_static("accept"));
            head.fields.insert("accept", HeaderValue::from_static("text/plain"));
        }
        let now = self.clock.now();
        let times = ExchangeTimes { request: now, response: now };
        let policy = CachePolicy::default();
        let storable = larder_cache::storable(&head, StatusCode::OK, &said, times, &policy);
        let Storability::Storable(freshness) = storable else { panic!("{storable:?}") };
        let stored = Arc::new(StoredHead::new(&head, StatusCode::OK, said, freshness, &policy));
        let settings = KeySettings { cookies: vec!["lang".to_owned()], ..KeySettings::default() };
        let key = key::key(&head, &settings, None, b"");
        let store = &self.stores[store].1;
        let room = || store.reserve(4096).unwrap();
        let body = StoredBody::new(vec![Bytes::from_static(body.as_bytes())], room());
        let number = self.worker.proxy.invalidations.current();
        let response = StoredResponse::new(stored, Arc::new(body), number, room());
        assert!(store.insert(&key, Arc::new(response), |_| false, || true));
    }

    /// What is being written while a list is read may be missing from it.
    fn settle(&self) {
        let until = std::time::Instant::now() + Duration::from_secs(20);
        let queued = |store: &Store| {
            let mut queued = 0;
            for figures in store.figures() {
                let is_it = |name: &str| name == "larder_disk_queued_objects";
                (figures.for_each)(&mut |name, _, _, value| queued += if is_it(name) { value } else { 0 });
            }
            queued > 0
        };
        while self.stores.iter().any(|(_, store)| queued(store)) {
            assert!(std::time::Instant::now() < until, "it is not written");
            std::thread::yield_now();
        }
    }

    async fn list(&self, prefix: &str, limit: usize) -> Vec<StoredObject> {
        let (mut met, mut cursor) = (Vec::new(), None);
        for _ in 0..10_000 {
            let asked = Listing { prefix: prefix.to_owned(), cursor, limit, ..Listing::default() };
            let mut page = self.worker.objects(self.stores.clone(), asked).await.unwrap();
            assert!(page.objects.len() <= limit, "{} of {limit}", page.objects.len());
            met.append(&mut page.objects);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return met,
            }
        }
        panic!("it does not end");
    }
}

#[tokio::test]
async fn everything_in_all_stores_is_listed_in_pages_of_any_size() {
    let fixture = Fixture::new();
    for number in 0..40 {
        fixture.keep(number % 2, &format!("http://example.com/{number}"), None, false, "x");
    }
    fixture.keep(0, "https://example.com/s", Some("lang=de"), true, "x");
    fixture.settle();
    for limit in [1, 7, 1000] {
        assert_eq!(fixture.list("", limit).await.len(), 41, "{limit}");
    }
    let [secure] = &fixture.list("https://example.com", 9).await[..] else { panic!("not one") };
    assert_eq!(
        (secure.url.as_str(), secure.content_type.as_deref()),
        ("https://example.com/s", Some("text/plain"))
    );
    assert_eq!(secure.variant, [Some("de".to_owned())]);
    assert_eq!(secure.vary, [Varying { name: "accept".to_owned(), value: Some("text/plain".to_owned()) }]);
    assert!(secure.fields.is_empty() && secure.ttl_seconds > 50);
    let asked = |cursor: &str| Listing { cursor: Some(cursor.to_owned()), limit: 9, ..Listing::default() };
    for cursor in ["", "memory", "none:", "memory:x", "disk:m0"] {
        let refused = fixture.worker.objects(fixture.stores.clone(), asked(cursor)).await;
        assert!(matches!(refused, Err(ObjectsError::Cursor(_))), "{cursor}");
    }
}

#[test]
fn a_prefix_is_a_host_or_the_beginning_of_a_url() {
    for (prefix, base, is_of) in [
        ("", "a.test/x", true),
        ("a.test", "a.test/x", true),
        ("A.Test", "a.test:81/x", true),
        ("a.test", "a.test.example/x", false),
        ("a.tes", "a.test/x", false),
        ("a.test/x", "a.test/xy?z", true),
        ("http://a.test/x", "a.test/x", true),
        ("HTTPS://A.test/X", "a.test/X", true),
        ("http://a.test/X", "a.test/x", false),
        ("http://", "a.test/x", true),
        ("/x", "a.test/x", false),
        ("*", "a.test/x", true),
        ("a.tes*", "a.test/x", true),
        ("a.test*", "a.test.example/x", true),
        ("http://a.test/*", "a.test/x", true),
        ("a.test/x*", "a.test/y", false),
    ] {
        assert_eq!(Prefix::parse(prefix).is_of(base.as_bytes()), is_of, "{prefix} {base}");
    }
}

#[tokio::test]
async fn a_purge_takes_every_form_of_a_url_out_of_every_store() {
    let fixture = Fixture::new();
    // Another version of the rule may have keyed the query as it came.
    for (store, url) in [
        (0, "http://example.com/a"),
        (1, "https://example.com/a"),
        (0, "http://example.com/a?utm_x=1"),
        (1, "http://example.com/b"),
    ] {
        fixture.keep(store, url, None, false, "x");
    }
    fixture.keep(0, "http://example.com/a", Some("lang=fr"), false, "x");
    let told = fixture.worker.object(fixture.stores.clone(), "http://example.com/a?utm_x=1").await.unwrap();
    assert_eq!(told.responses.len(), 3, "{told:?}");
    assert!(told.responses.iter().all(|response| !response.fields.is_empty()));
    let purged = fixture.purge("http://example.com/a?utm_x=1#top").await.unwrap();
    assert_eq!(purged.removed, 4);
    assert_eq!(fixture.list("", 9).await.len(), 1);
    let gone = fixture.worker.object(fixture.stores.clone(), "http://example.com/a").await;
    assert!(matches!(gone, Err(ObjectsError::NotStored(_))));
    assert_eq!(fixture.purge("http://unknown.example/a").await.unwrap().removed, 0);
    for url in ["", "/a", "example.com/a", "ftp://example.com/", "http://a b/"] {
        assert!(matches!(fixture.purge(url).await, Err(PurgeError::Wrong(_))), "{url}");
    }
}

#[tokio::test]
async fn a_purge_by_the_admin_address_counts_beside_the_workers() {
    let fixture = Fixture::new();
    let kind = InvalidationKind::Purge;
    // A worker counts on its own thread, and no other thread may write where it does.
    std::thread::scope(|scope| scope.spawn(|| fixture.worker.metrics.invalidated(&kind)).join().unwrap());
    fixture.purge("http://example.com/a").await.unwrap();
    let counted = fixture.worker.proxy.metrics.snapshot().invalidations;
    let purges = counted.iter().find(|count| count.token == kind.token());
    assert_eq!(purges.map(|count| count.count), Some(2), "{counted:?}");
}

#[tokio::test]
async fn a_purge_that_a_disk_does_not_confirm_fails_and_says_that_it_has_gone_all_the_same() {
    let fixture = Fixture::new();
    fixture.keep(0, "http://example.com/a", None, false, "x");
    fixture.stores[1].1.close();
    let failed = fixture.purge("http://example.com/a").await;
    let Err(PurgeError::NotHeld { receipt, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!((receipt.removed, receipt.held), (1, Some(false)));
    assert!(fixture.list("", 9).await.is_empty());
}

#[tokio::test]
async fn a_body_is_chosen_by_its_number_and_the_newest_is_the_first() {
    let fixture = Fixture::new();
    fixture.keep(0, "http://example.com/a", None, false, "old");
    fixture.clock.advance(Duration::from_secs(1));
    fixture.keep(1, "http://example.com/a", None, true, "new");
    let body = async |number| {
        let body = fixture.worker.body(fixture.stores.clone(), "http://example.com/a", number).await;
        body.map(|body| match body {
            Body::Pieces { owner, .. } => String::from_utf8(owner.pieces().concat()).unwrap(),
            other => panic!("{other:?}"),
        })
    };
    assert_eq!((body(1).await.unwrap().as_str(), body(2).await.unwrap().as_str()), ("new", "old"));
    for number in [0, 3] {
        let none = body(number).await;
        assert!(matches!(none, Err(ObjectsError::NoSuchResponse { stored: 2, .. })), "{none:?}");
    }
}
