//! What the index has for a request, and whether it may be used.
//!
//! In: key and request. Out: a stored response that may be used as it is, or what stands in the way, in RFC 9211's
//! words. A look-up never waits; all judgement is `larder-cache`'s.

use std::sync::Arc;
use std::time::Duration;

use larder_cache::{CachePolicy, Reuse, VaryNames};
use larder_http::fields::cache_status::Forward;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::{CacheKey, Lookup, MemoryStore, StoredResponse};
use smallvec::SmallVec;

/// What was found.
#[derive(Debug)]
pub(crate) enum Found {
    /// May be used as it is.
    Fresh { stored: Arc<StoredResponse>, age: Duration, ttl: Duration },
    /// The origin has to be asked.
    Ask(Ask),
}

/// Why the origin has to be asked, and what may help.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) forward: Forward,
    /// The response that would be used, were it fresh.
    pub(crate) selected: Option<Arc<StoredResponse>>,
    /// Responses of other requests to the same key; the origin may confirm one of them.
    pub(crate) others: SmallVec<[Arc<StoredResponse>; 4]>,
    /// Queueing is no use: what comes is for this client alone.
    pub(crate) alone: bool,
    /// There is a mark: lately nothing that could be shared came for this key.
    pub(crate) marked: bool,
}

impl Ask {
    /// The Vary of what is stored under the key, as far as it is known.
    pub(crate) fn expected(&self) -> Option<VaryNames> {
        let newest = self.selected.as_ref().or(self.others.first());
        newest.map(|stored| stored.head.vary.names().clone())
    }

    /// Whether another look found the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let selected = |ask: &Self| ask.selected.as_ref().map(Arc::as_ptr);
        selected(self) == selected(other) && self.forward == other.forward && self.alone == other.alone
    }
}

/// Looks.
pub(crate) fn look_up(
    store: &MemoryStore,
    key: &CacheKey,
    request: &RequestHead,
    policy: &CachePolicy,
    now: Now,
) -> Found {
    let ask = |forward| Ask { forward, selected: None, others: SmallVec::new(), alone: false, marked: false };
    let selects = |response: &StoredResponse| response.head.vary.selects(&request.fields);
    match store.lookup(key, now.monotonic, selects) {
        Lookup::Absent => Found::Ask(ask(Forward::UriMiss)),
        Lookup::OtherVariant => Found::Ask(ask(Forward::Miss)),
        Lookup::VaryMiss(others) => Found::Ask(Ask { others, ..ask(Forward::VaryMiss) }),
        Lookup::HitForMiss => Found::Ask(Ask { alone: true, marked: true, ..ask(Forward::UriMiss) }),
        Lookup::Selected(stored) => match larder_cache::reuse(&stored.head, request, now, policy) {
            Reuse::Fresh { age, ttl } => Found::Fresh { stored, age, ttl },
            Reuse::Validate(reason) => {
                // What lives no time at all may be somebody's own: nobody waits for somebody else's.
                let alone = !stored.head.freshness.is_shareable();
                let selected = Some(stored);
                Found::Ask(Ask { selected, alone, ..ask(reason.forward()) })
            }
            Reuse::Unusable(reason) => Found::Ask(Ask { alone: true, ..ask(reason.forward()) }),
        },
    }
}
