//! Requests that only their own clients can use: unsafe methods, bypasses, uploads, tunnels.
//!
//! In: an exchange. Out: the origin's answer as it came. A safe one ends with its client. An unsafe one is handed to a task
//! of its own, because what it takes out of the cache must go whether its client is still there to hear of it or not.

use std::sync::Arc;

use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::target::Target;
use larder_listen::Interims;
use larder_origin::OriginResponse;

use super::{Inside, reply};
use crate::exchange::{Exchange, InvalidationKind, Reply};
use crate::failure::Failure;
use crate::proxy::{Furnished, Worker};
use crate::{fetch, forward, invalidate, key};

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
    let status = CacheStatus { forward_status: Some(answer.status), ..CacheStatus::new(Outcome::Own) };
    let mut response =
        reply::passed(exchange, answer.status, answer.fields, answer.body, answer.content_length);
    response.tunnel = answer.tunnel;
    Reply { response, status }
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
        let forms: Vec<Target> = gone.iter().flat_map(|target| site.forms(target, key::normalise)).collect();
        let flights = &worker.proxy.flights;
        let stores = furnished.plan.stores.iter().map(|store| &**store);
        let ground = |key: &_, number| flights.invalidate(key, number);
        invalidate::invalidate(&worker.proxy.numbering, stores, head.authority.as_str(), &forms, ground);
        worker.metrics.invalidated(&InvalidationKind::UnsafeMethod);
    }
}
