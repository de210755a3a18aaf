//! What comes of a fetch for one who waited for it, its leader or a follower.
//!
//! In: the flight's outcome, and what the request has looked for. Out: a reply, or why the outcome gives none. A follower takes what somebody else's request brought only where it may use that as it is.

use std::sync::Arc;

use http::StatusCode;
use http::header::{AGE, CACHE_CONTROL, SET_COOKIE};
use larder_cache::{StaleCause, StaleReason, StoredHead};
use larder_http::fields::age;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::time::Now;
use larder_store::{CacheKey, Held};

use super::context::RequestContext;
use super::used::from_stored;
use super::{reply, resume, sheet};
use crate::collapse::FlightOutcome;
use crate::decision::WaitResult;
use crate::detail::COOKIES_WITHHELD;
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::invalidation::{Forgotten, Judge};
use crate::lookup::Miss;
use crate::respond;
use crate::worker::Worker;

/// A request that waited for a flight, and what it has looked for.
pub(super) struct WaitingRequest<'a> {
    pub(super) key: &'a CacheKey,
    pub(super) miss: &'a Miss,
    /// The last invalidation when it came: what was fetched after that is new enough for it.
    pub(super) arrived: u64,
    /// How far predicates had been forgotten when it began to wait: from then on the fetch kept all that concern it.
    pub(super) since: Forgotten,
}

/// The reply that comes of an outcome, or why there is none.
pub(super) fn take(
    context: &RequestContext<'_>,
    exchange: &mut Exchange,
    waiting: &WaitingRequest<'_>,
    outcome: FlightOutcome,
    collapsed: bool,
) -> Result<Box<Reply>, WaitResult> {
    let (worker, worker_plan) = (context.worker, context.worker_plan);
    worker.proxy.heed_lease();
    let miss = waiting.miss;
    let now = worker.proxy.clock.now();
    let mut status = CacheStatus { collapsed, ..CacheStatus::new(Outcome::Forwarded(miss.forward)) };
    let reply = match outcome {
        FlightOutcome::Unshared => return Err(WaitResult::Unshared),
        FlightOutcome::NotForOthers => {
            let policy = &exchange.settings().policy;
            let has_cookie = larder_cache::has_personal_cookie(&exchange.asked.head, policy);
            return Err(WaitResult::NotForOthers { has_cookie });
        }
        FlightOutcome::Overtaken | FlightOutcome::FetchedElsewhere => return Err(WaitResult::Unfit),
        FlightOutcome::Lost => return Err(WaitResult::Lost),
        FlightOutcome::Failed(failure) => {
            reply::stale_or_failed(worker, exchange, (waiting.key, miss), failure, status)
        }
        FlightOutcome::Passed(passed) => {
            let met = passed.answer.tag;
            let mut reply = reply::passed_answer(exchange, passed, status, now);
            exchange.stay(worker_plan.choice(context.origin), met, &mut reply.response.head.fields);
            reply
        }
        FlightOutcome::Confirmed { stored, mut own } => {
            // A 304 may bring fields that a condition of the client does not hold for any more: then it wants the
            // whole, which a part is not.
            let is_enough = respond::has_what_is_asked(&exchange.asked.head, &stored, now.wall);
            if !is_enough
                || collapsed && !is_for(worker, exchange, waiting, (&stored.head, stored.number), now)
            {
                return Err(WaitResult::Unfit);
            }
            status.forward_status = Some(StatusCode::NOT_MODIFIED);
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            let age = stored.head.freshness.age(now);
            let reply = from_stored(context, exchange, Held::Shared(stored), age, now, status);
            let Some(mut reply) = reply else { return Err(WaitResult::Unfit) };
            if own.contains_key(SET_COOKIE) {
                reply.status.detail = Some(COOKIES_WITHHELD);
            }
            // The age is ours to tell, also where the origin withholds its own from others.
            own.remove(AGE);
            reply.response.head.fields.extend(own);
            reply
        }
        FlightOutcome::StandIn { stored, since, status: error } => {
            // What was removed meanwhile is for those who came before that.
            let invalidations = &worker.proxy.invalidations;
            let head = match collapsed {
                true => invalidations.head_of(waiting.key, &stored, since),
                false => invalidations.head_before_removal(waiting.key, &stored, since),
            };
            let Some(head) = head else { return Err(WaitResult::Unfit) };
            let cause = StaleCause::OriginError;
            let allowed = larder_cache::may_serve_stale(&head, now, cause, &exchange.settings().policy);
            let is_ours = || {
                larder_cache::is_shared_with(
                    &exchange.asked.head,
                    &head.freshness,
                    &exchange.settings().policy,
                ) && head.vary.selects(&exchange.asked.head.fields)
                    && respond::has_what_is_asked(&exchange.asked.head, &stored, now.wall)
            };
            if collapsed && !(allowed.is_ok() && is_ours()) {
                return Err(WaitResult::Unfit);
            }
            status.forward_status = Some(error);
            status.ttl_seconds = Some(head.freshness.ttl_seconds(now));
            status.detail = Some(allowed.unwrap_or(StaleReason::StaleIfError).token());
            let age = head.freshness.age(now);
            drop(head);
            match from_stored(context, exchange, Held::Shared(stored), age, now, status) {
                Some(reply) => reply,
                None => return Err(WaitResult::Unfit),
            }
        }
        FlightOutcome::Shared { response: shared, mut own, reader } => {
            let head = &shared.head;
            if collapsed && !is_for(worker, exchange, waiting, (head, shared.number), now) {
                return Err(WaitResult::Unfit);
            }
            let sheet = sheet::from_shared(&shared);
            let (response, sheet) = match sheet {
                Some(Some((response, sheet))) => {
                    reply::tell_shared(&shared, &mut status, now);
                    (Some(response), Some(sheet))
                }
                Some(None) => (None, None),
                None => (reply::from_shared(exchange, &shared, &mut status, now), None),
            };
            let Some(mut response) = response else {
                // Nobody asks again: the origin has had its request, and what it made of it is known.
                if !shared.body.is_broken() {
                    return Err(WaitResult::BodyClosed);
                }
                let failure = Failure::BODY_BROKEN;
                let reply = reply::stale_or_failed(worker, exchange, (waiting.key, miss), failure, status);
                return Ok(Box::new(reply));
            };
            exchange.storing = Some(Arc::clone(&shared.storing));
            // The leader's place was held for it until here.
            drop(reader);
            if collapsed {
                own.insert(AGE, age::format(head.freshness.age(now)));
            }
            if own.contains_key(SET_COOKIE) {
                status.detail = status.detail.or(Some(COOKIES_WITHHELD));
            }
            response.head.fields.extend(own);
            if sheet.is_none() && shared.body.may_be_let_go() {
                resume::make_resumable(context, exchange, head, &mut response);
            }
            Reply { response, status, sheet }
        }
    };
    Ok(Box::new(reply))
}

/// Whether what somebody else's request brought is for a follower too: its Vary selects it, nothing that concerns it was
/// invalidated between the beginning of the fetch and the request, and it may be used as it is.
fn is_for(
    worker: &Worker,
    exchange: &Exchange,
    waiting: &WaitingRequest<'_>,
    (head, number): (&StoredHead, u64),
    now: Now,
) -> bool {
    let judge = Judge::since(&worker.proxy.invalidations, Some(waiting.arrived), waiting.since);
    let judge = judge.doubting(exchange.asked.versions_not_known().is_some());
    let is_new = || judge.is_good(waiting.key, head, number);
    head.vary.selects(&exchange.asked.head.fields) && is_new() && is_usable(exchange, head, now)
}

/// Whether it may be used as it is. What came after this request did is as new as any request could ask for, and as fresh as
/// it was on arrival: a lifetime of milliseconds may be over before the last of many that waited is told.
pub(super) fn is_usable(exchange: &Exchange, head: &StoredHead, now: Now) -> bool {
    let (policy, request) = (&exchange.settings().policy, &exchange.asked.head);
    let received = head.freshness.received;
    let came_after = received.monotonic >= exchange.started.monotonic;
    let now = if came_after { received } else { now };
    let is_fresh = |request| {
        matches!(larder_cache::reuse(head, request, now, policy), larder_cache::Reuse::Fresh { .. })
    };
    if came_after && request.fields.contains_key(CACHE_CONTROL) {
        let mut plain = request.clone();
        plain.fields.remove(CACHE_CONTROL);
        return is_fresh(&plain);
    }
    is_fresh(request)
}
