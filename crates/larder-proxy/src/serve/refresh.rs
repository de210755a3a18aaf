//! Fetches that nobody waits for: behind a stale answer, ahead of a lifetime's end, and instead of a client where the last
//! attempt has failed.
//!
//! In: what is stored and was used just now. Out: at most one fetch on its way, of which this client hears nothing. A
//! fetch that brings something replaces what is stored, and with it everything that is noted here; one that fails is not
//! begun anew by the next request but after a pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::AUTHORIZATION;
use larder_cache::stale::FAILURE_MEMORY;
use larder_cache::{LifetimeSource, StaleCause, StaleReason};
use larder_http::fields::cache_status::Forward;
use larder_http::time::Now;
use larder_store::{CacheKey, RefreshFailure, StoredResponse};
use tokio::sync::oneshot;

use super::cached::Quest;
use crate::collapse::{Seat, Trip};
use crate::exchange::{Exchange, RefreshKind};
use crate::fetch::{self, Hop};
use crate::forward::{self, Candidates, Job};
use crate::lookup::Ask;

/// How long after one refresh another may begin, where the first brought nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// A refresh that nobody waits for may take so many times as long as a fetch that everybody has left.
const ORPHAN_TIMES: u32 = 10;

/// Refreshes under way at once in the whole process. Clients are not slowed down by what nobody waits for, so something
/// else has to be.
const REFRESHES_MAX: usize = 1024;

/// Starts a fetch that nobody waits for (RFC 5861 3), unless one has begun within the pause, or is on its way, or
/// `unchanged` says that one has ended since the look, or the origin has no time for it.
pub(super) fn refresh(
    quest: &Quest<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (stored, kind): (&Arc<StoredResponse>, RefreshKind),
    unchanged: impl FnOnce() -> bool,
) {
    let proxy = &quest.worker.proxy;
    let now = proxy.clock.now();
    let is_due = stored.refreshing.is_due(now.monotonic, PAUSE) && !is_own(exchange, stored);
    if !is_due || !quest.has_prospect() || !stored.refreshing.may_begin(now.monotonic, PAUSE) {
        return;
    }
    let Some(place) = Place::take(&proxy.refreshes) else {
        return quest.worker.metrics.refresh_put_off();
    };
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
        let hop = Hop { is_waiting: false, ..job.hop };
        quest.worker.metrics.refreshed(&kind);
        tokio::spawn(async move {
            let _place = place;
            forward::fly(Job { orphan_time, hop, ..job }, guard).await;
        });
    }
}

/// Whether the answer to this request would be its client's own, and so nothing to refresh with: nobody's credentials
/// are used for a request that nobody waits for.
fn is_own(exchange: &Exchange, stored: &StoredResponse) -> bool {
    let policy = &exchange.settings.policy;
    exchange.head.fields.contains_key(AUTHORIZATION)
        || (stored.head.freshness.source == LifetimeSource::Heuristic
            && larder_cache::has_session(&exchange.head, policy))
}

/// A place among the refreshes under way.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken| (taken < REFRESHES_MAX).then_some(taken + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
/// nothing forbids stale use in its place. Nobody waits for an origin to fail once more, but once in a while a request
/// that nobody else can ask in place of.
pub(super) fn stands_in(quest: &Quest<'_>, exchange: &Exchange, ask: &Ask, now: Now) -> Option<StaleReason> {
    let stored = ask.selected.as_ref().filter(|_| ask.forward == Forward::Stale)?;
    let may = |cause| larder_cache::may_stand_in(&stored.head, now, cause, &exchange.settings.policy);
    let failed = match stored.refreshing.failure(now.monotonic, FAILURE_MEMORY) {
        Some(RefreshFailure::Error) => may(StaleCause::OriginError),
        Some(RefreshFailure::Dead) => may(StaleCause::OriginDead),
        None => None,
    };
    let reason = failed.or_else(|| quest.is_origin_down().then(|| may(StaleCause::OriginDead)).flatten())?;
    let asks_itself =
        is_own(exchange, stored) && quest.has_prospect() && stored.refreshing.may_begin(now.monotonic, PAUSE);
    (!asks_itself).then_some(reason)
}
