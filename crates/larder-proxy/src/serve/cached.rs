//! GET, HEAD and QUERY on a site that caches: from the index where that is enough, else from a fetch that all who miss
//! share. What is stale and may be used all the same is used at once, and refreshed behind.
//!
//! In: an exchange. Out: its reply. A look never waits ([`look`]); the rest is [`cached`]. Its loop ends: a request looks so often and outlives so many lost fetches, then goes
//! alone or gives up.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use larder_cache::{StaleReason, ValidateReason, Validity};
use larder_http::fields::cache_status::Outcome;
use larder_http::time::Now;
use larder_listen::Interims;
use larder_store::{CacheKey, Held, HotCache, StoredResponse};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::landed::{Landed, Told, Wish, is_usable, land, outlast, wait};
use super::used::{Used, answered};
use super::{refresh, reply};
use crate::collapse::{FlightRequest, Role, SharedResponse};
use crate::exchange::{BY_HAND, Exchange, RefreshKind, Reply};
use crate::failure::Failure;
use crate::fetch::ClientHop;
use crate::forward::{self, Candidates, FetchTask, Share};
use crate::lookup::{Lookup, LookupResult, Miss};
use crate::proxy::{Worker, WorkerPlan};
use crate::settings::RuleSettings;
use crate::{fetch, key};

/// Looks at the index before a request stops hoping that somebody else's fetch will do.
const LOOKS_MAX: usize = 6;

/// The word for a request that would not wait for somebody else's fetch any longer.
const COLLAPSE_WAIT: &str = "collapse-wait";

/// Lost fetches that a request outlives.
const LOST_MAX: usize = 2;

/// What a request asks for, and who asks the origin for it.
pub(super) struct RequestContext<'a> {
    pub(super) worker: &'a Arc<Worker>,
    pub(super) worker_plan: &'a Arc<WorkerPlan>,
    pub(super) origin: usize,
    /// The content of a QUERY, which is part of its key; else nothing.
    pub(super) content: Bytes,
}

impl RequestContext<'_> {
    pub(super) fn task(
        &self,
        exchange: &Exchange,
        offered: Candidates,
        leader: oneshot::Sender<Share>,
    ) -> FetchTask {
        FetchTask {
            worker: Arc::clone(self.worker),
            worker_plan: Arc::clone(self.worker_plan),
            settings: Arc::clone(exchange.settings()),
            origin: self.origin,
            hop: ClientHop {
                via: self.worker_plan.choice(self.origin).is_none_or(|choice| choice.via),
                ..exchange.hop
            },
            affinity: exchange.affinity(self.worker_plan.choice(self.origin), false),
            orphan_time: self.worker_plan.plan.orphan_time,
            content: self.content.clone(),
            before: offered.selected.clone(),
            offered,
            seldom: false,
            completing: None,
            is_behind: false,
            leader,
        }
    }
}

/// What a look brought where that is not enough.
pub(super) struct Looked {
    key: CacheKey,
    miss: Miss,
    now: Now,
    /// The last invalidation then.
    arrived: u64,
}

/// Looks, without waiting for anything. What is stored is the answer wherever it may be.
// Inlined, as is the rest of the way of a hit.
#[inline(always)]
pub(super) fn look(context: &RequestContext<'_>, exchange: &Exchange, now: Now) -> Result<Used, Box<Looked>> {
    let key = key::key(&exchange.head, &exchange.settings().key, &context.content);
    use_stored(context, exchange, &key, None, now).map_err(|miss| looked(context, key, miss, now))
}

#[inline(never)]
fn looked(context: &RequestContext<'_>, key: CacheKey, miss: Miss, now: Now) -> Box<Looked> {
    let arrived = context.worker.proxy.numbering.current();
    Box::new(Looked { key, miss, now, arrived })
}

/// What a look comes to where the body of what it found is not there any more.
#[cold]
pub(super) fn gone(context: &RequestContext<'_>, exchange: &Exchange, now: Now) -> Box<Looked> {
    let key = key::key(&exchange.head, &exchange.settings().key, &context.content);
    looked(context, key, Miss::gone(), now)
}

/// What the index has. With `near` it may come by a handle of the worker's own; without, it is a look under a lock that others
/// wait for, or one that is no use. Of a request that `arrived` a while ago, what was fetched since is new enough for it.
#[inline(always)]
fn find(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (hot, arrived): (Option<&HotCache>, Option<u64>),
    now: Now,
) -> LookupResult {
    lookup(context, exchange, key, (hot, arrived)).look_up(now)
}

#[inline(always)]
fn lookup<'a>(
    context: &'a RequestContext<'_>,
    exchange: &'a Exchange,
    key: &'a CacheKey,
    (hot, arrived): (Option<&'a HotCache>, Option<u64>),
) -> Lookup<'a, impl Fn(&StoredResponse) -> Validity> {
    let numbering = &context.worker.proxy.numbering;
    let is_newer = move |stored: &StoredResponse| arrived.is_some_and(|arrived| stored.number >= arrived);
    let validity = move |stored: &StoredResponse| match numbering.validity(key, stored) {
        Validity::Invalid { .. } if is_newer(stored) => Validity::Good,
        validity => validity,
    };
    Lookup { rule: exchange.settings(), hot, key, request: &exchange.head, validity }
}

/// The answer from what is stored, fresh or standing in, with a refresh behind it where one is due. Fails with what there
/// is to miss the origin.
#[inline(always)]
fn use_stored(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    arrived: Option<u64>,
    now: Now,
) -> Result<Used, Miss> {
    let found = find(context, exchange, key, (Some(&context.worker.hot), arrived), now);
    use_found(context, exchange, key, (now, arrived), found)
}

/// The same from what a look has found.
#[inline(always)]
fn use_found(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (now, arrived): (Now, Option<u64>),
    found: LookupResult,
) -> Result<Used, Miss> {
    let find_again = || find(context, exchange, key, (None, arrived), context.worker.proxy.clock.now());
    let refresh = |stored: &Arc<StoredResponse>, kind| {
        refresh::refresh(context, exchange, key, (stored, kind), || find_again().has(stored));
    };
    let miss = match found {
        LookupResult::Fresh { stored, age, ttl } => {
            if refresh::is_due_ahead(exchange, &stored, ttl) {
                refresh(&stored, RefreshKind::Ahead);
            }
            let stale = ttl.is_zero().then_some(StaleReason::MaxStale.token());
            let detail = stale.or(stored.body.is_by_hand().then_some(BY_HAND));
            let ttl_seconds = stored.head.freshness.ttl_seconds(now);
            return Ok(Used::Stored { stored, age, ttl_seconds, detail });
        }
        LookupResult::Refresh { stored, age } => {
            refresh(&stored, RefreshKind::Behind);
            let detail = Some(StaleReason::WhileRevalidate.token());
            let ttl_seconds = stored.head.freshness.ttl_seconds(now);
            return Ok(Used::Stored { stored, age, ttl_seconds, detail });
        }
        LookupResult::Miss(miss) => miss,
    };
    // What a disk may have is stored as well.
    if !miss.may_recall && larder_cache::only_if_cached(&exchange.head, &exchange.settings().policy) {
        return Ok(Used::Failed(Failure::ONLY_IF_CACHED));
    }
    let Some((stored, head, reason)) = refresh::standing_in(context, exchange, (key, &miss), now) else {
        return Err(miss);
    };
    let ttl_seconds = head.freshness.ttl_seconds(now);
    let unchanged = || matches!(find_again(), LookupResult::Miss(again) if again.is_same(&miss));
    refresh::refresh(context, exchange, key, (stored, RefreshKind::Down), unchanged);
    let age = stored.head.freshness.age(now);
    let (stored, detail) = (Held::Shared(Arc::clone(stored)), Some(reason.token()));
    Ok(Used::Stored { stored, age, ttl_seconds, detail })
}

/// Looks, where that has not been done, and where it is not enough, asks the origin once for all who wait.
pub(super) async fn cached(
    context: RequestContext<'_>,
    exchange: &mut Exchange,
    looked: Option<Box<Looked>>,
    interims: &Interims,
) -> Reply {
    let (worker, worker_plan) = (context.worker, context.worker_plan);
    exchange.keyed = true;
    let looked = match looked {
        Some(looked) => *looked,
        None => {
            let now = worker.proxy.clock.now();
            match look(&context, exchange, now) {
                Ok(used) => match answered(&context, exchange, (used, now)) {
                    Some(reply) => return reply,
                    None => *gone(&context, exchange, now),
                },
                Err(looked) => *looked,
            }
        }
    };
    let Looked { key, miss, now, arrived } = looked;
    let mut first = Some((miss, now));
    let settings = Arc::clone(exchange.settings());
    let numbering = &worker.proxy.numbering;
    let mut alone = larder_cache::is_personal(&exchange.head, &settings.policy);
    let (mut looks, mut lost) = (0, 0);
    let (mut impatient, mut went_alone) = (false, false);
    let mut seldom = None;
    let mut recalled = false;
    loop {
        let (mut miss, now) = match first.take() {
            Some(first) => first,
            None => {
                let now = worker.proxy.clock.now();
                match use_stored(&context, exchange, &key, Some(arrived), now) {
                    Ok(used) => match answered(&context, exchange, (used, now)) {
                        Some(reply) => return reply,
                        None => (Miss::gone(), now),
                    },
                    Err(miss) => (miss, now),
                }
            }
        };
        // Once per request: what was not found on the disks then is not there.
        let may_recall = miss.may_recall && !std::mem::replace(&mut recalled, true);
        let aside = (None, Some(arrived));
        if may_recall && let Some(found) = lookup(&context, exchange, &key, aside).recall(now).await {
            match use_found(&context, exchange, &key, (now, Some(arrived)), found) {
                Ok(used) => match answered(&context, exchange, (used, now)) {
                    Some(reply) => return reply,
                    None => miss = Miss::gone(),
                },
                Err(other) => miss = other,
            }
        }
        if larder_cache::only_if_cached(&exchange.head, &settings.policy) {
            return reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED);
        }
        let seldom = *seldom.get_or_insert_with(|| is_seldom(worker, &settings, &key, &miss));
        looks += 1;
        alone |= miss.alone || looks > LOOKS_MAX;
        // Under a mark the client's conditions and range are the origin's to answer.
        let mut head = match miss.marked {
            true => exchange.head.clone(),
            false => fetch::for_everyone(&exchange.head),
        };
        // What is for this client alone, or not to be stored yet, costs the origin no content.
        if !alone && !seldom && miss.fetches_with_get(&exchange.head, &settings) {
            head.method = Method::GET;
        }
        let flight_request = FlightRequest {
            key: &key,
            rule: Arc::as_ptr(&settings).addr(),
            request: &Arc::new(head),
            expected: miss.expected(),
            wants_content: exchange.head.method != Method::HEAD,
            number: numbering.current(),
            arrived,
            begun: now,
        };
        let flights = &worker.proxy.flights;
        let seat = if alone {
            if std::mem::take(&mut impatient) {
                worker.metrics.went_alone();
                went_alone = true;
            }
            let (guard, follower) = flights.alone(flight_request);
            Role::Lead(guard, follower)
        } else {
            let usable = |shared: &SharedResponse| {
                let is_new = shared.number >= arrived;
                (is_new || numbering.is_good(&key, &shared.head, shared.number))
                    && is_usable(exchange, &shared.head, now)
            };
            let unchanged = || match find(&context, exchange, &key, aside, worker.proxy.clock.now()) {
                LookupResult::Fresh { .. } | LookupResult::Refresh { .. } => false,
                LookupResult::Miss(again) => again.is_same(&miss),
            };
            flights.board(flight_request, usable, unchanged)
        };
        let (follower, share) = match seat {
            Role::Lead(guard, follower) => {
                let (give, take) = oneshot::channel();
                let others = miss.others_offered(&exchange.head.fields);
                let offered = Candidates { selected: miss.selected.clone(), others };
                let task = context.task(exchange, offered, give);
                let affinity = exchange.affinity(worker_plan.choice(context.origin), true);
                let task = FetchTask { completing: miss.part.clone(), seldom, affinity, ..task };
                // Boxed: the runtime moves what it is given, several times, and this is large.
                tokio::spawn(Box::pin(forward::fly(task, guard)));
                (follower, Some(take))
            }
            Role::Follow(follower) => (follower, None),
            Role::After(follower) => {
                let waited = exchange.collapse_wait.unwrap_or_default();
                let patience = settings.collapse_wait.map(|patience| patience.saturating_sub(waited));
                let patience =
                    patience.map(|patience| (patience, || flights.turn_alone(&key, Instant::now())));
                let is_over = outlast(follower, patience).await;
                let waited = worker.proxy.clock.now().since(&now);
                exchange.collapse_wait = Some(exchange.collapse_wait.unwrap_or_default() + waited);
                if !is_over {
                    (alone, impatient) = (true, true);
                }
                // Whoever began before this request came is waited for once.
                looks -= 1;
                continue;
            }
            Role::LookAgain => continue,
            Role::Full => return reply::failed(Outcome::Forwarded(miss.forward), Failure::WAITERS_FULL),
        };
        let collapsed = share.is_none();
        let waited = exchange.collapse_wait.unwrap_or_default();
        let patience = settings.collapse_wait.filter(|_| collapsed && !alone);
        let patience = patience.map(|patience| patience.saturating_sub(waited));
        let patience = patience.map(|patience| (patience, || flights.turn_alone(&key, Instant::now())));
        let told = wait(follower, share, interims, patience).await;
        if collapsed {
            let waited = worker.proxy.clock.now().since(&now);
            exchange.collapse_wait = Some(exchange.collapse_wait.unwrap_or_default() + waited);
        }
        if matches!(told, Told::TooLate) {
            (alone, impatient) = (true, true);
            continue;
        }
        let wish = Wish { key: &key, miss: &miss, arrived };
        match land(&context, exchange, &wish, told, collapsed) {
            Landed::Reply(mut reply) => {
                let why = miss.invalidated.then_some(ValidateReason::Invalidated.token());
                let detail = &mut reply.status.detail;
                *detail = detail.or(went_alone.then_some(COLLAPSE_WAIT)).or(why);
                if miss.invalidated {
                    worker.metrics.request_invalidated();
                }
                return *reply;
            }
            Landed::GoAlone => alone = true,
            Landed::LookAgain => {}
            Landed::Lost if lost == LOST_MAX => {
                return reply::failed(Outcome::Forwarded(miss.forward), Failure::FETCH_LOST);
            }
            Landed::Lost => lost += 1,
        }
    }
}

/// Whether a response to this request is not to be stored yet, because its URL has not been asked for often enough. What
/// is stored already has been.
fn is_seldom(worker: &Worker, settings: &RuleSettings, key: &CacheKey, miss: &Miss) -> bool {
    let is_there = miss.selected.is_some() || miss.part.is_some();
    settings.min_uses > 1 && !is_there && worker.proxy.uses.count(key.hash()) < settings.min_uses
}
