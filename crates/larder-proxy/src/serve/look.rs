//! Looks at the stores for a request, without waiting for anything.
//!
//! In: an exchange and its key. Out: a response that may be used at once ([`Used`]), or a [`Miss`] and the step that
//! follows on it. A hit goes through here and nowhere else: a plain call, without an allocation.

use std::sync::Arc;

use larder_cache::StaleReason;
use larder_cache::stale::REFRESH_PAUSE;
use larder_http::fields::cache_status::HitSource;
use larder_http::time::Now;
use larder_store::{CacheKey, Held, HotCache, StoredBody, StoredResponse};

use super::context::RequestContext;
use super::refresh::{self, RefreshedRequest, Standing};
use super::used::Used;
use crate::decision::{Counters, Facts, Missed, Next, next};
use crate::detail::BY_HAND;
use crate::exchange::Exchange;
use crate::facts;
use crate::invalidation::{Forgotten, Judge};
use crate::labels::RefreshKind;
use crate::lookup::{Lookup, LookupResult, Miss};

/// A look at the stores.
pub(super) struct Look<'a> {
    pub(super) context: &'a RequestContext<'a>,
    pub(super) exchange: &'a Exchange,
    pub(super) key: &'a CacheKey,
    /// The last invalidation when the request came, where that is a while ago: what was fetched since is new enough for
    /// it.
    pub(super) arrived: Option<u64>,
    /// How far predicates had been forgotten before it.
    pub(super) since: Forgotten,
    pub(super) now: Now,
    /// Whoever else may have something was asked: what memory has counts, be it stale.
    pub(super) has_asked: bool,
}

/// A look that found nothing to use, and what follows on it.
pub(super) struct Missing {
    pub(super) miss: Miss,
    pub(super) now: Now,
    pub(super) next: Next,
    pub(super) counters: Counters,
    /// A stale response would stand in, but this request asks the origin itself.
    asks_itself: bool,
}

/// The first look of a request, where that is not enough.
pub(super) struct FirstLook {
    pub(super) key: CacheKey,
    /// The last invalidation then.
    pub(super) arrived: u64,
    pub(super) missing: Box<Missing>,
}

/// The first look. What is stored is the answer wherever it may be.
// Inlined, as is the rest of the way of a hit.
#[inline(always)]
pub(super) fn first(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    now: Now,
) -> Result<Used, Box<FirstLook>> {
    let key = exchange.asked.key(&context.content);
    context.worker.proxy.heed_lease();
    let since = context.worker.proxy.invalidations.forgotten();
    let look = Look { context, exchange, key: &key, arrived: None, since, now, has_asked: false };
    match look.at_once() {
        Ok(used) => Ok(used),
        Err(miss) => first_miss(context, exchange, key, miss, now),
    }
}

#[inline(never)]
fn first_miss(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    key: CacheKey,
    miss: Miss,
    now: Now,
) -> Result<Used, Box<FirstLook>> {
    let arrived = context.worker.proxy.invalidations.current();
    let counters = facts::counters(&exchange.asked.head, exchange.settings());
    let (since, has_asked) = (miss.since, false);
    let look = Look { context, exchange, key: &key, arrived: None, since, now, has_asked };
    let missed = look.missed(miss, counters);
    missed.map_err(|missing| Box::new(FirstLook { key, arrived, missing }))
}

impl Look<'_> {
    /// What may be used at once.
    #[inline(always)]
    pub(super) fn at_once(&self) -> Result<Used, Miss> {
        self.used(self.lookup(Some(&self.context.worker.hot)).look_up_asking(self.now, !self.has_asked))
    }

    /// What the disks, files and values have. `None` where they have nothing.
    pub(super) async fn recalled(&self) -> Option<Result<Used, Miss>> {
        let (found, from) = self.lookup(None).recall_from_any(self.now).await?;
        let mut used = self.used(found);
        if let Ok(used) = &mut used {
            used.came_from(from);
        }
        Some(used)
    }

    /// The same look once more. It is no use of what it finds.
    pub(super) fn again(&self) -> LookupResult {
        self.lookup(None).look_up(self.context.worker.proxy.clock.now())
    }

    /// The request that a refresh behind this look is made from.
    fn refreshed(&self) -> RefreshedRequest<'_> {
        (self.context, self.exchange, self.key)
    }

    /// With `hot` it may find the worker's own handles. Without, it is a look under a lock that others wait for, or one
    /// that is no use.
    #[inline(always)]
    fn lookup<'b>(&'b self, hot: Option<&'b HotCache>) -> Lookup<'b> {
        let judge = Judge::since(&self.context.worker.proxy.invalidations, self.arrived, self.since);
        let judge = judge.doubting(self.exchange.asked.versions_not_known().is_some());
        Lookup {
            rule: self.exchange.settings(),
            hot,
            key: self.key,
            request: &self.exchange.asked.head,
            judge,
        }
    }

    /// The answer from what was found, with a refresh behind it where one is due.
    #[inline(always)]
    fn used(&self, found: LookupResult) -> Result<Used, Miss> {
        let refresh = |stored: &Arc<StoredResponse>, kind| {
            refresh::refresh(self.refreshed(), (stored, self.since), kind, || self.again().has(stored));
        };
        match found {
            LookupResult::Fresh { stored, age, ttl } => {
                if refresh::is_due_ahead(self.exchange, &stored, ttl) {
                    refresh(&stored, RefreshKind::Ahead);
                }
                let stale = ttl.is_zero().then_some(StaleReason::MaxStale.token());
                let detail = stale.or(stored.body.is_by_hand().then_some(BY_HAND));
                let ttl_seconds = stored.head.freshness.ttl_seconds(self.now);
                let source = if stale.is_some() { HitSource::Stale } else { source_of(&stored.body) };
                Ok(Used::Stored { stored, age, ttl_seconds, detail, source })
            }
            LookupResult::Refresh { stored, age, ttl_seconds, ground } => {
                refresh(&stored, RefreshKind::Behind);
                let detail = Some(ground.token());
                Ok(Used::Stored { stored, age, ttl_seconds, detail, source: HitSource::Stale })
            }
            LookupResult::Miss(miss) => Err(miss),
        }
    }

    /// What follows where nothing may be used as it is: a stale response stands in, larder refuses, or the request goes on.
    pub(super) fn missed(&self, miss: Miss, counters: Counters) -> Result<Used, Box<Missing>> {
        let RequestContext { worker, worker_plan, origin, .. } = *self.context;
        let asked = (&self.exchange.asked.head, &**self.exchange.settings());
        let standing =
            refresh::standing_in(worker, (worker_plan, origin), asked, (self.key, &miss), self.now);
        let stands_in = standing.as_ref().map(|standing| standing.fact);
        let missed = facts::missed(asked, &miss, stands_in);
        let only_if_cached = missed.only_if_cached || self.exchange.cached_only;
        let missed = Facts::Missed(Missed { only_if_cached, ..missed });
        let asks_itself = stands_in.is_some_and(|fact| fact.asks_itself);
        match (next(&missed, counters), standing) {
            ((Next::Refuse(failure), _), _) => Ok(Used::Failed(failure)),
            ((Next::UseStale(ground), _), Some(standing)) => Ok(self.stale(&miss, &standing, ground)),
            ((next, counters), _) => {
                Err(Box::new(Missing { miss, now: self.now, next, counters, asks_itself }))
            }
        }
    }

    /// A stale response in place of an origin that fails, with a refresh behind it.
    fn stale(&self, miss: &Miss, standing: &Standing<'_>, ground: StaleReason) -> Used {
        let Standing { stored, head, .. } = standing;
        let ttl_seconds = head.freshness.ttl_seconds(self.now);
        let unchanged = || matches!(self.again(), LookupResult::Miss(again) if again.is_same(miss));
        refresh::refresh(self.refreshed(), (stored, miss.since), RefreshKind::Down, unchanged);
        let age = stored.head.freshness.age(self.now);
        let (stored, detail) = (Held::Shared(Arc::clone(stored)), Some(ground.token()));
        Used::Stored { stored, age, ttl_seconds, detail, source: HitSource::Stale }
    }
}

/// Where the bytes of a fresh response are.
#[inline(always)]
fn source_of(body: &StoredBody) -> HitSource {
    if body.is_in_memory_alone() {
        return HitSource::Memory;
    }
    match (body.is_a_file(), body.is_in_memory()) {
        (true, _) => HitSource::File,
        (false, true) => HitSource::Memory,
        (false, false) => HitSource::Disk,
    }
}

impl Missing {
    /// The request goes to the origin. Where it is the one of many that asks itself, others need not do so for a while.
    pub(super) fn forwards(&self) {
        if let Some(stored) = self.miss.selected.as_ref().filter(|_| self.asks_itself) {
            stored.refreshing.may_begin(self.now.monotonic, REFRESH_PAUSE);
        }
    }
}
