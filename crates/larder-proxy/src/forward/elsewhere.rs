//! A fetch that another larder may be making: who shares its responses asks first who fetches.
//!
//! In: a fetch that is about to begin. Out: it begins, with the right to fetch for all larders or without; or it is over, because another one
//! has put a response into the store that may be used: then all who wait look again. How long that is waited for is bounded by the store.

use std::sync::Arc;

use http::Method;
use http::header::RANGE;
use larder_cache::{StoredHead, Verdict};
use larder_store::Led;

use super::FetchTask;
use crate::collapse::{FlightGuard, FlightOutcome};
use crate::invalidation::Judge;
use crate::lookup::{Lookup, LookupResult};

/// What asking came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// The origin is to be asked.
    Fetch,
    /// The flight is over.
    Over,
}

/// Whether another larder may be fetching the same.
pub(super) fn may_wait(task: &FetchTask, guard: &FlightGuard) -> bool {
    let (store, request) = (&task.settings.store, guard.request());
    store.asks_for_records()
        && task.may_wait_elsewhere
        && !task.seldom
        && task.completing.is_none()
        && guard.is_shared()
        && request.method == Method::GET
        && !request.fields.contains_key(RANGE)
        && store.may_ask(request, &task.settings.policy)
}

/// Waits for another larder that fetches the same, if there is one.
///
/// # Cancel safety
/// Dropped, another larder may fetch it after a short while.
pub(super) async fn wait(task: &FetchTask, guard: &mut FlightGuard) -> Elsewhere {
    let store = &task.settings.store;
    let number = task.worker.proxy.invalidations.current();
    let request = guard.request().clone();
    let stored = task.offered.selected.as_ref().map(|stored| stored.head.freshness.received);
    // What a purge has come for meanwhile is not what is waited for.
    let (key, worker) = (guard.key().clone(), Arc::clone(&task.worker));
    let is_good = move |head: &StoredHead, number| {
        Judge::new(&worker.proxy.invalidations, None).is_good(&key, head, number)
    };
    let leading = store.lead(guard.key(), &request, (number, stored), &is_good);
    let led = tokio::select! {
        led = leading => led,
        () = guard.abandoned(task.orphan_time()) => return Elsewhere::Over,
    };
    if guard.verdict() != Verdict::Good {
        // A purge has come while it waited. Who comes after that begins a fetch that knows of it, and so does who has waited.
        guard.conclude(FlightOutcome::Overtaken);
        return Elsewhere::Over;
    }
    guard.began(task.worker.proxy.clock.now());
    match led {
        Led::Mine(lead) => guard.leads_for_all(lead),
        Led::Found if is_usable(task, guard) => {
            guard.conclude(FlightOutcome::FetchedElsewhere);
            return Elsewhere::Over;
        }
        Led::Found | Led::Alone => {}
    }
    Elsewhere::Fetch
}

/// Whether memory has a fresh response now. A purge may have come since it was fetched.
fn is_usable(task: &FetchTask, guard: &FlightGuard) -> bool {
    let proxy = &task.worker.proxy;
    let lookup = Lookup {
        rule: &task.settings,
        hot: None,
        key: guard.key(),
        request: guard.request(),
        judge: Judge::new(&proxy.invalidations, None),
    };
    matches!(lookup.look_up(proxy.clock.now()), LookupResult::Fresh { .. })
}
