//! Fetches that nobody waits for: behind a stale answer, ahead of a lifetime's end, and instead of a client where the last
//! attempt has failed.
//!
//! In: what is stored and was used just now. Out: at most one fetch on its way, of which this client hears nothing. A
//! fetch that brings something replaces what is stored, and with it everything that is noted here; one that fails is not
//! begun anew by the next request but after a pause.

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use larder_cache::stale::FAILURE_MEMORY;
use larder_cache::{StaleCause, StaleReason};
use larder_http::fields::cache_status::Forward;
use larder_http::time::Now;
use larder_store::{CacheKey, RefreshFailure, StoredResponse};
use tokio::sync::oneshot;

use super::cached::Quest;
use crate::collapse::{Seat, Trip};
use crate::exchange::{Exchange, RefreshKind};
use crate::fetch;
use crate::forward::{self, Candidates, Job};
use crate::lookup::Ask;

/// How long after one refresh another may begin, where the first brought nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// A refresh that nobody waits for may take so many times as long as a fetch that everybody has left.
const ORPHAN_TIMES: u32 = 10;

/// Starts a fetch that nobody waits for (RFC 5861 3), unless one has begun within the pause, or is on its way, or
/// `unchanged` says that one has ended since the look, or the origin is down and not to be tried again yet.
pub(super) fn refresh(
    quest: &Quest<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (stored, kind): (&Arc<StoredResponse>, RefreshKind),
    unchanged: impl FnOnce() -> bool,
) {
    let proxy = &quest.worker.proxy;
    let now = proxy.clock.now();
    // Nobody's credentials are used for a request that nobody waits for.
    let is_own = exchange.head.fields.contains_key(AUTHORIZATION);
    if is_own || !quest.has_prospect() || !stored.refreshing.may_begin(now.monotonic, PAUSE) {
        return;
    }
    let head = fetch::for_refresh(&exchange.head, stored.head.part.as_ref());
    let trip = Trip {
        key,
        rule: Arc::as_ptr(&exchange.settings).addr(),
        request: &Arc::new(head),
        expected: Some(stored.head.vary.names().clone()),
        number: proxy.numbering.current(),
        begun: now,
    };
    if let Seat::Lead(guard, _) = proxy.flights.board(trip, |_| true, unchanged) {
        let offered = Candidates { selected: Some(Arc::clone(stored)), ..Candidates::default() };
        let (leader, _) = oneshot::channel();
        let job = quest.job(exchange, offered, leader);
        // Nobody is expected: what is slow would be begun again and again otherwise, and never be there.
        let orphan_time = job.orphan_time.saturating_mul(ORPHAN_TIMES);
        quest.worker.metrics.refreshed(&kind);
        tokio::spawn(forward::fly(Job { orphan_time, ..job }, guard));
    }
}

/// Whether a fresh response that was used just now should be refreshed already: its lifetime is about to end, and this
/// is not its first use.
pub(super) fn is_due_ahead(exchange: &Exchange, stored: &StoredResponse, ttl: Duration) -> bool {
    exchange.settings.refresh_ahead
        && stored.refreshing.is_used_again()
        && !ttl.is_zero()
        && ttl <= stored.head.freshness.refresh_ahead(stored.took)
}

/// Why a stale response may be used without asking the origin: it has failed a moment ago, or is known to be down, and
/// nothing forbids stale use in its place. Nobody waits for an origin to fail once more.
pub(super) fn stands_in(quest: &Quest<'_>, exchange: &Exchange, ask: &Ask, now: Now) -> Option<StaleReason> {
    let stored = ask.selected.as_ref().filter(|_| ask.forward == Forward::Stale)?;
    let cause = match stored.refreshing.failure(now.monotonic, FAILURE_MEMORY) {
        Some(RefreshFailure::Error) => StaleCause::OriginError,
        Some(RefreshFailure::Dead) => StaleCause::OriginDead,
        None if quest.is_origin_down() => StaleCause::OriginDead,
        None => return None,
    };
    larder_cache::may_stand_in(&stored.head, now, cause, &exchange.settings.policy)
}
