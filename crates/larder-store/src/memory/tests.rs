#![allow(clippy::unwrap_used)]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use larder_cache::{CachePolicy, ExchangeTimes, Storability, StoredHead};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::{Clock, Now};
use proptest::prelude::*;

use larder_tier::key::VARIANTS_MAX;

use super::*;
use crate::store::Store;
use crate::stored::StoredBody;
use crate::streaming::StreamingBody;

pub(super) const NOW: Duration = Duration::from_secs(100);
/// One for all: what was received when is compared.
static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::default);

pub(super) fn store(memory: u64) -> Arc<MemoryStore> {
    MemoryStore::new(&MemoryStoreSettings { memory, max_object: memory })
}

pub(crate) fn key(path: &str) -> CacheKey {
    let mut key = CacheKey::new("example.com", path);
    key.push_part(b"http");
    key
}

pub(crate) fn request(fields: &[(&'static str, &'static str)]) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: Scheme::Http,
        authority: Authority::parse(Bytes::from_static(b"example.com"), Scheme::Http).unwrap(),
        target: Target::parse(Bytes::from_static(b"/")).unwrap(),
        version: Version::HTTP_11,
        fields: fields.iter().map(|(n, v)| ((*n).parse().unwrap(), HeaderValue::from_static(v))).collect(),
    }
}

pub(crate) fn head(request: &RequestHead, vary: Option<&'static str>) -> Arc<StoredHead> {
    head_received(request, vary, CLOCK.now())
}

fn head_received(request: &RequestHead, vary: Option<&'static str>, now: Now) -> Arc<StoredHead> {
    let times = ExchangeTimes { request: now, response: now };
    let mut fields = HeaderMap::new();
    fields.insert("cache-control", HeaderValue::from_static("max-age=60"));
    if let Some(vary) = vary {
        fields.insert("vary", HeaderValue::from_static(vary));
    }
    let policy = CachePolicy::default();
    let storable = larder_cache::storable(request, StatusCode::OK, &fields, times, &policy);
    let Storability::Storable(freshness) = storable else { panic!("{storable:?}") };
    Arc::new(StoredHead::new(request, StatusCode::OK, fields, freshness, &policy))
}

/// A response with `bytes` of body, or `None` where there is no room.
pub(super) fn response(
    store: &Arc<MemoryStore>,
    key: &CacheKey,
    head: Arc<StoredHead>,
    bytes: usize,
) -> Option<Arc<StoredResponse>> {
    let body = StoredBody::new(vec![Bytes::from(vec![b'x'; bytes])], store.reserve(bytes as u64)?);
    let room = store.reserve(StoredResponse::overhead_bytes(&head, key))?;
    Some(Arc::new(StoredResponse::new(head, Arc::new(body), 0, room)))
}

pub(super) fn put(store: &Arc<MemoryStore>, path: &str, bytes: usize) -> bool {
    let key = key(path);
    let Some(response) = response(store, &key, head(&request(&[]), None), bytes) else {
        return false;
    };
    store.insert(&key, response, |_| true, || true)
}

fn finds(store: &MemoryStore, path: &str) -> bool {
    matches!(store.lookup(None, &key(path), NOW, |_| true), Selection::Selected(_))
}

#[test]
fn what_was_stored_is_found_under_its_key_only() {
    let store = store(1 << 20);
    assert!(put(&store, "/a", 10));
    assert!(finds(&store, "/a"));
    assert!(!finds(&store, "/b"));
    let mut other = CacheKey::new("example.com", "/a");
    other.push_part(b"https");
    assert!(matches!(store.lookup(None, &other, NOW, |_| true), Selection::OtherVariant));
}

#[test]
fn an_invalidation_takes_every_variant_and_nothing_else() {
    let store = store(1 << 20);
    put(&store, "/a", 10);
    let mut https = CacheKey::new("example.com", "/a");
    https.push_part(b"https");
    let other = response(&store, &https, head(&request(&[]), None), 10).unwrap();
    assert!(store.insert(&https, other, |_| true, || true));
    put(&store, "/b", 10);
    assert_eq!(store.invalidate(&key("/a")), 2);
    assert!(!finds(&store, "/a") && finds(&store, "/b"));
    assert_eq!(store.usage().objects, 1);
}

#[test]
fn an_invalidated_fetch_is_not_stored() {
    let store = store(1 << 20);
    let key = key("/a");
    let response = response(&store, &key, head(&request(&[]), None), 10).unwrap();
    assert!(!store.insert(&key, response, |_| true, || false));
    assert!(!finds(&store, "/a"));
    assert_eq!(store.usage().bytes, 0, "its room is free again");
}

#[test]
fn a_fetch_that_ends_late_does_not_undo_a_later_one() {
    let store = store(1 << 20);
    let key = key("/a");
    let clock = Clock::default();
    let old = head_received(&request(&[]), None, clock.now());
    clock.advance(Duration::from_secs(1));
    let new = head_received(&request(&[]), None, clock.now());
    let put = |head: &Arc<StoredHead>, bytes, replaces: bool| {
        let response = response(&store, &key, Arc::clone(head), bytes).unwrap();
        store.insert(&key, response, |_| replaces, || true)
    };
    assert!(put(&new, 20, true));
    assert!(!put(&old, 10, true));
    assert!(put(&old, 10, false), "another variant is no matter of time");
    assert!(put(&new, 30, true), "of two at the same time the last stays");
    assert_eq!(store.usage().objects, 1);
}

#[test]
fn variants_stand_beside_each_other_and_a_new_one_replaces_its_like() {
    let store = store(1 << 20);
    let key = key("/a");
    for (language, bytes) in [("en", 10), ("de", 20), ("en", 30)] {
        let request = request(&[("accept-language", language)]);
        let new = response(&store, &key, head(&request, Some("accept-language")), bytes).unwrap();
        assert!(store.insert(&key, new, |old| old.head.vary.selects(&request.fields), || true));
    }
    assert_eq!(store.usage().objects, 2);
    for (language, length) in [("en", Some(30)), ("de", Some(20)), ("fr", None)] {
        let request = request(&[("accept-language", language)]);
        let found = match store.lookup(None, &key, NOW, |stored| stored.head.vary.selects(&request.fields)) {
            Selection::Selected(stored) => Some(stored.body.length()),
            Selection::VaryMiss(others) => {
                assert_eq!(others.len(), 2);
                None
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(found, length, "{language}");
    }
}

#[test]
fn a_key_has_at_most_so_many_variants() {
    let store = store(1 << 24);
    let key = key("/a");
    for _ in 0..VARIANTS_MAX + 5 {
        let new = response(&store, &key, head(&request(&[]), Some("x-any")), 10).unwrap();
        assert!(store.insert(&key, new, |_| false, || true));
    }
    let usage = store.usage();
    assert_eq!((usage.objects, usage.evicted_variants), (VARIANTS_MAX as u64, 5));
}

#[test]
fn a_url_with_very_many_variants_of_its_key_is_invalidated_whole_and_leaves_nothing() {
    let store = store(1 << 20);
    let of = |user: u32| {
        let mut key = CacheKey::new("example.com", "/");
        key.push_part(&user.to_le_bytes());
        key
    };
    for user in 0..5_000 {
        let key = of(user);
        let new = response(&store, &key, head(&request(&[]), None), 10).unwrap();
        assert!(store.insert(&key, new, |_| true, || true));
    }
    let objects = store.usage().objects;
    assert!(objects > 100 && objects < 5_000, "{objects} fit");
    assert_eq!(store.invalidate(&of(0)), objects);
    assert_eq!(store.usage().bytes, 0);
    assert!(matches!(store.lookup(None, &of(4_999), NOW, |_| true), Selection::Absent));
}

#[test]
fn a_mark_holds_until_its_time_or_until_something_is_stored() {
    let store = store(1 << 20);
    store.mark_hit_for_miss(&key("/a"), NOW + Duration::from_secs(10));
    assert!(matches!(store.lookup(None, &key("/a"), NOW, |_| true), Selection::HitForMiss));
    let later = NOW + Duration::from_secs(10);
    assert!(matches!(store.lookup(None, &key("/a"), later, |_| true), Selection::Absent));
    put(&store, "/a", 10);
    assert!(finds(&store, "/a"));
    assert!(store.invalidate(&key("/a")) == 1 && store.usage().bytes == 0, "the mark's room is free again");
}

#[test]
fn a_flood_never_exceeds_the_cap_and_ends_with_the_store_full() {
    let cap = 256 * 1024;
    let store = store(cap);
    for n in 0..5_000 {
        put(&store, &format!("/{n}"), 1000);
        assert!(store.usage().bytes <= cap);
    }
    let usage = store.usage();
    assert!(usage.high_water_bytes <= cap);
    assert!(usage.bytes > cap * 9 / 10, "{usage:?}");
    assert!(usage.evicted_for_room > 4_000);
}

#[test]
fn the_age_at_eviction_counts_from_when_a_response_was_received() {
    let store = store(256 * 1024);
    let begin = CLOCK.now().monotonic;
    for n in 0..5_000_u64 {
        // One a second; all were received at the beginning.
        store.tell_time(begin + Duration::from_secs(n));
        put(&store, &format!("/{n}"), 1000);
    }
    let usage = store.usage();
    let mean = usage.evicted_ages.as_secs_f64() / usage.evicted_for_room as f64;
    assert!((1500.0..4000.0).contains(&mean), "{mean}");
}

#[test]
fn what_is_used_survives_a_scan() {
    // Large enough for each of the shards to hold more than a handful: which keys share one is up to chance.
    let store = store(2 * 1024 * 1024);
    let hot: Vec<String> = (0..100).map(|n| format!("/hot/{n}")).collect();
    hot.iter().for_each(|path| assert!(put(&store, path, 1000)));
    // A plain LRU of this size holds less than one scan: it would lose them all each time.
    for round in 0..5 {
        for _ in 0..3 {
            hot.iter().for_each(|path| {
                finds(&store, path);
            });
        }
        (0..4000).for_each(|n| assert!(put(&store, &format!("/scan/{round}/{n}"), 1000)));
    }
    assert!(store.usage().objects < 2000);
    let left = hot.iter().filter(|path| finds(&store, path)).count();
    assert!(left >= 70, "{left} of 100 hot ones survived 20 000 that nobody asked for again");
}

#[test]
fn bytes_count_until_the_last_reader_lets_go() {
    let store = store(4096);
    assert!(put(&store, "/a", 2000));
    let Selection::Selected(held) = store.lookup(None, &key("/a"), NOW, |_| true) else { panic!() };
    assert_eq!(store.invalidate(&key("/a")), 1);
    assert!(store.usage().bytes >= 2000);
    assert!(!put(&store, "/b", 2000), "there is no room while it is read");
    drop(held);
    assert_eq!(store.usage().bytes, 0);
    assert!(put(&store, "/b", 2000));
}

#[test]
fn a_lower_cap_takes_effect_at_once() {
    let store = store(1 << 20);
    (0..100).for_each(|n| assert!(put(&store, &format!("/{n}"), 5000)));
    store.resize(&MemoryStoreSettings { memory: 100_000, max_object: 100_000 });
    assert!(store.usage().bytes <= 100_000);
}

#[test]
fn a_confirmed_response_takes_the_place_of_the_old_one_if_that_is_still_there() {
    let store = store(1 << 20);
    let key = key("/a");
    let old = response(&store, &key, head(&request(&[]), None), 10).unwrap();
    let new = response(&store, &key, head(&request(&[]), None), 20).unwrap();
    assert!(store.insert(&key, Arc::clone(&old), |_| true, || true));
    assert!(!store.replace(&key, &old, Arc::clone(&new), || false));
    assert!(store.replace(&key, &old, Arc::clone(&new), || true));
    assert!(!store.replace(&key, &old, Arc::clone(&new), || true), "the old one is gone");
    store.remove(&key, &new);
    assert!(!finds(&store, "/a"));
}

#[test]
fn a_body_larger_than_the_store_takes_is_refused_before_a_byte() {
    let store = Store::in_memory(&MemoryStoreSettings { memory: 10_000, max_object: 10_000 });
    assert!(StreamingBody::keep(&store, &key("/a"), Some(10_001)).is_none());
    assert!(StreamingBody::keep(&store, &key("/a"), Some(5_000)).is_some());
    assert_eq!(store.usage().bytes, 0);
}

#[test]
fn what_nobody_asks_for_goes_and_what_is_asked_for_stays() {
    let store = store(1 << 20);
    assert!(put(&store, "/asked", 10) && put(&store, "/idle", 10));
    for sweep in 0..6 {
        // It was stored since the last one, which counts as being asked for.
        assert_eq!(store.usage().objects, if sweep < 5 { 2 } else { 1 }, "{sweep}");
        assert!(finds(&store, "/asked"));
        store.sweep_idle(4);
    }
    assert_eq!(store.usage().evicted_idle, 1);
    assert!(!finds(&store, "/idle") && finds(&store, "/asked"));
}

#[test]
fn a_walk_through_a_large_shard_meets_everything_and_holds_its_lock_for_256_items_at_a_time() {
    let store = store(64 << 20);
    // Variants of one base lie in one shard.
    let variant = |number: u32| {
        let mut key = key("/a");
        key.push_part(&number.to_le_bytes());
        key
    };
    let items = 1000;
    for number in 0..items {
        let key = variant(number);
        let response = response(&store, &key, head(&request(&[]), None), 10).unwrap();
        assert!(store.insert(&key, response, |_| true, || true));
    }
    for number in (0..items).step_by(2) {
        assert!(matches!(store.lookup(None, &variant(number), NOW, |_| true), Selection::Selected(_)));
    }
    let (mut told, mut slices) = (0, 0);
    for (turn, counted) in store.shards.iter().enumerate() {
        store.used_in(turn, |_, _| told += 1);
        let (shard, mut from) = (counted.shard.read(), Some(0));
        while let Some(start) = from {
            let (slice, next) = shard.slice(start);
            assert!(slice.len() <= 256);
            slices += usize::from(!slice.is_empty());
            from = next;
        }
    }
    assert_eq!(told, items / 2);
    assert!(slices >= 4, "{slices}");
    (0..2).for_each(|_| store.sweep_idle(1));
    assert_eq!((store.usage().objects, store.usage().evicted_idle), (0, u64::from(items)));
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8, u16),
    Find(u8),
    Invalidate(u8),
    Mark(u8),
    Hold(u8),
    LetGo,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (any::<u8>(), 0..3000u16).prop_map(|(k, b)| Act::Put(k % 40, b)),
        any::<u8>().prop_map(|k| Act::Find(k % 40)),
        any::<u8>().prop_map(|k| Act::Invalidate(k % 40)),
        any::<u8>().prop_map(|k| Act::Mark(k % 40)),
        any::<u8>().prop_map(|k| Act::Hold(k % 40)),
        Just(Act::LetGo),
    ]
}

proptest! {
    /// Against a plain map: what is found is what was put last and not invalidated since; the cap holds at every step;
    /// nothing is counted once everything is gone.
    #[test]
    fn random_acts_keep_the_cap_and_never_find_what_was_taken_out(acts in prop::collection::vec(act(), 1..200)) {
        let cap = 20_000;
        let store = store(cap);
        let mut model = std::collections::HashMap::new();
        let mut held = Vec::new();
        for act in acts {
            match act {
                Act::Put(k, bytes) => {
                    if put(&store, &format!("/{k}"), bytes.into()) {
                        model.insert(k, u64::from(bytes));
                    }
                }
                Act::Find(k) => match store.lookup(None, &key(&format!("/{k}")), NOW, |_| true) {
                    Selection::Selected(found) => prop_assert_eq!(Some(&found.body.length()), model.get(&k)),
                    Selection::VaryMiss(_) => prop_assert!(false),
                    Selection::HitForMiss | Selection::OtherVariant | Selection::Absent => {}
                },
                Act::Invalidate(k) => {
                    store.invalidate(&key(&format!("/{k}")));
                    model.remove(&k);
                }
                Act::Mark(k) => store.mark_hit_for_miss(&key(&format!("/{k}")), NOW * 2),
                Act::Hold(k) => {
                    if let Selection::Selected(found) = store.lookup(None, &key(&format!("/{k}")), NOW, |_| true) {
                        held.push(found);
                    }
                }
                Act::LetGo => held.clear(),
            }
            prop_assert!(store.usage().bytes <= cap);
        }
        held.clear();
        (0..40).for_each(|k| { store.invalidate(&key(&format!("/{k}"))); });
        let usage = store.usage();
        prop_assert_eq!((usage.bytes, usage.objects), (0, 0));
    }
}
