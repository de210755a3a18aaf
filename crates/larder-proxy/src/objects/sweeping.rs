//! Walks through real stores: what a purge has ended goes, is counted, and its predicate retires.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_cache::purge::{Mode, Scope, Selector};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead, Verdict};
use larder_disk::engine::{DiskSettings, DiskSize};
use larder_disk::{Disks, Layout};
use larder_files::{FileStore, FilesSettings};
use larder_http::time::Clock;
use larder_store::{MemoryStoreSettings, Store, StoredBody, StoredResponse};

use super::sweep::walk;
use super::tests::Fixture;
use super::*;
use crate::collapse::FlightRequest;
use crate::invalidation::{Judge, PredicateCounts};
use crate::key;
use crate::lookup::{Lookup, LookupResult, Miss};
use crate::purges::{AuditEntry, Dialect, Order, Sender};
use crate::settings::{KeySettings, RuleNumber};

pub(super) const SETTINGS: MemoryStoreSettings = MemoryStoreSettings { memory: 8 << 20, max_object: 1 << 20 };

/// A store with `disks` disks below a directory.
pub(super) fn on_disks(folder: &Path, disks: usize, clock: &Clock) -> Arc<Store> {
    let disk = |number: usize| DiskSettings {
        path: folder.join(number.to_string()),
        size: DiskSize::Bytes(64 << 20),
        idle: None,
        files: Default::default(),
    };
    let layout = if disks > 1 { Layout::Mirror } else { Layout::Single };
    Store::new(&SETTINGS, Some(Disks::unopened(layout, (0..disks).map(disk).collect(), 1 << 20, clock)))
}

/// A store that keeps plain files in a directory.
fn in_files(folder: &Path) -> Arc<Store> {
    let files = FileStore::open(&FilesSettings::new(folder, 1 << 30)).unwrap();
    while !files.usage().is_counted {
        std::thread::yield_now();
    }
    Store::new(&SETTINGS, Some(files))
}

/// A larder with this store, as it is after a start.
pub(super) fn started(store: Arc<Store>, clock: Clock) -> Fixture {
    Fixture::of(vec![("store".to_owned(), store)], clock, tempfile::tempdir().unwrap())
}

/// Stores a response with these fields, fetched now.
fn store(fixture: &Fixture, target: &str, fields: &[(&'static str, &'static str)]) {
    put(fixture, &fixture.stores[0].1, target, fields);
}

/// The same in this store.
pub(super) fn put(fixture: &Fixture, store: &Store, target: &str, fields: &[(&'static str, &'static str)]) {
    let Url { authority, target, .. } = Url::parse(&format!("http://example.com{target}")).unwrap();
    let mut head = crate::testing::request("/");
    (head.authority, head.target) = (authority, target);
    let mut said = HeaderMap::new();
    let all = [("cache-control", "max-age=60"), ("content-type", "text/plain")];
    for (name, value) in all.iter().chain(fields) {
        said.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let now = fixture.clock.now();
    let times = ExchangeTimes { request: now, response: now };
    let policy = CachePolicy::default();
    let storable = larder_cache::storable(&head, StatusCode::OK, &said, times, &policy);
    let Storability::Storable(freshness) = storable else { panic!("{storable:?}") };
    let stored = Arc::new(StoredHead::new(&head, StatusCode::OK, said, freshness, &policy));
    let key = key::key(&head, &KeySettings::default(), None, b"");
    let room = || store.reserve(4096).unwrap();
    let body = StoredBody::new(vec![Bytes::from_static(b"body")], room());
    let number = fixture.worker.proxy.invalidations.current();
    let response = StoredResponse::new(stored, Arc::new(body), number, room());
    assert!(store.insert(&key, Arc::new(response), |_| false, || true));
}

pub(super) async fn purge(fixture: &Fixture, what: Selector, mode: Mode) -> String {
    let order = Order {
        wait: None,
        selectors: vec![what],
        mode,
        scope: Arc::new(Scope::any()),
        here: Vec::new(),
        takes_patterns: true,
    };
    let sender = Sender { dialect: Dialect::Api, peer: None, by: "admin" };
    fixture.worker.purge(&order, sender).await.unwrap().id
}

pub(super) fn tag(name: &str) -> Selector {
    Selector::Tag(name.as_bytes().into())
}

fn walked(fixture: &Fixture, id: &str) -> (AuditEntry, PredicateCounts) {
    walk(&Arc::downgrade(&fixture.worker));
    (fixture.worker.purge_of(id).unwrap(), fixture.worker.predicates())
}

fn objects(fixture: &Fixture) -> u64 {
    fixture.stores[0].1.figures().iter().map(|figures| figures.objects).sum()
}

#[tokio::test]
async fn what_lies_on_disks_goes_is_counted_and_its_predicates_retire() {
    for disks in [1, 2] {
        let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
        let filled = started(on_disks(folder.path(), disks, &clock), clock.clone());
        for k in 0..300 {
            store(&filled, &format!("/a/{k}"), &[("surrogate-key", "a")]);
        }
        for k in 0..5 {
            store(&filled, &format!("/b/{k}"), &[("surrogate-key", "b"), ("etag", "\"b\"")]);
        }
        assert!(filled.stores[0].1.settle());
        filled.stores[0].1.close();
        drop(filled);
        // Nothing is in memory now.
        let fixture = started(on_disks(folder.path(), disks, &clock), clock.clone());
        assert_eq!(objects(&fixture), 305 * disks as u64);
        let soft = purge(&fixture, tag("b"), Mode::Soft).await;
        let hard = purge(&fixture, tag("a"), Mode::Hard).await;
        assert_eq!(fixture.worker.purge_of(&hard).unwrap().removed, 0, "nothing is looked for");
        let (receipt, counts) = walked(&fixture, &hard);
        assert_eq!((receipt.removed, objects(&fixture)), (300, 5 * disks as u64));
        assert_eq!(fixture.worker.purge_of(&soft).unwrap().softened, 5 * disks as u64);
        assert_eq!((counts.names, counts.retired), (1, 2), "what is stale by it stays stale");
        assert!(fixture.worker.proxy.purge_heads() >= 305);
        let (receipt, _) = walked(&fixture, &soft);
        assert_eq!(receipt.softened, 5 * disks as u64, "once");
        // By a pattern, which has to be compared with each.
        let pattern = larder_cache::purge::PatternText {
            target: Some(larder_cache::purge::Expression { text: "^/b/[0-9]$".into(), at_start: false }),
            ..Default::default()
        };
        let id = purge(&fixture, Selector::Pattern(pattern), Mode::Hard).await;
        assert_eq!(fixture.worker.predicates().patterns, 1);
        let (receipt, counts) = walked(&fixture, &id);
        assert_eq!((receipt.removed, objects(&fixture)), (5, 0));
        assert_eq!((counts.names, counts.patterns), (0, 0));
        fixture.stores[0].1.close();
    }
}

#[tokio::test]
async fn a_predicate_outlives_the_fetches_from_before_it() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(on_disks(folder.path(), 1, &clock), clock.clone());
    let flight = fetching(&fixture);
    let id = purge(&fixture, tag("a"), Mode::Hard).await;
    assert_eq!(walked(&fixture, &id).1.names, 2);
    drop(flight);
    assert_eq!(walked(&fixture, &id).1.names, 0);
    fixture.stores[0].1.close();
}

/// A fetch that is under way until it is dropped.
fn fetching(fixture: &Fixture) -> impl Drop {
    let (key, request) = (CacheKey::new("example.com", "/"), Arc::new(crate::testing::request("/")));
    let invalidations = &fixture.worker.proxy.invalidations;
    fixture.worker.proxy.flights.alone(FlightRequest {
        key: &key,
        rule: RuleNumber::unique(),
        request: &request,
        expected: None,
        wants_content: true,
        number: &|| invalidations.current(),
        arrived: invalidations.current(),
        begun: fixture.clock.now(),
    })
}

#[tokio::test]
async fn what_stays_is_counted_once_however_long_a_fetch_takes() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(in_files(folder.path()), clock.clone());
    store(&fixture, "/a", &[("surrogate-key", "a"), ("etag", "\"a\"")]);
    assert!(fixture.stores[0].1.settle());
    std::fs::write(folder.path().join("example.com/hand"), "by hand").unwrap();
    let flight = fetching(&fixture);
    let first = purge(&fixture, tag("a"), Mode::Soft).await;
    for _ in 0..3 {
        let (receipt, _) = walked(&fixture, &first);
        assert_eq!((receipt.softened, receipt.by_hand), (1, 1));
    }
    // The next purge is counted by the next walk, and the first is not again.
    let second = purge(&fixture, tag("a"), Mode::Soft).await;
    for _ in 0..3 {
        let counted = [&first, &second].map(|id| {
            let (receipt, _) = walked(&fixture, id);
            (receipt.softened, receipt.by_hand)
        });
        assert_eq!(counted, [(1, 1); 2]);
    }
    drop(flight);
    fixture.stores[0].1.close();
}

#[tokio::test]
async fn what_was_found_before_a_walk_is_not_good_after_it() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(on_disks(folder.path(), 1, &clock), clock.clone());
    for target in ["/a", "/b"] {
        store(&fixture, target, &[("surrogate-key", "a")]);
    }
    let invalidations = &fixture.worker.proxy.invalidations;
    let of = |target: &str| {
        let mut head = crate::testing::request("/");
        let Url { authority, target, .. } = Url::parse(&format!("http://example.com{target}")).unwrap();
        (head.authority, head.target) = (authority, target);
        key::key(&head, &KeySettings::default(), None, b"")
    };
    let found = |target| fixture.stores[0].1.responses(&of(target), clock.now().monotonic).0;
    // Two requests have found them, and are held up before they judge them.
    let (since, [one, other]) = (invalidations.forgotten(), ["/a", "/b"].map(found));
    let id = purge(&fixture, tag("a"), Mode::Hard).await;
    let judged =
        |target, response: &StoredResponse, since| invalidations.verdict(&of(target), response, since);
    assert_eq!(judged("/a", &one[0], since), Some(Verdict::Gone));
    assert_eq!(walked(&fixture, &id).1.names, 0);
    for _ in 0..2 {
        assert_eq!([judged("/a", &one[0], since), judged("/b", &other[0], since)], [None; 2]);
    }
    // What is found from now on is newer than the purge, or was met by the walk.
    assert_eq!((found("/a").len(), found("/b").len()), (0, 0));
    store(&fixture, "/a", &[("surrogate-key", "a")]);
    assert_eq!(judged("/a", &found("/a")[0], since), Some(Verdict::Good));
    fixture.stores[0].1.close();
}

/// A request waits for a file or a disk meanwhile.
#[tokio::test]
async fn what_was_looked_for_before_a_purge_of_something_else_went_is_found_and_stays() {
    for is_on_disk in [false, true] {
        let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
        let opened = || if is_on_disk { on_disks(folder.path(), 1, &clock) } else { in_files(folder.path()) };
        let filled = started(opened(), clock.clone());
        store(&filled, "/b", &[("surrogate-key", "b")]);
        assert!(filled.stores[0].1.settle());
        filled.stores[0].1.close();
        drop(filled);
        // Nothing is in memory now.
        let fixture = started(opened(), clock.clone());
        let invalidations = &fixture.worker.proxy.invalidations;
        let mut request = crate::testing::request("/b");
        request.authority = Url::parse("http://example.com/b").unwrap().authority;
        let rule = crate::testing::rule(&fixture.stores[0].1);
        let key = key::key(&request, &rule.key, None, b"");
        let (now, judge) = (clock.now(), Judge::new(invalidations, None));
        let lookup = Lookup { rule: &rule, hot: None, key: &key, request: &request, judge };
        let id = purge(&fixture, tag("a"), Mode::Hard).await;
        assert_eq!(walked(&fixture, &id).1.names, 0);
        assert!(judge.is_outrun() && judge.is_in_doubt(0));
        let looked = lookup.look_up(now);
        assert!(matches!(looked, LookupResult::Miss(Miss { may_recall: true, .. })), "{looked:?}");
        let recalled = lookup.recall(now).await;
        assert!(
            matches!(recalled, Some(LookupResult::Fresh { .. })),
            "on a disk: {is_on_disk}, {recalled:?}"
        );
        assert!(fixture.stores[0].1.settle());
        assert_eq!(objects(&fixture), 1, "on a disk: {is_on_disk}");
        fixture.stores[0].1.close();
    }
}

#[tokio::test]
async fn a_walk_is_due_after_a_purge_and_not_more_often_than_every_ten_seconds() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(on_disks(folder.path(), 1, &clock), clock.clone());
    let is_due = || fixture.worker.is_walk_due();
    assert!(!is_due(), "nothing was purged");
    let id = purge(&fixture, tag("a"), Mode::Hard).await;
    assert!(is_due());
    walked(&fixture, &id);
    assert!(!is_due());
    purge(&fixture, tag("b"), Mode::Hard).await;
    assert!(!is_due(), "a moment ago");
    clock.advance(Duration::from_secs(10));
    assert!(is_due());
    walked(&fixture, &id);
    clock.advance(Duration::from_secs(3600));
    assert!(!is_due(), "nothing is left");
    fixture.stores[0].1.close();
}

#[tokio::test]
async fn plain_files_go_by_their_fields_and_what_people_put_there_stays() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(in_files(folder.path()), clock.clone());
    store(&fixture, "/a", &[("surrogate-key", "a")]);
    store(&fixture, "/b", &[("surrogate-key", "b")]);
    assert!(fixture.stores[0].1.settle());
    let at = |name: &str| folder.path().join("example.com").join(name);
    std::fs::write(at("hand"), "by hand").unwrap();
    assert!(at("a").exists() && at("b").exists());
    let id = purge(&fixture, tag("a"), Mode::Hard).await;
    let (receipt, counts) = walked(&fixture, &id);
    assert!(!at("a").exists() && at("b").exists() && at("hand").exists());
    assert_eq!((receipt.removed, receipt.by_hand, counts.names), (1, 1, 0));
    let (receipt, _) = walked(&fixture, &id);
    assert_eq!(receipt.by_hand, 1, "once");
    fixture.stores[0].1.close();
}

#[tokio::test]
async fn a_hard_purge_of_a_prefix_takes_the_directory_of_plain_files_before_it_is_answered() {
    let (clock, folder) = (Clock::default(), tempfile::tempdir().unwrap());
    let fixture = started(in_files(folder.path()), clock.clone());
    store(&fixture, "/img/a", &[]);
    store(&fixture, "/b", &[]);
    assert!(fixture.stores[0].1.settle());
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("example.com/img/hand"), "by hand").unwrap();
    std::fs::create_dir_all(at("other.org/img")).unwrap();
    std::fs::write(at("other.org/img/hand"), "by hand").unwrap();
    let prefix = |host: Option<&str>| Selector::Prefix { host: host.map(Into::into), path: "/img/".into() };
    purge(&fixture, prefix(Some("example.com")), Mode::Soft).await;
    assert!(at("example.com/img/hand").exists(), "soft removes nothing");
    let id = purge(&fixture, prefix(Some("example.com")), Mode::Hard).await;
    assert!(!at("example.com/img").exists() && at("example.com/b").exists());
    assert!(at("other.org/img/hand").exists(), "another host");
    assert!(fixture.stores[0].1.settle() && fixture.stores[0].1.settle());
    assert_eq!(fixture.worker.purge_of(&id).unwrap().removed, 2);
    purge(&fixture, Selector::All, Mode::Hard).await;
    assert!(!at("example.com").exists() && !at("other.org").exists());
    fixture.stores[0].1.close();
}
