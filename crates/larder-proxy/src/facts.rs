//! The facts of each step, for [`next`](crate::decision::next) to decide on.
//!
//! In: a request, the site and the rule that took it, and what a step came to. Out: the facts of that step. Serving and
//! `explain` both take them from here. So the two cannot see one request differently.
//! Deliberately absent: the steps themselves. The caller has looked, counted or asked, each in its own way.

use http::Method;
use larder_cache::StoredHead;
use larder_http::message::RequestHead;
use larder_store::{CacheKey, Store};

use crate::decision::{Arrived, Counters, Document, Forwarding, Missed, StandsIn, Storable};
use crate::lookup::Miss;
use crate::settings::{RuleSettings, SiteSettings};

/// What a request carries beside its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// It is a WebSocket handshake.
    pub(crate) websocket: bool,
    pub(crate) has_content: bool,
}

/// Of a request that has a site and a rule, in a plan with so many origins.
// Inlined: a hit asks for it.
#[inline(always)]
pub(crate) fn arrived(
    method: &Method,
    (site, rule): (&SiteSettings, &RuleSettings),
    origins: usize,
    document: Option<Document>,
    carried: Carried,
) -> Arrived {
    Arrived {
        is_get: matches!(*method, Method::GET | Method::HEAD),
        document,
        has_origin: site.origin.is_some_and(|origin| origin < origins),
        passes_by: rule.passes_by(method),
        upgrades: carried.websocket && site.websocket,
        has_content: carried.has_content,
    }
}

/// What has happened to a request that is about to be looked up: nothing yet.
pub(crate) fn counters(request: &RequestHead, rule: &RuleSettings) -> Counters {
    Counters::new(larder_cache::is_personal(request, &rule.policy))
}

/// Of a look that found nothing to use as it is.
pub(crate) fn missed(
    (request, rule): (&RequestHead, &RuleSettings),
    miss: &Miss,
    stands_in: Option<StandsIn>,
) -> Missed {
    Missed {
        may_recall: miss.may_recall,
        asks_first: miss.asks_first,
        only_if_cached: larder_cache::only_if_cached(request, &rule.policy),
        stands_in,
        for_one: miss.alone,
    }
}

/// How often a URL was asked for, as `count` says; `None` where the rule does not count, or the look found something stored.
/// What is sent on without a look is counted.
pub(crate) fn uses(rule: &RuleSettings, miss: Option<&Miss>, count: impl FnOnce() -> u8) -> Option<u8> {
    let is_stored = miss.is_some_and(|miss| miss.selected.is_some() || miss.part.is_some());
    (rule.min_uses > 1 && !is_stored).then(count)
}

/// Of a request for the origin, after a look or without one.
pub(crate) fn forwarding(
    (request, rule): (&RequestHead, &RuleSettings),
    miss: Option<&Miss>,
    alone: bool,
    uses: Option<u8>,
) -> Forwarding {
    let get_would_do = miss.is_some_and(|miss| miss.fetches_with_get(request, rule));
    Forwarding { alone, uses, min_uses: rule.min_uses, get_would_do }
}

/// Of an answer that may be stored, with so many bytes of content as far as that is known, and the store for it.
pub(crate) fn storable(
    store: &Store,
    (key, head): (&CacheKey, &StoredHead),
    declared: Option<u64>,
    seldom: bool,
) -> Storable {
    Storable { seldom, is_too_large: declared > Some(store.max_object_for(key, head)) }
}

#[cfg(test)]
mod tests {
    use larder_store::MemoryStoreSettings;

    use super::*;
    use crate::testing::{request, rule};

    fn store() -> std::sync::Arc<Store> {
        Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 })
    }

    #[test]
    fn uses_are_counted_where_the_rule_says_so_and_nothing_is_stored() {
        let nothing = Miss::gone();
        for (min_uses, miss, expected) in
            [(1, Some(&nothing), None), (2, Some(&nothing), Some(7)), (2, None, Some(7)), (1, None, None)]
        {
            let rule = RuleSettings { min_uses, ..rule(&store()) };
            assert_eq!(uses(&rule, miss, || 7), expected, "{min_uses} {miss:?}");
            let forwarding = forwarding((&request("/"), &rule), miss, true, expected);
            assert_eq!((forwarding.uses, forwarding.min_uses), (expected, min_uses));
        }
    }
}
