//! Copies of values, from a tier that a test answers for.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use larder_cache::StoredHead;
use larder_http::time::Clock;
use larder_tier::fill::BoxFuture;
use larder_tier::rank::{Rank, RankedMutex};

use larder_tier::{Ask, Find, HeldBack, Inspect, Invalidate, Keep, Note, Run};
use tokio::sync::Semaphore;

use super::*;
use crate::memory::tests::{head, key, request};
use crate::{MemoryStoreSettings, Selection};

/// What the tier will say next.
enum Says {
    Value(&'static str),
    Absent,
    Unusable,
}

/// A tier that says what a test has told it, once it may.
#[derive(Default)]
struct ScriptedTier {
    says: RankedMutex<VecDeque<Says>>,
    asked: AtomicUsize,
    may_answer: Option<Semaphore>,
    is_outdated: AtomicBool,
    disowned: AtomicUsize,
    used: AtomicUsize,
    holds_records: bool,
    clock: Clock,
}

impl std::fmt::Debug for ScriptedTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScriptedTier")
    }
}

impl Ask<HttpCaching> for ScriptedTier {
    fn is_asked_anew(&self) -> bool {
        true
    }

    fn holds_records(&self) -> bool {
        self.holds_records
    }

    fn may_ask(&self, _request: &RequestHead, _policy: &CachePolicy) -> bool {
        true
    }

    fn asks_within(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn ask<'a>(
        &'a self,
        _key: &'a CacheKey,
        request: &'a RequestHead,
        _policy: &'a CachePolicy,
        is_of_use: &'a larder_tier::IsOfUse<'a, StoredHead>,
    ) -> BoxFuture<'a, Asked<HttpCaching>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if let Some(may_answer) = &self.may_answer {
                may_answer.acquire().await.unwrap().forget();
            }
            match self.says.lock().pop_front() {
                None | Some(Says::Absent) => Asked::Absent,
                Some(Says::Unusable) => Asked::Unusable,
                Some(Says::Value(body)) => {
                    let head = (*head(request, None)).clone();
                    let freshness = larder_cache::Freshness {
                        received: self.clock.now(),
                        lifetime: Duration::from_nanos(1),
                        ..head.freshness
                    };
                    let head = StoredHead { freshness, ..head };
                    if !is_of_use(&head, 0) {
                        return Asked::Unusable;
                    }
                    Asked::Found(Box::new(FoundValue {
                        head,
                        body: vec![Bytes::from_static(body.as_bytes())],
                        record: None,
                        ticket: 0,
                    }))
                }
            }
        })
    }

    fn is_current(&self, _key: &CacheKey, _ticket: u64) -> bool {
        !self.is_outdated.load(Ordering::Relaxed)
    }

    fn disown(&self, _key: &CacheKey) {
        self.disowned.fetch_add(1, Ordering::Relaxed);
    }
}

impl Find<HttpCaching> for ScriptedTier {
    fn note_use_at(&self, _base: &[u8], _variant: &[u8]) {
        self.used.fetch_add(1, Ordering::Relaxed);
    }
}

impl Keep<HttpCaching> for ScriptedTier {
    fn forget(&self, _key: &CacheKey, _identity: u64) {}
}

impl Invalidate for ScriptedTier {
    fn has_base(&self, _key: &CacheKey) -> bool {
        true
    }

    fn note_base(&self, _key: &CacheKey, _note: &Note) {}

    fn note(&self, _note: &Note) {}
}

impl Inspect<HttpCaching> for ScriptedTier {
    fn letter(&self) -> char {
        't'
    }

    fn would_hold_back(&self, _key: &CacheKey, _head: &StoredHead) -> Option<HeldBack> {
        None
    }

    fn holds_back(&self, _key: &CacheKey, _head: &StoredHead, _identity: u64) -> Option<HeldBack> {
        None
    }
}

impl Run for ScriptedTier {
    fn close(&self) {}
}

fn told(says: impl IntoIterator<Item = Says>) -> RankedMutex<VecDeque<Says>> {
    RankedMutex::new(Rank::Leaf, says.into_iter().collect())
}

struct Fixture {
    store: Arc<Store>,
    tier: Arc<ScriptedTier>,
}

impl Fixture {
    fn new(says: impl IntoIterator<Item = Says>) -> Self {
        Self::with(ScriptedTier { says: told(says), ..ScriptedTier::default() })
    }

    /// The tier answers as often as the test lets it.
    fn held(says: impl IntoIterator<Item = Says>) -> Self {
        let may_answer = Some(Semaphore::new(0));
        Self::with(ScriptedTier { says: told(says), may_answer, ..ScriptedTier::default() })
    }

    fn with(told: ScriptedTier) -> Self {
        let tier = Arc::new(told);
        let settings = MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 18 };
        let store = Store::new(&settings, Some(Arc::clone(&tier)));
        assert!(store.asks_anew() && store.looks_beside() && !store.has_tiers_behind());
        Self { store, tier }
    }

    async fn ask(&self) -> Recalled {
        self.ask_at(self.tier.clock.now()).await
    }

    async fn ask_at(&self, now: Now) -> Recalled {
        let request = request(&[]);
        self.store.ask(&key("/a"), (&request, &CachePolicy::default()), (7, &|_, _| true), now).await
    }

    fn copies(&self) -> Vec<(bool, u64, Vec<u8>)> {
        let (there, _) = self.store.responses(&key("/a"), Duration::ZERO);
        let told = there
            .iter()
            .map(|copy| (copy.is_copy, copy.number, copy.body.at(0).unwrap_or_default().to_vec()));
        told.collect()
    }

    fn asked(&self) -> usize {
        self.tier.asked.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_value_is_a_copy_in_memory_that_is_fresh_for_the_look_that_asked() {
    let fixture = Fixture::new([Says::Value("one"), Says::Value("two")]);
    let now = fixture.tier.clock.now();
    assert_eq!(fixture.ask_at(now).await, Recalled::Something);
    assert_eq!(fixture.copies(), [(true, 7, b"one".to_vec())]);
    let is_fresh = |response: &StoredResponse| response.head.freshness.is_fresh(now);
    let found = fixture.store.lookup(None, &key("/a"), now.monotonic, is_fresh);
    assert!(matches!(found, Selection::Selected(_)), "{found:?}");
    // Whoever comes later asks again, and the new one takes its place.
    assert_eq!(fixture.ask().await, Recalled::Something);
    assert_eq!((fixture.copies(), fixture.asked()), (vec![(true, 7, b"two".to_vec())], 2));
}

#[tokio::test]
async fn a_value_that_is_gone_takes_its_copy_with_it_and_one_that_cannot_be_had_does_not() {
    let fixture = Fixture::new([Says::Value("one"), Says::Unusable, Says::Absent]);
    assert_eq!(fixture.ask().await, Recalled::Something);
    assert_eq!(fixture.ask().await, Recalled::Nothing);
    assert_eq!(fixture.copies().len(), 1);
    assert_eq!(fixture.ask().await, Recalled::Nothing);
    assert!(fixture.copies().is_empty());
}

#[tokio::test]
async fn what_is_outdated_when_it_comes_is_not_kept() {
    let fixture = Fixture::new([Says::Value("one")]);
    fixture.tier.is_outdated.store(true, Ordering::Relaxed);
    assert_eq!(fixture.ask().await, Recalled::Nothing);
    assert!(fixture.copies().is_empty());
}

/// Polls `asking` until nothing of it goes on.
async fn turns() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_crowd_asks_once_whether_there_is_a_value_or_not() {
    for (says, expected) in [(Says::Value("one"), Recalled::Something), (Says::Absent, Recalled::Nothing)] {
        let fixture = Arc::new(Fixture::held([says]));
        let asking: Vec<_> = (0..20)
            .map(|_| {
                let fixture = Arc::clone(&fixture);
                tokio::spawn(async move { fixture.ask().await })
            })
            .collect();
        turns().await;
        assert_eq!(fixture.asked(), 1);
        fixture.tier.may_answer.as_ref().unwrap().add_permits(1);
        for asked in asking {
            assert_eq!(asked.await.unwrap(), expected);
        }
        assert_eq!(fixture.asked(), 1);
    }
}

#[tokio::test]
async fn where_the_one_that_asks_leaves_another_asks() {
    let fixture = Arc::new(Fixture::held([Says::Value("one")]));
    let ask = || {
        let fixture = Arc::clone(&fixture);
        tokio::spawn(async move { fixture.ask().await })
    };
    let (first, second) = (ask(), ask());
    turns().await;
    first.abort();
    turns().await;
    assert_eq!(fixture.asked(), 2);
    fixture.tier.may_answer.as_ref().unwrap().add_permits(1);
    assert_eq!(second.await.unwrap(), Recalled::Something);
}

#[tokio::test]
async fn a_response_is_disowned_once() {
    let fixture = Fixture::new([Says::Value("one")]);
    assert_eq!(fixture.ask().await, Recalled::Something);
    let (there, _) = fixture.store.responses(&key("/a"), Duration::ZERO);
    (0..3).for_each(|_| fixture.store.disown(&key("/a"), &there[0]));
    assert_eq!(fixture.tier.disowned.load(Ordering::Relaxed), 1);
    fixture.store.disown_base(&key("/a"));
    assert_eq!(fixture.tier.disowned.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_tier_with_records_is_told_what_memory_uses_and_one_with_values_is_not() {
    for holds_records in [true, false] {
        let says = told([Says::Value("one")]);
        let fixture = Fixture::with(ScriptedTier { says, holds_records, ..ScriptedTier::default() });
        assert_eq!(fixture.ask().await, Recalled::Something);
        let now = fixture.tier.clock.now();
        let found = fixture.store.lookup(None, &key("/a"), now.monotonic, |_| true);
        assert!(matches!(found, Selection::Selected(_)), "{found:?}");
        // Once around all shards.
        (0..64).for_each(|_| fixture.store.tend(None, now));
        assert_eq!(fixture.tier.used.load(Ordering::Relaxed), usize::from(holds_records));
    }
}

/// It would only take the place of what memory has, and with that what is known of the origin.
#[tokio::test]
async fn a_record_that_is_no_newer_than_what_memory_has_is_of_no_use() {
    for (holds_records, expected) in [(true, Recalled::Nothing), (false, Recalled::Something)] {
        let says = told([Says::Value("one"), Says::Value("same"), Says::Value("two")]);
        let fixture = Fixture::with(ScriptedTier { says, holds_records, ..ScriptedTier::default() });
        assert_eq!(fixture.ask().await, Recalled::Something);
        fixture.tier.clock.advance(SAME_WITHIN / 4);
        assert_eq!(fixture.ask().await, expected);
        let kept = if holds_records { &b"one"[..] } else { b"same" };
        assert_eq!(fixture.copies(), [(true, 7, kept.to_vec())]);
        fixture.tier.clock.advance(2 * SAME_WITHIN);
        assert_eq!(fixture.ask().await, Recalled::Something);
        assert_eq!(fixture.copies(), [(true, 7, b"two".to_vec())]);
    }
}
