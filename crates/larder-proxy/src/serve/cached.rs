//! GET, HEAD and QUERY on a site that caches: from the index where that is enough, else from a fetch that all who ask
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
use crate::lookup::{Ask, Found, Sought};
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
    pub(super) furnished: &'a Arc<WorkerPlan>,
    pub(super) origin: usize,
    /// The content of a QUERY, which is part of its key; else nothing.
    pub(super) content: Bytes,
}

impl RequestContext<'_> {
    pub(super) fn job(
        &self,
        exchange: &Exchange,
        offered: Candidates,
        leader: oneshot::Sender<Share>,
    ) -> FetchTask {
        FetchTask {
            worker: Arc::clone(self.worker),
            furnished: Arc::clone(self.furnished),
            settings: Arc::clone(exchange.settings()),
            origin: self.origin,
            hop: ClientHop {
                via: self.furnished.choice(self.origin).is_none_or(|choice| choice.via),
                ..exchange.hop
            },
            affinity: exchange.affinity(self.furnished.choice(self.origin), false),
            orphan_time: self.furnished.plan.orphan_time,
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
    ask: Ask,
    now: Now,
    /// The last invalidation then.
    arrived: u64,
}

/// Looks, without waiting for anything. What is stored is the answer wherever it may be.
// Inlined, as is the rest of the way of a hit.
#[inline(always)]
pub(super) fn look(quest: &RequestContext<'_>, exchange: &Exchange, now: Now) -> Result<Used, Box<Looked>> {
    let key = key::key(&exchange.head, &exchange.settings().key, &quest.content);
    use_stored(quest, exchange, &key, None, now).map_err(|ask| looked(quest, key, ask, now))
}

#[inline(never)]
fn looked(quest: &RequestContext<'_>, key: CacheKey, ask: Ask, now: Now) -> Box<Looked> {
    let arrived = quest.worker.proxy.numbering.current();
    Box::new(Looked { key, ask, now, arrived })
}

/// What a look comes to where the body of what it found is not there any more.
#[cold]
pub(super) fn gone(quest: &RequestContext<'_>, exchange: &Exchange, now: Now) -> Box<Looked> {
    let key = key::key(&exchange.head, &exchange.settings().key, &quest.content);
    looked(quest, key, Ask::gone(), now)
}

/// What the index has. With `near` it may come by a handle of the worker's own; without, it is a look under a lock that others
/// wait for, or one that is no use. Of a request that `arrived` a while ago, what was fetched since is new enough for it.
#[inline(always)]
fn find(
    quest: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (near, arrived): (Option<&HotCache>, Option<u64>),
    now: Now,
) -> Found {
    sought(quest, exchange, key, (near, arrived)).look_up(now)
}

#[inline(always)]
fn sought<'a>(
    quest: &'a RequestContext<'_>,
    exchange: &'a Exchange,
    key: &'a CacheKey,
    (near, arrived): (Option<&'a HotCache>, Option<u64>),
) -> Sought<'a, impl Fn(&StoredResponse) -> Validity> {
    let numbering = &quest.worker.proxy.numbering;
    let is_newer = move |stored: &StoredResponse| arrived.is_some_and(|arrived| stored.number >= arrived);
    let validity = move |stored: &StoredResponse| match numbering.validity(key, stored) {
        Validity::Invalid { .. } if is_newer(stored) => Validity::Good,
        validity => validity,
    };
    Sought { rule: exchange.settings(), near, key, request: &exchange.head, validity }
}

/// The answer from what is stored, fresh or standing in, with a refresh behind it where one is due. Fails with what there
/// is to ask the origin.
#[inline(always)]
fn use_stored(
    quest: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    arrived: Option<u64>,
    now: Now,
) -> Result<Used, Ask> {
    let found = find(quest, exchange, key, (Some(&quest.worker.near), arrived), now);
    use_found(quest, exchange, key, (now, arrived), found)
}

/// The same from what a look has found.
#[inline(always)]
fn use_found(
    quest: &RequestContext<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    (now, arrived): (Now, Option<u64>),
    found: Found,
) -> Result<Used, Ask> {
    let find_again = || find(quest, exchange, key, (None, arrived), quest.worker.proxy.clock.now());
    let refresh = |stored: &Arc<StoredResponse>, kind| {
        refresh::refresh(quest, exchange, key, (stored, kind), || find_again().has(stored));
    };
    let ask = match found {
        Found::Fresh { stored, age, ttl } => {
            if refresh::is_due_ahead(exchange, &stored, ttl) {
                refresh(&stored, RefreshKind::Ahead);
            }
            let stale = ttl.is_zero().then_some(StaleReason::MaxStale.token());
            let detail = stale.or(stored.body.is_by_hand().then_some(BY_HAND));
            let ttl_seconds = stored.head.freshness.ttl_seconds(now);
            return Ok(Used::Stored { stored, age, ttl_seconds, detail });
        }
        Found::Refresh { stored, age } => {
            refresh(&stored, RefreshKind::Behind);
            let detail = Some(StaleReason::WhileRevalidate.token());
            let ttl_seconds = stored.head.freshness.ttl_seconds(now);
            return Ok(Used::Stored { stored, age, ttl_seconds, detail });
        }
        Found::Ask(ask) => ask,
    };
    // What a disk may have is stored as well.
    if !ask.may_recall && larder_cache::only_if_cached(&exchange.head, &exchange.settings().policy) {
        return Ok(Used::Failed(Failure::ONLY_IF_CACHED));
    }
    let Some((stored, head, reason)) = refresh::standing_in(quest, exchange, (key, &ask), now) else {
        return Err(ask);
    };
    let ttl_seconds = head.freshness.ttl_seconds(now);
    let unchanged = || matches!(find_again(), Found::Ask(again) if again.is_same(&ask));
    refresh::refresh(quest, exchange, key, (stored, RefreshKind::Down), unchanged);
    let age = stored.head.freshness.age(now);
    let (stored, detail) = (Held::Shared(Arc::clone(stored)), Some(reason.token()));
    Ok(Used::Stored { stored, age, ttl_seconds, detail })
}

/// Looks, where that has not been done, and where it is not enough, asks the origin once for all who wait.
pub(super) async fn cached(
    quest: RequestContext<'_>,
    exchange: &mut Exchange,
    looked: Option<Box<Looked>>,
    interims: &Interims,
) -> Reply {
    let (worker, furnished) = (quest.worker, quest.furnished);
    exchange.keyed = true;
    let looked = match looked {
        Some(looked) => *looked,
        None => {
            let now = worker.proxy.clock.now();
            match look(&quest, exchange, now) {
                Ok(used) => match answered(&quest, exchange, (used, now)) {
                    Some(reply) => return reply,
                    None => *gone(&quest, exchange, now),
                },
                Err(looked) => *looked,
            }
        }
    };
    let Looked { key, ask, now, arrived } = looked;
    let mut first = Some((ask, now));
    let settings = Arc::clone(exchange.settings());
    let numbering = &worker.proxy.numbering;
    let mut alone = larder_cache::is_personal(&exchange.head, &settings.policy);
    let (mut looks, mut lost) = (0, 0);
    let (mut impatient, mut went_alone) = (false, false);
    let mut seldom = None;
    let mut recalled = false;
    loop {
        let (mut ask, now) = match first.take() {
            Some(first) => first,
            None => {
                let now = worker.proxy.clock.now();
                match use_stored(&quest, exchange, &key, Some(arrived), now) {
                    Ok(used) => match answered(&quest, exchange, (used, now)) {
                        Some(reply) => return reply,
                        None => (Ask::gone(), now),
                    },
                    Err(ask) => (ask, now),
                }
            }
        };
        // Once per request: what was not found on the disks then is not there.
        let may_recall = ask.may_recall && !std::mem::replace(&mut recalled, true);
        let aside = (None, Some(arrived));
        if may_recall && let Some(found) = sought(&quest, exchange, &key, aside).recall(now).await {
            match use_found(&quest, exchange, &key, (now, Some(arrived)), found) {
                Ok(used) => match answered(&quest, exchange, (used, now)) {
                    Some(reply) => return reply,
                    None => ask = Ask::gone(),
                },
                Err(other) => ask = other,
            }
        }
        if larder_cache::only_if_cached(&exchange.head, &settings.policy) {
            return reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED);
        }
        let seldom = *seldom.get_or_insert_with(|| is_seldom(worker, &settings, &key, &ask));
        looks += 1;
        alone |= ask.alone || looks > LOOKS_MAX;
        // Under a mark the client's conditions and range are the origin's to answer.
        let mut head = match ask.marked {
            true => exchange.head.clone(),
            false => fetch::for_everyone(&exchange.head),
        };
        // What is for this client alone, or not to be stored yet, costs the origin no content.
        if !alone && !seldom && ask.fetches_with_get(&exchange.head, &settings) {
            head.method = Method::GET;
        }
        let trip = FlightRequest {
            key: &key,
            rule: Arc::as_ptr(&settings).addr(),
            request: &Arc::new(head),
            expected: ask.expected(),
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
            let (guard, follower) = flights.alone(trip);
            Role::Lead(guard, follower)
        } else {
            let usable = |landing: &SharedResponse| {
                let is_new = landing.number >= arrived;
                (is_new || numbering.is_good(&key, &landing.head, landing.number))
                    && is_usable(exchange, &landing.head, now)
            };
            let unchanged = || match find(&quest, exchange, &key, aside, worker.proxy.clock.now()) {
                Found::Fresh { .. } | Found::Refresh { .. } => false,
                Found::Ask(again) => again.is_same(&ask),
            };
            flights.board(trip, usable, unchanged)
        };
        let (follower, share) = match seat {
            Role::Lead(guard, follower) => {
                let (give, take) = oneshot::channel();
                let others = ask.others_offered(&exchange.head.fields);
                let offered = Candidates { selected: ask.selected.clone(), others };
                let job = quest.job(exchange, offered, give);
                let affinity = exchange.affinity(furnished.choice(quest.origin), true);
                let job = FetchTask { completing: ask.part.clone(), seldom, affinity, ..job };
                // Boxed: the runtime moves what it is given, several times, and this is large.
                tokio::spawn(Box::pin(forward::fly(job, guard)));
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
            Role::Full => return reply::failed(Outcome::Forwarded(ask.forward), Failure::WAITERS_FULL),
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
        let wish = Wish { key: &key, ask: &ask, arrived };
        match land(&quest, exchange, &wish, told, collapsed) {
            Landed::Reply(mut reply) => {
                let why = ask.invalidated.then_some(ValidateReason::Invalidated.token());
                let detail = &mut reply.status.detail;
                *detail = detail.or(went_alone.then_some(COLLAPSE_WAIT)).or(why);
                if ask.invalidated {
                    worker.metrics.request_invalidated();
                }
                return *reply;
            }
            Landed::GoAlone => alone = true,
            Landed::LookAgain => {}
            Landed::Lost if lost == LOST_MAX => {
                return reply::failed(Outcome::Forwarded(ask.forward), Failure::FETCH_LOST);
            }
            Landed::Lost => lost += 1,
        }
    }
}

/// Whether a response to this request is not to be stored yet, because its URL has not been asked for often enough. What
/// is stored already has been.
fn is_seldom(worker: &Worker, settings: &RuleSettings, key: &CacheKey, ask: &Ask) -> bool {
    let is_there = ask.selected.is_some() || ask.part.is_some();
    settings.min_uses > 1 && !is_there && worker.proxy.uses.count(key.hash()) < settings.min_uses
}
