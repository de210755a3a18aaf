//! What comes of a fetch for one who waited for it, its leader or a follower.
//!
//! In: the flight, and what the request would be content with. Out: a reply, or that it has to look again, go alone, or count
//! one more lost fetch. A follower takes what somebody else's request brought only where it may use that as it is.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AGE, CACHE_CONTROL, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use larder_cache::{StaleCause, StaleReason, StoredHead};
use larder_http::fields::age;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::time::Now;
use larder_listen::Interims;
use larder_store::{CacheKey, Held};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::cached::RequestContext;
use super::used::from_stored;
use super::{reply, resume};
use crate::collapse::{Event, Follower};
use crate::exchange::{COOKIES_WITHHELD, Exchange, Reply};
use crate::failure::Failure;
use crate::forward::Share;
use crate::lookup::Miss;
use crate::proxy::Worker;
use crate::respond;

/// What a follower, or the leader, was told in the end.
pub(super) enum Told {
    Share(Share),
    Unshared,
    NotForOthers,
    Failed(Failure),
    Lost,
    /// It has waited long enough, and it is its turn to miss.
    TooLate,
}

/// Waits for a flight, passing on interim responses; with `patience` for so long, and then for its turn.
pub(super) async fn wait(
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
        (Event::Landed(shared), None) => {
            Told::Share(Share::SharedResponse { shared, own: HeaderMap::new(), seat: None })
        }
        (Event::Confirmed(stored), None) => Told::Share(Share::Confirmed { stored, own: HeaderMap::new() }),
        (Event::StandIn(stored, status), None) => Told::Share(Share::StandIn(stored, status)),
        (Event::NotForOthers, None) => Told::NotForOthers,
        (Event::Unshared | Event::Interim(_), None) => Told::Unshared,
    }
}

/// Waits until a flight is over that began before something was invalidated; false where it takes longer than `patience`, and
/// then until it is this client's turn.
pub(super) async fn outlast(
    follower: Follower,
    patience: Option<(Duration, impl FnOnce() -> Instant)>,
) -> bool {
    !matches!(wait(follower, None, &Interims::default(), patience).await, Told::TooLate)
}

/// What a request has looked for.
pub(super) struct Wish<'a> {
    pub(super) key: &'a CacheKey,
    pub(super) miss: &'a Miss,
    /// The last invalidation when it came: what was fetched after that is new enough for it.
    pub(super) arrived: u64,
}

/// What comes of what was told.
pub(super) enum Landed {
    Reply(Box<Reply>),
    GoAlone,
    LookAgain,
    Lost,
}

/// The reply that comes of it, or what to do instead.
pub(super) fn land(
    context: &RequestContext<'_>,
    exchange: &mut Exchange,
    wish: &Wish<'_>,
    told: Told,
    collapsed: bool,
) -> Landed {
    let (worker, worker_plan) = (context.worker, context.worker_plan);
    let miss = wish.miss;
    let now = worker.proxy.clock.now();
    let mut status = CacheStatus { collapsed, ..CacheStatus::new(Outcome::Forwarded(miss.forward)) };
    let reply = match told {
        Told::Unshared => return Landed::GoAlone,
        // It was the leader's cookie: with one of its own, a request cannot lead for others either.
        Told::NotForOthers
            if larder_cache::has_personal_cookie(&exchange.head, &exchange.settings().policy) =>
        {
            return Landed::GoAlone;
        }
        Told::NotForOthers => return Landed::LookAgain,
        Told::Lost | Told::TooLate => return Landed::Lost,
        Told::Failed(failure) => reply::stale_or_failed(worker, exchange, (wish.key, miss), failure, status),
        Told::Share(Share::Passed(flown)) => {
            exchange.origin_time = Some(flown.delay);
            let met = flown.answer.tag;
            let mut reply = reply::flown(exchange, flown, status, now);
            exchange.stay(worker_plan.choice(context.origin), met, &mut reply.response.head.fields);
            reply
        }
        Told::Share(Share::Confirmed { stored, mut own }) => {
            // A 304 may bring fields that a condition of the client does not hold for any more: then it wants the
            // whole, which a part is not.
            let is_enough = respond::has_what_is_asked(&exchange.head, &stored, now.wall);
            if !is_enough || collapsed && !is_for(worker, exchange, wish, (&stored.head, stored.number), now)
            {
                return Landed::LookAgain;
            }
            status.forward_status = Some(StatusCode::NOT_MODIFIED);
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            let age = stored.head.freshness.age(now);
            let reply = from_stored(context, exchange, Held::Shared(stored), age, now, status);
            let Some(mut reply) = reply else { return Landed::LookAgain };
            if own.contains_key(SET_COOKIE) {
                reply.status.detail = Some(COOKIES_WITHHELD);
            }
            // The age is ours to tell, also where the origin withholds its own from others.
            own.remove(AGE);
            reply.response.head.fields.extend(own);
            reply
        }
        Told::Share(Share::StandIn(stored, error)) => {
            // What was removed meanwhile is for those who came before that.
            let head = match worker.proxy.numbering.head_of(wish.key, &stored) {
                Some(head) => head,
                None if collapsed => return Landed::LookAgain,
                None => Cow::Borrowed(&*stored.head),
            };
            let cause = StaleCause::OriginError;
            let allowed = larder_cache::may_serve_stale(&head, now, cause, &exchange.settings().policy);
            let is_ours = || {
                larder_cache::is_shared_with(&exchange.head, &head.freshness, &exchange.settings().policy)
                    && head.vary.selects(&exchange.head.fields)
                    && respond::has_what_is_asked(&exchange.head, &stored, now.wall)
            };
            if collapsed && !(allowed.is_ok() && is_ours()) {
                return Landed::LookAgain;
            }
            status.forward_status = Some(error);
            status.ttl_seconds = Some(head.freshness.ttl_seconds(now));
            status.detail = Some(allowed.unwrap_or(StaleReason::StaleIfError).token());
            let age = head.freshness.age(now);
            drop(head);
            match from_stored(context, exchange, Held::Shared(stored), age, now, status) {
                Some(reply) => reply,
                None => return Landed::LookAgain,
            }
        }
        Told::Share(Share::SharedResponse { shared, mut own, seat }) => {
            let head = &shared.head;
            if collapsed && !is_for(worker, exchange, wish, (head, shared.number), now) {
                return Landed::LookAgain;
            }
            let Some(mut response) = reply::from_landing(exchange, &shared, &mut status, now) else {
                // Nobody asks again: the origin has had its request, and what it made of it is known.
                return if shared.body.is_broken() {
                    Landed::Reply(Box::new(reply::stale_or_failed(
                        worker,
                        exchange,
                        (wish.key, miss),
                        Failure::BODY_BROKEN,
                        status,
                    )))
                } else {
                    Landed::GoAlone
                };
            };
            exchange.verdict = Some(Arc::clone(&shared.verdict));
            // The leader's place was held for it until here.
            drop(seat);
            if collapsed {
                own.insert(AGE, age::format(head.freshness.age(now)));
            }
            if own.contains_key(SET_COOKIE) {
                status.detail = status.detail.or(Some(COOKIES_WITHHELD));
            }
            response.head.fields.extend(own);
            if shared.body.may_be_let_go() {
                resume::make_resumable(context, exchange, head, &mut response);
            }
            Reply { response, status }
        }
    };
    Landed::Reply(Box::new(reply))
}

/// Whether what somebody else's request brought is for a follower too: its Vary selects it, nothing that concerns it was
/// invalidated between the beginning of the fetch and the request, and it may be used as it is.
fn is_for(
    worker: &Worker,
    exchange: &Exchange,
    wish: &Wish<'_>,
    (head, number): (&StoredHead, u64),
    now: Now,
) -> bool {
    let is_new = || number >= wish.arrived || worker.proxy.numbering.is_good(wish.key, head, number);
    head.vary.selects(&exchange.head.fields) && is_new() && is_usable(exchange, head, now)
}

/// Whether it may be used as it is. What came after this request did is as new as any wish could miss for, and as fresh as
/// it was on arrival: a lifetime of milliseconds may be over before the last of many that waited is told.
pub(super) fn is_usable(exchange: &Exchange, head: &StoredHead, now: Now) -> bool {
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
