//! When two looks came to the same.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_cache::{ExchangeTimes, Storability, StoredHead};
use larder_http::time::Clock;
use larder_store::{MemoryStoreSettings, StoredBody};

use super::*;
use crate::invalidation::Invalidations;

/// The same response each time, as a file gives it.
fn read(store: &Store, now: Now, number: u64) -> Arc<StoredResponse> {
    let (request, policy) = (crate::testing::request("/"), CachePolicy::default());
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", HeaderValue::from_static("max-age=60"));
    let times = ExchangeTimes { request: now, response: now };
    let judged = larder_cache::storable(&request, StatusCode::OK, &fields, times, &policy);
    let Storability::Storable(freshness) = judged else { panic!("{judged:?}") };
    let head = StoredHead::new(&request, StatusCode::OK, fields, freshness, &policy);
    let body = StoredBody::new(vec![Bytes::from_static(b"0123")], store.reserve(4).unwrap());
    let room = store.reserve(0).unwrap();
    Arc::new(StoredResponse::new(Arc::new(head), Arc::new(body), number, room))
}

#[test]
fn a_file_that_is_read_anew_by_each_look_is_the_same_until_it_is_another() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
    let now = Clock::default().now();
    let miss = |number| Miss { selected: Some(read(&store, now, number)), ..Miss::new(Forward::Stale) };
    assert!(miss(1).is_same(&miss(1)));
    assert!(!miss(2).is_same(&miss(1)));
    let found = |number| LookupResult::Refresh {
        stored: Held::Shared(read(&store, now, number)),
        ttl_seconds: 0,
        ground: StaleReason::WhileRevalidate,
        age: Duration::ZERO,
    };
    assert!(found(1).has(&read(&store, now, 1)));
    assert!(!found(2).has(&read(&store, now, 1)));
}

/// A request that waits for a disk meanwhile is judged with what is known at the end, and by the moment at which it came.
#[test]
fn what_was_purged_softly_is_stale_however_late_the_last_purge_came() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
    let (received, request, rule) =
        (Clock::default().now(), crate::testing::request("/"), crate::testing::rule(&store));
    let key = CacheKey::new("example.com", "/");
    assert!(store.insert(&key, read(&store, received, 0), |_| false, || true));
    let now = received.later(Duration::from_secs(1));
    let invalidations = Invalidations::default();
    let judge = || Judge::new(&invalidations, None);
    let look =
        || Lookup { rule: &rule, hot: None, key: &key, request: &request, judge: judge() }.look_up(now);
    assert!(matches!(look(), LookupResult::Fresh { .. }));
    let all = Predicate { what: What::All, scope: Arc::new(Scope::any()), mode: Mode::Soft };
    for after in [50, 0] {
        invalidations.enter(&all, Some(now.monotonic + Duration::from_millis(after)));
        let looked = look();
        assert!(matches!(looked, LookupResult::Miss(Miss { selected: Some(_), .. })), "{after}: {looked:?}");
    }
}

#[test]
fn what_only_a_look_that_waits_can_see_is_there_still_for_all_that_is_known() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
    let before =
        Miss { selected: Some(read(&store, Clock::default().now(), 1)), ..Miss::new(Forward::Stale) };
    let blind = |may_recall| Miss { may_recall, ..Miss::new(Forward::UriMiss) };
    assert!(blind(true).is_same(&before));
    assert!(!blind(false).is_same(&before), "it is gone");
    assert!(LookupResult::Miss(blind(true)).has(before.selected.as_ref().unwrap()));
    assert!(!LookupResult::Miss(blind(false)).has(before.selected.as_ref().unwrap()));
}
