//! Requests that only their own clients can use: unsafe methods, bypasses, uploads, tunnels.
//!
//! In: an exchange. Out: the origin's answer as it came. A safe one ends with its client. An unsafe one is handed to a task
//! of its own, because what it takes out of the cache must go whether its client is still there to hear of it or not.
//! An answer to POST that says of itself that it is what a GET would bring is stored for GET on its way to the client
//! (RFC 9110 9.3.3), after the invalidation that the POST causes.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use larder_cache::groups::GroupTags;
use larder_cache::{ExchangeTimes, Storability, directives};
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::target::Target;
use larder_listen::Interims;
use larder_origin::OriginResponse;
use larder_store::CacheKey;
use tokio::sync::oneshot;

use super::{Inside, reply};
use crate::collapse::Trip;
use crate::exchange::{Exchange, InvalidationKind, Reply};
use crate::failure::Failure;
use crate::forward::{self, Candidates, Job, Share};
use crate::proxy::{Furnished, Worker};
use crate::settings::RuleSettings;
use crate::{fetch, invalidate, key};

/// A request that only its own client can use: to the origin and back, and gone when the client leaves.
pub(super) async fn pass(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &mut Exchange,
    origin: usize,
    inside: Inside,
    interims: &Interims,
) -> Reply {
    let interims = interims.clone();
    let websocket = inside.websocket && exchange.site.settings.websocket;
    let sink: larder_origin::InterimSink = Arc::new(move |interim| interims.push(interim));
    let request = fetch::outgoing(&exchange.head, inside.body, websocket, exchange.hop, Some(sink));
    let answered = match larder_cache::is_safe(&exchange.head.method) {
        true => forward::ask(worker, furnished, origin, request).await,
        false => {
            let settle = invalidation(worker, furnished, exchange);
            let answered = forward::act(worker, furnished, origin, request, settle);
            answered.await.unwrap_or(Err(Failure::FETCH_LOST))
        }
    };
    let (answer, times) = match answered {
        Ok(answered) => answered,
        Err(failure) => return reply::failed(Outcome::Own, failure),
    };
    exchange.origin_time = Some(times.delay());
    if let Some((settings, key)) = where_get_looks(exchange, &answer, times) {
        return keep_for_get(worker, furnished, exchange, origin, (settings, &key), (answer, times)).await;
    }
    let (tunnel, mut fields) = (answer.tunnel, answer.fields);
    directives::strip(&mut fields, &exchange.settings.policy.controls);
    let status = CacheStatus { forward_status: Some(answer.status), ..CacheStatus::new(Outcome::Own) };
    let mut response = reply::passed(exchange, answer.status, fields, answer.body, answer.content_length);
    response.tunnel = tunnel;
    Reply { response, status }
}

/// Where the answer to a POST is to be stored for GET: the settings and the key of a GET for the same target.
fn where_get_looks(
    exchange: &Exchange,
    answer: &OriginResponse,
    times: ExchangeTimes,
) -> Option<(Arc<RuleSettings>, CacheKey)> {
    if exchange.head.method != Method::POST {
        return None;
    }
    let mut get = exchange.head.clone();
    get.method = Method::GET;
    get.target = exchange.raw_target.clone();
    let settings = exchange.site.settings_for(&get).ok().filter(|settings| settings.cache)?;
    if let Some(target) = key::normalise(&get.target, &settings.key) {
        get.target = target;
    }
    let judged =
        larder_cache::storable(&exchange.head, answer.status, &answer.fields, times, &settings.policy);
    matches!(judged, Storability::Storable(_)).then(|| (Arc::clone(settings), key::key(&get, &settings.key)))
}

/// Stores the answer to a POST on its way to the client. It is nobody else's to wait for.
async fn keep_for_get(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &Exchange,
    origin: usize,
    (settings, key): (Arc<RuleSettings>, &CacheKey),
    (answer, times): (OriginResponse, ExchangeTimes),
) -> Reply {
    let trip = Trip {
        key,
        rule: Arc::as_ptr(&settings).addr(),
        request: &Arc::new(exchange.head.clone()),
        expected: None,
        number: worker.proxy.numbering.current(),
    };
    let (guard, _) = worker.proxy.flights.alone(trip);
    let (leader, share) = oneshot::channel();
    let job = Job {
        worker: Arc::clone(worker),
        furnished: Arc::clone(furnished),
        settings,
        origin,
        hop: exchange.hop,
        content: Bytes::new(),
        offered: Candidates::default(),
        completing: None,
        leader,
    };
    tokio::spawn(forward::receive(job, guard, answer, times));
    let mut status = CacheStatus::new(Outcome::Own);
    let now = worker.proxy.clock.now();
    let landed = match share.await {
        Ok(Share::Landing { landing, own, seat }) => {
            let response = reply::from_landing(exchange, &landing, &mut status, now);
            drop(seat);
            response.map(|mut response| {
                response.head.fields.extend(own);
                response
            })
        }
        // It was judged to be storable a moment ago.
        _ => None,
    };
    match landed {
        Some(response) => Reply { response, status },
        None => reply::failed(Outcome::Own, Failure::BODY_BROKEN),
    }
}

/// What to do when an unsafe request has been answered, or nobody knows how (RFC 9111 4.4): its URI and those that the
/// answer names are invalidated, in every form in which this site may key them.
fn invalidation(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &Exchange,
) -> impl FnOnce(Option<&OriginResponse>) + Send + 'static {
    let (worker, furnished) = (Arc::clone(worker), Arc::clone(furnished));
    let (site, mut head) = (Arc::clone(&exchange.site), exchange.head.clone());
    head.target = exchange.raw_target.clone();
    move |answer| {
        let gone = match answer {
            Some(answer) => larder_cache::invalidates(&head, answer.status, &answer.fields),
            None => vec![head.target.clone()],
        };
        if gone.is_empty() {
            return;
        }
        if let Some(answer) = answer {
            let groups = GroupTags::invalidated_by(head.scheme, &head.authority, &answer.fields);
            worker.proxy.numbering.invalidate_groups(&groups);
        }
        let forms: Vec<Target> = gone.iter().flat_map(|target| site.forms(target, key::normalise)).collect();
        let flights = &worker.proxy.flights;
        let stores = furnished.plan.stores.iter().map(|store| &**store);
        let ground = |key: &_, number| flights.invalidate(key, number);
        invalidate::invalidate(&worker.proxy.numbering, stores, head.authority.as_str(), &forms, ground);
        worker.metrics.invalidated(&InvalidationKind::UnsafeMethod);
    }
}
