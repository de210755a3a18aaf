//! GET and HEAD on a site that caches: from the index where that is enough, else from a fetch that all who ask share.
//!
//! In: an exchange. Out: its reply. The loop ends: a request looks so often and outlives so many lost fetches, then goes
//! alone or gives up.

use std::sync::Arc;

use http::StatusCode;
use larder_cache::StoredHead;
use larder_http::fields::age;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::time::Now;
use larder_listen::Interims;
use larder_origin::OriginResponse;
use tokio::sync::oneshot;

use super::reply;
use crate::collapse::{Event, Follower, Seat, Trip};
use crate::exchange::{Exchange, NotStored, Reply};
use crate::failure::Failure;
use crate::forward::{self, Candidates, Flown, Job, Share};
use crate::lookup::{Ask, Found, look_up};
use crate::proxy::{Furnished, Worker};
use crate::respond::{self, Content, Represented};
use crate::{fetch, key};

/// Looks at the index before a request stops hoping that somebody else's fetch will do.
const LOOKS_MAX: usize = 6;

/// Lost fetches that a request outlives.
const LOST_MAX: usize = 2;

/// GET and HEAD on a site that caches: look, and where that is not enough, ask the origin once for all who wait.
pub(super) async fn cached(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &mut Exchange,
    origin: usize,
    interims: &Interims,
) -> Reply {
    let settings = Arc::clone(&exchange.settings);
    let key = key::key(&exchange.head, &settings.key);
    let look = |head: &_, now| look_up(&settings.store, &key, head, &settings.policy, now);
    let mut alone = larder_cache::is_personal(&exchange.head, &settings.policy);
    let (mut looks, mut lost) = (0, 0);
    loop {
        let now = worker.proxy.clock.now();
        let ask = match look(&exchange.head, now) {
            Found::Fresh { stored, age, ttl } => {
                let status = CacheStatus {
                    ttl_seconds: Some(i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX)),
                    ..CacheStatus::new(Outcome::Hit)
                };
                return reply::from_stored(exchange, &stored, age, now, status);
            }
            Found::Ask(ask) => ask,
        };
        if larder_cache::only_if_cached(&exchange.head) {
            return reply::failed(Outcome::Own, Failure::ONLY_IF_CACHED);
        }
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
        };
        let flights = &worker.proxy.flights;
        let seat = if alone {
            let (guard, follower) = flights.alone(trip);
            Seat::Lead(guard, follower)
        } else {
            let usable = |head: &StoredHead| is_usable(exchange, head, now);
            let unchanged = || match look(&exchange.head, worker.proxy.clock.now()) {
                Found::Fresh { .. } => false,
                Found::Ask(again) => again.is_same(&ask),
            };
            flights.board(trip, usable, unchanged)
        };
        let (follower, share) = match seat {
            Seat::Lead(guard, follower) => {
                let (give, take) = oneshot::channel();
                let job = Job {
                    worker: Arc::clone(worker),
                    furnished: Arc::clone(furnished),
                    settings: Arc::clone(&settings),
                    origin,
                    hop: exchange.hop,
                    offered: Candidates { selected: ask.selected.clone(), others: ask.others.clone() },
                    leader: give,
                };
                tokio::spawn(forward::fly(job, guard));
                (follower, Some(take))
            }
            Seat::Follow(follower) => (follower, None),
            Seat::LookAgain => continue,
            Seat::Full => return reply::failed(Outcome::Forwarded(ask.forward), Failure::WAITERS_FULL),
        };
        let collapsed = share.is_none();
        let landed = wait(follower, share, interims).await;
        if collapsed {
            let waited = worker.proxy.clock.now().since(&now);
            exchange.collapse_wait = Some(exchange.collapse_wait.unwrap_or_default() + waited);
        }
        match land(worker, exchange, &ask, landed, collapsed) {
            Landed::Reply(reply) => return *reply,
            Landed::GoAlone => alone = true,
            Landed::LookAgain => {}
            Landed::Lost if lost == LOST_MAX => {
                return reply::failed(Outcome::Forwarded(ask.forward), Failure::FETCH_LOST);
            }
            Landed::Lost => lost += 1,
        }
    }
}

/// What a follower, or the leader, was told in the end.
enum Told {
    Share(Share),
    Unshared,
    NotForOthers,
    Failed(Failure),
    Lost,
}

/// Waits for a flight, passing on interim responses.
async fn wait(mut follower: Follower, share: Option<oneshot::Receiver<Share>>, interims: &Interims) -> Told {
    let event = loop {
        match follower.next().await {
            Event::Interim(interim) => interims.push(interim),
            event => break event,
        }
    };
    match (event, share) {
        (Event::Failed(failure), _) => Told::Failed(failure),
        (Event::Lost, _) => Told::Lost,
        (_, Some(share)) => share.await.map_or(Told::Lost, Told::Share),
        (Event::Landed(landing), None) => {
            Told::Share(Share::Landing { landing, origin_age: None, seat: None })
        }
        (Event::Confirmed(stored), None) => Told::Share(Share::Confirmed(stored)),
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

fn land(worker: &Arc<Worker>, exchange: &mut Exchange, ask: &Ask, told: Told, collapsed: bool) -> Landed {
    let now = worker.proxy.clock.now();
    let mut status = CacheStatus { collapsed, ..CacheStatus::new(Outcome::Forwarded(ask.forward)) };
    let reply = match told {
        Told::Unshared => return Landed::GoAlone,
        Told::NotForOthers => return Landed::LookAgain,
        Told::Lost => return Landed::Lost,
        Told::Failed(failure) => reply::stale_or_failed(worker, exchange, ask, failure, status),
        Told::Share(Share::Passed(Flown { answer, forward_status, delay, detail })) => {
            status.forward_status = Some(forward_status);
            status.detail = Some(detail);
            exchange.origin_time = Some(delay);
            let OriginResponse { status: code, fields, body, content_length, .. } = *answer;
            let response = reply::passed(exchange, code, fields, body, content_length);
            Reply { response: reply::conditionally(exchange, response, now), status }
        }
        Told::Share(Share::Confirmed(stored)) => {
            let head = &stored.head;
            if collapsed && !(head.vary.selects(&exchange.head.fields) && is_usable(exchange, head, now)) {
                return Landed::LookAgain;
            }
            status.forward_status = Some(StatusCode::NOT_MODIFIED);
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            reply::from_stored(exchange, &stored, stored.head.freshness.age(now), now, status)
        }
        Told::Share(Share::Landing { landing, origin_age, seat }) => {
            let head = &landing.head;
            if collapsed && !(head.vary.selects(&exchange.head.fields) && is_usable(exchange, head, now)) {
                return Landed::LookAgain;
            }
            let content = Content::Growing(Arc::clone(&landing.body));
            let of = Represented { status: head.status, fields: &head.fields, content };
            let Some(mut response) = respond::represent(&exchange.head, &of, now.wall) else {
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
            status.forward_status = Some(head.status);
            status.stored = landing.stored;
            status.detail = (!landing.stored).then_some(NotStored::NoRoom.token());
            status.ttl_seconds = Some(head.freshness.ttl_seconds(now));
            let age = if collapsed { Some(age::format(head.freshness.age(now))) } else { origin_age };
            if let Some(age) = age {
                response.head.fields.insert(http::header::AGE, age);
            }
            Reply { response, status }
        }
    };
    Landed::Reply(Box::new(reply))
}

/// Whether a follower may use what somebody else's request brought.
fn is_usable(exchange: &Exchange, head: &larder_cache::StoredHead, now: Now) -> bool {
    matches!(
        larder_cache::reuse(head, &exchange.head, now, &exchange.settings.policy),
        larder_cache::Reuse::Fresh { .. }
    )
}
