//! Numbers, tables and memos of invalidations (`larder-proxy`, `invalidation`): what is purged is never good again.
//!
//! In: threads that purge, that look, that begin to fetch, and that walk (`retirement`). What has to hold: once a purge has returned, a look finds what it
//! names to be gone, whatever the response remembers; and what was fetched after it is good.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::modulo_one,
    rustdoc::broken_intra_doc_links,
    reason = "of the sources of other crates only what is tried is used, within bounds of one"
)]

#[path = "../../../../crates/larder-proxy/src/invalidation/counter.rs"]
mod counter;
#[path = "../../../../crates/larder-proxy/src/invalidation/effects.rs"]
mod effects;
#[path = "../../../../crates/larder-proxy/src/invalidation/groups.rs"]
mod groups;
#[path = "../../../../crates/larder-proxy/src/invalidation/hosts.rs"]
mod hosts;
#[path = "../../../../crates/larder-store/src/stored/judged.rs"]
mod judged;
#[path = "../../../../crates/larder-proxy/src/invalidation/kind.rs"]
mod kind;
#[path = "../../../../crates/larder-proxy/src/invalidation/kinds.rs"]
mod kinds;
#[path = "../../../../crates/larder-proxy/src/invalidation/memo.rs"]
mod memo;
#[path = "../../../../crates/larder-proxy/src/invalidation/paths.rs"]
mod paths;
#[path = "../../../../crates/larder-proxy/src/invalidation/patterns.rs"]
mod patterns;
#[path = "../../../../crates/larder-proxy/src/invalidation/predicates.rs"]
mod predicates;
#[path = "../../../../crates/larder-proxy/src/invalidation/purged.rs"]
mod purged;
#[path = "../../../../crates/larder-proxy/src/invalidation/retire.rs"]
mod retire;
#[path = "../../../../crates/larder-proxy/src/invalidation/table.rs"]
mod table;
#[path = "../../../../crates/larder-proxy/src/invalidation/tags.rs"]
mod tags;

mod bounds;
mod retirement;
mod sync;

pub use retirement::{
    a_purge_is_not_lost_for_a_fetch_from_before_it, a_purge_of_a_tag_is_lost_by_no_walk,
    a_purge_of_any_tag_is_lost_by_no_walk, a_soft_purge_is_lost_by_no_walk,
};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use larder_cache::purge::{Mode, Predicate, Scope, What};
use larder_cache::{CachePolicy, Freshness, LifetimeSource, StoredHead, Verdict};
use larder_http::authority::Authority;
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::time::Clock;
use larder_store::CacheKey;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

pub(crate) use counter::Invalidations;
pub(crate) use judged::Judged;
use kind::Subject;
use memo::Forgotten;

use crate::every_order;

/// A tag of so many bytes is not kept.
const TAG_BYTES: usize = 1025;

/// A stored response, as far as it is judged.
pub(crate) struct Response {
    key: CacheKey,
    head: StoredHead,
}

impl Response {
    /// With the tag `mine`.
    pub(crate) fn new() -> Arc<Self> {
        Self::tagged("mine")
    }

    /// With more tags than are kept, of which none is known by its name.
    fn with_every_tag() -> Arc<Self> {
        let response = Self::tagged(&"t".repeat(TAG_BYTES));
        assert!(response.head.tags.as_deref().is_some_and(|tags| tags.carries_every()));
        response
    }

    fn tagged(tags: &str) -> Arc<Self> {
        let authority = Authority::parse(Bytes::from_static(b"a.test"), Scheme::Http);
        let request = RequestHead {
            method: Method::GET,
            scheme: Scheme::Http,
            authority: authority.expect("a host"),
            target: Target::parse(Bytes::from_static(b"/a")).expect("a path"),
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        };
        let mut fields = HeaderMap::new();
        fields.insert("surrogate-key", HeaderValue::from_str(tags).expect("a value"));
        let freshness = Freshness {
            lifetime: Duration::from_secs(60),
            source: LifetimeSource::MaxAge,
            initial_age: Duration::ZERO,
            received: Clock::default().now(),
            no_cache: false,
        };
        let policy = CachePolicy::default();
        let head = StoredHead::new(&request, StatusCode::OK, fields, freshness, &policy);
        Arc::new(Self { key: CacheKey::new("a.test", "/a"), head })
    }

    /// As a look-up asks: what it remembers first.
    pub(crate) fn verdict(&self, invalidations: &Invalidations, judged: &Judged, number: u64) -> Verdict {
        self.verdict_since(invalidations, judged, (number, invalidations.forgotten()))
    }

    /// The same of one that was found at `since`.
    fn verdict_since(
        &self,
        invalidations: &Invalidations,
        judged: &Judged,
        (number, since): (u64, Forgotten),
    ) -> Verdict {
        match invalidations.is_known_good(judged, self.key.hash(), number) {
            true => Verdict::Good,
            false => {
                let subject = Subject { key: &self.key, head: Some(&self.head) };
                let verdict = invalidations.look_closer(judged, &subject, (number, since));
                verdict.unwrap_or(Verdict::Gone)
            }
        }
    }
}

fn purge(what: What, mode: Mode) -> Predicate {
    Predicate { what, scope: Arc::new(Scope::any()), mode }
}

fn host(name: &str) -> Predicate {
    purge(What::Host(name.into()), Mode::Hard)
}

pub(crate) fn tag(name: &str) -> Predicate {
    purge(What::Tag(name.as_bytes().into()), Mode::Hard)
}

fn url(target: &str) -> Predicate {
    purge(What::Url { authority: "a.test".into(), target: target.into() }, Mode::Soft)
}

/// Two purges at once and a response that is looked at meanwhile: once the purge that names it has returned it is never good.
fn is_never_good_again(mine: fn() -> Predicate, other: fn() -> Predicate) {
    let response = Response::new();
    every_order(move || {
        let (invalidations, acknowledged) = (Arc::new(Invalidations::default()), Arc::new(AtomicU64::new(0)));
        let purging = {
            let (invalidations, acknowledged) = (Arc::clone(&invalidations), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let number = invalidations.enter(&mine(), None);
                acknowledged.store(number, Ordering::Release);
            })
        };
        let beside = {
            let invalidations = Arc::clone(&invalidations);
            thread::spawn(move || invalidations.enter(&other(), None))
        };
        let judged = Judged::default();
        for _ in 0..2 {
            let purged = acknowledged.load(Ordering::Acquire);
            let verdict = response.verdict(&invalidations, &judged, 0);
            assert!(purged == 0 || verdict != Verdict::Good, "{purged}");
        }
        purging.join().expect("it has purged");
        beside.join().expect("it has purged");
        assert_ne!(response.verdict(&invalidations, &judged, 0), Verdict::Good);
    });
}

/// By a host, which is one entry, beside a tag of others, which are two.
pub fn a_host_that_was_purged_is_never_good_again() {
    is_never_good_again(|| host("a.test"), || tag("other"));
}

/// By tags, of which the other is not the response's.
pub fn a_tag_that_was_purged_is_never_good_again() {
    is_never_good_again(|| tag("mine"), || tag("other"));
}

/// By URLs, which share a shard.
pub fn a_url_that_was_purged_is_never_good_again() {
    is_never_good_again(|| url("/a"), || url("/b"));
}

/// By a tag, beside a URL: each has a table of its own, and one counter gives the numbers of both.
pub fn a_tag_that_was_purged_beside_a_url_is_never_good_again() {
    is_never_good_again(|| tag("mine"), || url("/b"));
}

/// What makes room in a full shard is not forgotten: a response that it named is not good.
pub fn what_made_room_for_others_is_never_good_again() {
    let response = Response::new();
    every_order(move || {
        let invalidations = Arc::new(Invalidations::default());
        invalidations.enter(&url("/a"), None);
        let others = ["/b", "/c"].map(|target| {
            let invalidations = Arc::clone(&invalidations);
            thread::spawn(move || invalidations.enter(&url(target), None))
        });
        let judged = Judged::default();
        for _ in 0..2 {
            assert_ne!(response.verdict(&invalidations, &judged, 0), Verdict::Good);
        }
        for other in others {
            other.join().expect("it has purged");
        }
        assert_ne!(response.verdict(&invalidations, &judged, 0), Verdict::Good);
    });
}

/// A fetch takes the number of the last purge when it begins. What it brings is good exactly if it began after the purge had its number.
pub fn a_fetch_is_older_or_newer_than_a_purge() {
    let response = Response::new();
    every_order(move || {
        let (invalidations, acknowledged) = (Arc::new(Invalidations::default()), Arc::new(AtomicU64::new(0)));
        let purging = {
            let (invalidations, acknowledged) = (Arc::clone(&invalidations), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let number = invalidations.enter(&tag("mine"), None);
                acknowledged.store(number, Ordering::Release);
                number
            })
        };
        let beside = {
            let invalidations = Arc::clone(&invalidations);
            thread::spawn(move || invalidations.enter(&url("/b"), None))
        };
        let before = acknowledged.load(Ordering::Acquire);
        let (began, judged) = (invalidations.current(), Judged::default());
        assert!(began >= before, "it began after the purge had returned");
        let early = response.verdict(&invalidations, &judged, began);
        let purged = purging.join().expect("it has purged");
        let other = beside.join().expect("it has purged");
        assert_ne!(purged, other, "a number of its own");
        let expected = if began < purged { Verdict::Gone } else { Verdict::Good };
        assert_eq!(response.verdict(&invalidations, &judged, began), expected);
        assert!(early == expected || expected == Verdict::Gone, "{early:?}");
    });
}

/// A store is opened whose numbers are higher, while something is purged: either that is noticed, or the purge has a higher number.
pub fn numbers_go_on_above_those_of_a_store() {
    const LAST: u64 = 9;
    every_order(|| {
        let invalidations = Arc::new(Invalidations::default());
        let purging = {
            let invalidations = Arc::clone(&invalidations);
            thread::spawn(move || invalidations.enter(&tag("mine"), None))
        };
        let next = invalidations.continue_after(LAST);
        let purged = purging.join().expect("it has purged");
        assert!(invalidations.current() >= LAST.max(purged));
        assert!(next.is_none_or(|next| next >= LAST && purged > next), "{next:?} {purged}");
    });
}
