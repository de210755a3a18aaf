//! GET, HEAD and QUERY on a site that caches: from the index where that is enough, else from a fetch that all who ask
//! share. What is stale and may be used all the same is used at once, and refreshed behind.
//!
//! In: an exchange. Out: its reply. A look never waits ([`look`]); the rest is [`cached`]. Its loop ends: a request looks so often and outlives so many lost fetches, then goes
//! alone or gives up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AGE, CACHE_CONTROL};
use http::{HeaderMap, StatusCode};
use larder_cache::{StaleCause, StaleReason, StoredHead};
use larder_http::fields::age;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::time::Now;
use larder_listen::Interims;
use larder_store::{CacheKey, Held, Near, StoredResponse};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{refresh, reply};
use crate::collapse::{Event, Follower, Landing, Seat, Trip};
use crate::exchange::{BY_HAND, Exchange, RefreshKind, Reply};
use crate::failure::Failure;
use crate::forward::{self, Candidates, Job, Share};
use crate::lookup::{Ask, Found, Sought};
use crate::proxy::{Furnished, Worker};
use crate::settings::RuleSettings;
use crate::{fetch, key, respond};

/// Looks at the index before a request stops hoping that somebody else's fetch will do.
const LOOKS_MAX: usize = 6;

/// The word for a request that would not wait for somebody else's fetch any longer.
const COLLAPSE_WAIT: &str = "collapse-wait";

/// Lost fetches that a request outlives.
const LOST_MAX: usize = 2;

/// What a request asks for, and who asks the origin for it.
pub(super) struct Quest<'a> {
    pub(super) worker: &'a Arc<Worker>,
    pub(super) furnished: &'a Arc<Furnished>,
    pub(super) origin: usize,
    /// The content of a QUERY, which is part of its key; else nothing.
    pub(super) content: Bytes,
}

impl Quest<'_> {
    pub(super) fn job(
        &self,
        exchange: &Exchange,
        offered: Candidates,
        leader: oneshot::Sender<Share>,
    ) -> Job {
        Job {
            worker: Arc::clone(self.worker),
            furnished: Arc::clone(self.furnished),
            settings: Arc::clone(exchange.settings()),
            origin: self.origin,
            hop: exchange.hop,
            affinity: exchange.affinity(self.furnished.choice(self.origin), false),
            orphan_time: self.furnished.plan.orphan_time,
            content: self.content.clone(),
            offered,
            seldom: false,
            completing: None,
            leader,
        }
    }
}

/// What a look brought where that is not enough.
pub(super) struct Looked {
    key: CacheKey,
    ask: Ask,
    now: Now,
}

/// Looks, without waiting for anything. What is stored is the answer wherever it may be.
// Inlined, as is the rest of the way of a hit: its answer is 300 bytes, which each return would copy once more.
#[inline(always)]
pub(super) fn look(quest: &Quest<'_>, exchange: &Exchange, now: Now) -> Result<Reply, Box<Looked>> {
    let key = key::key(&exchange.head, &exchange.settings().key, &quest.content);
    match use_stored(quest, exchange, &key, now) {
        Ok(reply) => Ok(reply),
        Err(ask) => Err(Box::new(Looked { key, ask, now })),
    }
}

/// What the index has. With `near` it may come by a handle of the worker's own; without, it is a look under a lock that others
/// wait for, or one that is no use.
fn find(quest: &Quest<'_>, exchange: &Exchange, key: &CacheKey, near: Option<&Near>, now: Now) -> Found {
    sought(quest, exchange, key, near).look_up(now)
}

fn sought<'a>(
    quest: &'a Quest<'_>,
    exchange: &'a Exchange,
    key: &'a CacheKey,
    near: Option<&'a Near>,
) -> Sought<'a, impl Fn(&StoredResponse) -> bool> {
    let groups = quest.worker.proxy.numbering.groups();
    let holds = |stored: &StoredResponse| groups.hold(&stored.head.groups, stored.number);
    Sought { rule: exchange.settings(), near, key, request: &exchange.head, holds }
}

/// The answer from what is stored, fresh or standing in, with a refresh behind it where one is due. Fails with what there
/// is to ask the origin.
#[inline(always)]
fn use_stored(quest: &Quest<'_>, exchange: &Exchange, key: &CacheKey, now: Now) -> Result<Reply, Ask> {
    use_found(quest, exchange, key, now, find(quest, exchange, key, Some(&quest.worker.near), now))
}

/// The same from what a look has found.
#[inline(always)]
fn use_found(
    quest: &Quest<'_>,
    exchange: &Exchange,
    key: &CacheKey,
    now: Now,
    found: Found,
) -> Result<Reply, Ask> {
    let find_again = || find(quest, exchange, key, None, quest.worker.proxy.clock.now());
    let refresh = |stored: &Arc<StoredResponse>, kind| {
        refresh::refresh(quest, exchange, key, (stored, kind), || is_found(&find_again(), stored));
    };
    let hit = |stored: &StoredResponse, detail| CacheStatus {
        ttl_seconds: Some(stored.head.freshness.ttl_seconds(now)),
        detail,
        ..CacheStatus::new(Outcome::Hit)
    };
    let ask = match found {
        Found::Fresh { stored, age, ttl } => {
            if refresh::is_due_ahead(exchange, &stored, ttl) {
                refresh(&stored, RefreshKind::Ahead);
            }
            let stale = ttl.is_zero().then_some(StaleReason::MaxStale.token());
            let status = hit(&stored, stale.or(stored.body.is_by_hand().then_some(BY_HAND)));
            return reply::from_stored(exchange, stored, age, now, status).ok_or_else(Ask::gone);
        }
        Found::Refresh { stored, age } => {
            refresh(&stored, RefreshKind::Behind);
            let status = hit(&stored, Some(StaleReason::WhileRevalidate.token()));
            return reply::from_stored(exchange, stored, age, now, status).ok_or_else(Ask::gone);
        }
        Found::Ask(ask) => ask,
    };
    // What a disk may have is stored as well.
    if !ask.may_recall && larder_cache::only_if_cached(&exchange.head, &exchange.settings().policy) {
        return Ok(reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED));
    }
    let Some((stored, reason)) = refresh::standing_in(quest, exchange, &ask, now) else {
        return Err(ask);
    };
    let unchanged = || matches!(find_again(), Found::Ask(again) if again.is_same(&ask));
    refresh::refresh(quest, exchange, key, (stored, RefreshKind::Down), unchanged);
    let age = stored.head.freshness.age(now);
    let status = hit(stored, Some(reason.token()));
    reply::from_stored(exchange, Held::Shared(Arc::clone(stored)), age, now, status).ok_or_else(Ask::gone)
}

/// Looks, where that has not been done, and where it is not enough, asks the origin once for all who wait.
pub(super) async fn cached(
    quest: Quest<'_>,
    exchange: &mut Exchange,
    looked: Option<Box<Looked>>,
    interims: &Interims,
) -> Reply {
    let (worker, furnished) = (quest.worker, quest.furnished);
    exchange.keyed = true;
    let looked = match looked {
        Some(looked) => *looked,
        None => match look(&quest, exchange, worker.proxy.clock.now()) {
            Ok(reply) => return reply,
            Err(looked) => *looked,
        },
    };
    let Looked { key, ask, now } = looked;
    let mut first = Some((ask, now));
    let settings = Arc::clone(exchange.settings());
    let groups = worker.proxy.numbering.groups();
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
                match use_stored(&quest, exchange, &key, now) {
                    Ok(reply) => return reply,
                    Err(ask) => (ask, now),
                }
            }
        };
        // Once per request: what was not found on the disks then is not there.
        let may_recall = ask.may_recall && !std::mem::replace(&mut recalled, true);
        if may_recall && let Some(found) = sought(&quest, exchange, &key, None).recall(now).await {
            match use_found(&quest, exchange, &key, now, found) {
                Ok(reply) => return reply,
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
        let head = match ask.marked {
            true => exchange.head.clone(),
            false => fetch::for_everyone(&exchange.head),
        };
        let trip = Trip {
            key: &key,
            rule: Arc::as_ptr(&settings).addr(),
            request: &Arc::new(head),
            expected: ask.expected(),
            number: worker.proxy.numbering.current(),
            begun: now,
        };
        let flights = &worker.proxy.flights;
        let seat = if alone {
            if std::mem::take(&mut impatient) {
                worker.metrics.went_alone();
                went_alone = true;
            }
            let (guard, follower) = flights.alone(trip);
            Seat::Lead(guard, follower)
        } else {
            let usable = |landing: &Landing| {
                groups.hold(&landing.head.groups, landing.number) && is_usable(exchange, &landing.head, now)
            };
            let unchanged = || match find(&quest, exchange, &key, None, worker.proxy.clock.now()) {
                Found::Fresh { .. } | Found::Refresh { .. } => false,
                Found::Ask(again) => again.is_same(&ask) || again.may_hide(&ask),
            };
            flights.board(trip, usable, unchanged)
        };
        let (follower, share) = match seat {
            Seat::Lead(guard, follower) => {
                let (give, take) = oneshot::channel();
                let offered = Candidates { selected: ask.selected.clone(), others: ask.others.clone() };
                let job = quest.job(exchange, offered, give);
                let affinity = exchange.affinity(furnished.choice(quest.origin), true);
                let job = Job { completing: ask.part.clone(), seldom, affinity, ..job };
                // Boxed: the runtime moves what it is given, several times, and this is large.
                tokio::spawn(Box::pin(forward::fly(job, guard)));
                (follower, Some(take))
            }
            Seat::Follow(follower) => (follower, None),
            Seat::LookAgain => continue,
            Seat::Full => return reply::failed(Outcome::Forwarded(ask.forward), Failure::WAITERS_FULL),
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
        match land(&quest, exchange, &ask, told, collapsed) {
            Landed::Reply(mut reply) => {
                reply.status.detail = reply.status.detail.or(went_alone.then_some(COLLAPSE_WAIT));
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

/// Whether a look found `stored` usable.
fn is_found(found: &Found, stored: &Arc<StoredResponse>) -> bool {
    found.usable().is_some_and(|usable| Arc::ptr_eq(usable, stored))
}

/// Whether a response to this request is not to be stored yet, because its URL has not been asked for often enough. What
/// is stored already has been.
fn is_seldom(worker: &Worker, settings: &RuleSettings, key: &CacheKey, ask: &Ask) -> bool {
    let is_there = ask.selected.is_some() || ask.part.is_some();
    settings.min_uses > 1 && !is_there && worker.proxy.uses.count(key.hash()) < settings.min_uses
}

/// What a follower, or the leader, was told in the end.
enum Told {
    Share(Share),
    Unshared,
    NotForOthers,
    Failed(Failure),
    Lost,
    /// It has waited long enough, and it is its turn to ask.
    TooLate,
}

/// Waits for a flight, passing on interim responses; with `patience` for so long, and then for its turn.
async fn wait(
    mut follower: Follower,
    share: Option<oneshot::Receiver<Share>>,
    interims: &Interims,
    patience: Option<(Duration, impl FnOnce() -> Instant)>,
) -> Told {
    let (mut until, mut turn) = patience.map(|(patience, turn)| (Instant::now() + patience, turn)).unzip();
    let event = loop {
        let next = match until {
            None => Ok(follower.next().await),
            Some(until) => tokio::time::timeout_at(until, follower.next()).await,
        };
        match next {
            Ok(Event::Interim(interim)) => interims.push(interim),
            Ok(event) => break event,
            Err(_elapsed) => match turn.take() {
                Some(turn) => until = Some(turn()),
                None => return Told::TooLate,
            },
        }
    };
    match (event, share) {
        (Event::Failed(failure), _) => Told::Failed(failure),
        (Event::Lost, _) => Told::Lost,
        (_, Some(share)) => share.await.map_or(Told::Lost, Told::Share),
        (Event::Landed(landing), None) => {
            Told::Share(Share::Landing { landing, own: HeaderMap::new(), seat: None })
        }
        (Event::Confirmed(stored), None) => Told::Share(Share::Confirmed { stored, own: HeaderMap::new() }),
        (Event::StandIn(stored, status), None) => Told::Share(Share::StandIn(stored, status)),
        (Event::NotForOthers, None) => Told::NotForOthers,
        (Event::Unshared | Event::Interim(_), None) => Told::Unshared,
    }
}

/// What comes of what was told.
enum Landed {
    Reply(Box<Reply>),
    GoAlone,
    LookAgain,
    Lost,
}

fn land(quest: &Quest<'_>, exchange: &mut Exchange, ask: &Ask, told: Told, collapsed: bool) -> Landed {
    let (worker, furnished) = (quest.worker, quest.furnished);
    let now = worker.proxy.clock.now();
    let mut status = CacheStatus { collapsed, ..CacheStatus::new(Outcome::Forwarded(ask.forward)) };
    let reply = match told {
        Told::Unshared => return Landed::GoAlone,
        // It was the leader's session: with one of its own, a request cannot lead for others either.
        Told::NotForOthers if larder_cache::has_session(&exchange.head, &exchange.settings().policy) => {
            return Landed::GoAlone;
        }
        Told::NotForOthers => return Landed::LookAgain,
        Told::Lost | Told::TooLate => return Landed::Lost,
        Told::Failed(failure) => reply::stale_or_failed(worker, exchange, ask, failure, status),
        Told::Share(Share::Passed(flown)) => {
            exchange.origin_time = Some(flown.delay);
            let met = flown.answer.tag;
            let mut reply = reply::flown(exchange, flown, status, now);
            exchange.stay(furnished.choice(quest.origin), met, &mut reply.response.head.fields);
            reply
        }
        Told::Share(Share::Confirmed { stored, mut own }) => {
            // A 304 may bring fields that a condition of the client does not hold for any more: then it wants the
            // whole, which a part is not.
            let is_enough = respond::has_what_is_asked(&exchange.head, &stored, now.wall);
            if !is_enough || collapsed && !is_for(worker, exchange, (&stored.head, stored.number), now) {
                return Landed::LookAgain;
            }
            status.forward_status = Some(StatusCode::NOT_MODIFIED);
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            let age = stored.head.freshness.age(now);
            let reply = reply::from_stored(exchange, Held::Shared(stored), age, now, status);
            let Some(mut reply) = reply else { return Landed::LookAgain };
            // The age is ours to tell, also where the origin withholds its own from others.
            own.remove(AGE);
            reply.response.head.fields.extend(own);
            reply
        }
        Told::Share(Share::StandIn(stored, error)) => {
            let (head, cause) = (&stored.head, StaleCause::OriginError);
            let allowed = larder_cache::may_serve_stale(head, now, cause, &exchange.settings().policy);
            let is_ours = || {
                head.vary.selects(&exchange.head.fields)
                    && worker.proxy.numbering.groups().hold(&head.groups, stored.number)
                    && respond::has_what_is_asked(&exchange.head, &stored, now.wall)
            };
            if collapsed && !(allowed.is_ok() && is_ours()) {
                return Landed::LookAgain;
            }
            status.forward_status = Some(error);
            status.ttl_seconds = Some(head.freshness.ttl_seconds(now));
            status.detail = Some(allowed.unwrap_or(StaleReason::StaleIfError).token());
            let age = head.freshness.age(now);
            match reply::from_stored(exchange, Held::Shared(stored), age, now, status) {
                Some(reply) => reply,
                None => return Landed::LookAgain,
            }
        }
        Told::Share(Share::Landing { landing, mut own, seat }) => {
            let head = &landing.head;
            if collapsed && !is_for(worker, exchange, (head, landing.number), now) {
                return Landed::LookAgain;
            }
            let Some(mut response) = reply::from_landing(exchange, &landing, &mut status, now) else {
                // Nobody asks again: the origin has had its request, and what it made of it is known.
                return if landing.body.is_broken() {
                    Landed::Reply(Box::new(reply::stale_or_failed(
                        worker,
                        exchange,
                        ask,
                        Failure::BODY_BROKEN,
                        status,
                    )))
                } else {
                    Landed::GoAlone
                };
            };
            // The leader's place was held for it until here.
            drop(seat);
            if collapsed {
                own.insert(AGE, age::format(head.freshness.age(now)));
            }
            response.head.fields.extend(own);
            Reply { response, status }
        }
    };
    Landed::Reply(Box::new(reply))
}

/// Whether what somebody else's request brought is for a follower too: its Vary selects it, no invalidation since the
/// fetch began names one of its groups, and it may be used as it is.
fn is_for(worker: &Worker, exchange: &Exchange, (head, number): (&StoredHead, u64), now: Now) -> bool {
    head.vary.selects(&exchange.head.fields)
        && worker.proxy.numbering.groups().hold(&head.groups, number)
        && is_usable(exchange, head, now)
}

/// Whether it may be used as it is. What came after this request did is as new as any wish could ask for, and as fresh as
/// it was on arrival: a lifetime of milliseconds may be over before the last of many that waited is told.
fn is_usable(exchange: &Exchange, head: &StoredHead, now: Now) -> bool {
    let (policy, request) = (&exchange.settings().policy, &exchange.head);
    let received = head.freshness.received;
    let came_after = received.monotonic >= exchange.started.monotonic;
    let now = if came_after { received } else { now };
    let is_fresh = |request| {
        matches!(larder_cache::reuse(head, request, now, policy), larder_cache::Reuse::Fresh { .. })
    };
    if came_after && request.fields.contains_key(CACHE_CONTROL) {
        let mut wishless = request.clone();
        wishless.fields.remove(CACHE_CONTROL);
        return is_fresh(&wishless);
    }
    is_fresh(request)
}
