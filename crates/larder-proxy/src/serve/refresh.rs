//! Fetches that nobody waits for: behind a stale answer, ahead of a lifetime's end, and instead of a client where the last
//! attempt has failed.
//!
//! In: what is stored and was used just now. Out: at most one fetch on its way, of which this client hears nothing. A
//! fetch that brings something replaces what is stored, and with it everything that is noted here; one that fails is not
//! begun anew by the next request but after a pause.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use larder_cache::StoredHead;
use larder_cache::stale::REFRESH_PAUSE;
use larder_http::message::RequestHead;
use larder_http::time::Now;
use larder_store::{CacheKey, StoredResponse};

use super::context::RequestContext;
use crate::collapse::{FlightRequest, Role};
use crate::decision::StandsIn;
use crate::exchange::Exchange;
use crate::fetch;
use crate::forward::{self, Candidates};
use crate::invalidation::Forgotten;
use crate::labels::RefreshKind;
use crate::lookup::Miss;
use crate::settings::RuleSettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;

/// The request that a refresh is made from, and its key.
pub(super) type RefreshedRequest<'a> = (&'a RequestContext<'a>, &'a Exchange, &'a CacheKey);

/// Starts a fetch that nobody waits for (RFC 5861 3), unless one has begun within the pause, or is on its way, or
/// `unchanged` says that one has ended since the look, or the origin has no time for it. `since` is that of the look.
// Not inlined: what a hit does not need would make its frame larger.
#[inline(never)]
pub(super) fn refresh(
    (context, exchange, key): RefreshedRequest<'_>,
    (stored, since): (&Arc<StoredResponse>, Forgotten),
    kind: RefreshKind,
    unchanged: impl FnOnce() -> bool,
) {
    let proxy = &context.worker.proxy;
    let now = proxy.clock.now();
    let policy = &exchange.settings().policy;
    let is_due = stored.refreshing.is_due(now.monotonic, REFRESH_PAUSE)
        && larder_cache::may_refresh_with(&exchange.asked.head, &stored.head, policy)
        && context.worker_plan.has_prospect(context.origin);
    if !is_due || !stored.refreshing.may_begin(now.monotonic, REFRESH_PAUSE) {
        return;
    }
    let Some(place) = proxy.background.place() else {
        return context.worker.metrics.refresh_put_off();
    };
    // A request of larder's own.
    let mut asked =
        exchange.asked.with_head(fetch::for_refresh(&exchange.asked.head, stored.head.part.as_ref()));
    // What comes is to take the place of this one, not to stand beside it.
    stored.head.vary.ask_for_codings(&mut asked.head.fields);
    let asker = exchange.asker.behind();
    let flight_request = FlightRequest {
        key,
        rule: asked.route.settings().number,
        request: &Arc::new(asked.head.clone()),
        expected: Some(stored.head.vary.names().clone()),
        wants_content: true,
        number: &|| proxy.invalidations.current(),
        arrived: proxy.invalidations.current(),
        begun: now,
    };
    if let Role::Lead(guard) = proxy.flights.board(flight_request, |_| true, unchanged) {
        let offered = Candidates { selected: Some(Arc::clone(stored)), since, ..Candidates::default() };
        let task = context.task(&asked, &asker, offered);
        context.worker.metrics.refreshed(&kind);
        tokio::spawn(async move {
            let _place = place;
            Box::pin(forward::fly(task, guard)).await;
        });
    }
}

/// Whether a fresh response that was used just now should be refreshed already: its lifetime is about to end, and this
/// is not its first use. A copy is not refreshed by the origin: its value is asked for again.
pub(super) fn is_due_ahead(exchange: &Exchange, stored: &StoredResponse, ttl: Duration) -> bool {
    exchange.settings().refresh_ahead
        && !stored.is_copy
        && stored.refreshing.is_used_again()
        && !ttl.is_zero()
        && ttl <= stored.head.freshness.refresh_ahead(stored.took)
}

/// A stored response that may be used without asking the origin.
pub(crate) struct Standing<'a> {
    pub(crate) stored: &'a Arc<StoredResponse>,
    /// Its head, as invalidations have left it.
    pub(crate) head: Cow<'a, StoredHead>,
    pub(crate) fact: StandsIn,
}

/// The stale response that stands in for an origin that is down or failed a moment ago. Once in a while a request that no
/// refresh can be made with asks the origin itself: no other might.
pub(crate) fn standing_in<'a>(
    worker: &Worker,
    (worker_plan, origin): (&WorkerPlan, usize),
    (request, rule): (&RequestHead, &RuleSettings),
    (key, miss): (&CacheKey, &'a Miss),
    now: Now,
) -> Option<Standing<'a>> {
    let policy = &rule.policy;
    let head = worker.proxy.invalidations.head_of(key, miss.selected.as_ref()?, miss.since)?;
    let (stored, ground) = miss.standing_in(&head, (now, policy), || worker_plan.is_down(origin))?;
    let asks_itself = !larder_cache::may_refresh_with(request, &stored.head, policy)
        && worker_plan.has_prospect(origin)
        && stored.refreshing.is_due(now.monotonic, REFRESH_PAUSE);
    Some(Standing { stored, head, fact: StandsIn { ground, asks_itself } })
}
