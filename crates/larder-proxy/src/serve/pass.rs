//! Requests that only their own clients can use: unsafe methods, bypasses, uploads, tunnels.
//!
//! In: an exchange. Out: the origin's answer as it came. A safe one ends with its client. An unsafe one is handed to a task
//! of its own, because what it takes out of the cache must go whether its client is still there to hear of it or not.
//! An answer to POST may be kept for GET ([`post`]), after the invalidation that the POST causes.

use std::sync::Arc;

use larder_cache::directives;
use larder_cache::groups::GroupTags;
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::target::Target;
use larder_listen::Interims;
use larder_origin::{Affinity, OriginResponse};

use super::content::Inside;
use super::{post, reply, sheet};
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::fetch::ClientHop;
use crate::invalidation::{How, InvalidationKind, UnderWay, Writing, note_groups};
use crate::objects::sharing::share_unsafe;
use crate::settings::Invalidate;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;
use crate::{fetch, forward, invalidation, key};

/// A request that only its own client can use: to the origin and back, and gone when the client leaves.
pub(super) async fn pass(
    worker: &Arc<Worker>,
    worker_plan: &Arc<WorkerPlan>,
    exchange: &mut Exchange,
    origin: usize,
    inside: Inside,
    interims: &Interims,
) -> Reply {
    let interims = interims.clone();
    let websocket = inside.websocket && exchange.site().settings.websocket;
    let sink: larder_origin::InterimSink = Arc::new(move |interim| interims.push(interim));
    let choice = worker_plan.choice(origin);
    let hop = ClientHop {
        via: choice.is_none_or(|choice| choice.via),
        assembles: exchange.settings().policy.templates.is_on(),
        ..exchange.asker.hop.clone()
    };
    let asker = &exchange.asker;
    let affinity = Affinity { hash: asker.hash(choice, &exchange.asked.head), server: asker.server };
    let to = (hop, affinity);
    let mut request = fetch::outgoing(&exchange.asked.head, inside.body, websocket, to.clone(), Some(sink));
    request.trailers.announced = inside.announced;
    let asks = (origin, exchange.settings().rule_id);
    let acted = match larder_cache::is_safe(&exchange.asked.head.method) {
        true => {
            let mut asked = forward::ask(worker, worker_plan, asks, request).await;
            if let Ok((part, _)) = &asked.answer
                && forward::is_part_of_template(exchange.settings(), part)
            {
                // Of a template all is needed.
                let whole = fetch::without_range(&exchange.asked.head);
                let request = fetch::outgoing(&whole, Body::Empty, false, to, None);
                asked = forward::ask(worker, worker_plan, asks, request).await;
            }
            if let Ok((answer, _)) = &asked.answer {
                let said = (answer.status, &answer.fields);
                let controls = &exchange.settings().policy.controls;
                if let Some(purging) = worker.purge_as_answered(&exchange.asked.head, said, controls) {
                    Writing::of_purge(purging).wait().await;
                }
            }
            let forward::OriginReply { fetched, answer } = asked;
            forward::Acted { fetched, answer: answer.map(|(answer, times)| (answer, times, None)) }
        }
        false => {
            let kept = post::ForGet::before_sending(worker, exchange);
            let settle = invalidation(worker, exchange, kept);
            let acted = forward::act(worker, worker_plan, asks, request, settle);
            acted.await.unwrap_or(forward::Acted { fetched: None, answer: Err(Failure::FETCH_LOST) })
        }
    };
    exchange.fetched = acted.fetched;
    let (answer, times, kept) = match acted.answer {
        Ok(acted) => acted,
        Err(failure) => return reply::failed(Outcome::Own, failure),
    };
    if let Some(kept) = kept.filter(|kept| kept.takes(exchange, &answer, times)) {
        return kept.keep(worker, worker_plan, exchange, origin, (answer, times)).await;
    }
    let mut answer = answer;
    let program = match forward::template_of(exchange.settings(), &exchange.asked.head, &mut answer) {
        Ok(program) => program,
        Err(_) => return reply::failed(Outcome::Own, Failure::TEMPLATE_CODING),
    };
    let (tunnel, mut fields) = (answer.tunnel, answer.fields);
    directives::strip(&mut fields, &exchange.settings().policy.controls);
    exchange.stay(choice, answer.tag, &mut fields);
    let status = CacheStatus { forward_status: Some(answer.status), ..CacheStatus::new(Outcome::Own) };
    reply::announce(&mut fields, answer.announced);
    let sheet = sheet::from_passed(program, &fields, exchange.started.wall);
    let mut response = reply::passed(exchange, answer.status, fields, answer.body, answer.content_length);
    response.tunnel = tunnel;
    Reply { response, status, sheet }
}

/// What to do when an unsafe request has been answered, or nobody knows how (RFC 9111 4.4): its URI and those that the
/// answer names are invalidated, in every form in which this site may key them and in every store that there is by then. Gives
/// back what keeps its own answer, and what its client's waits for.
fn invalidation(
    worker: &Arc<Worker>,
    exchange: &Exchange,
    kept: Option<post::ForGet>,
) -> impl FnOnce(Option<&OriginResponse>) -> (Option<post::ForGet>, Writing) + Send + 'static {
    let worker = Arc::clone(worker);
    let (site, mut head) = (Arc::clone(exchange.site()), exchange.asked.head.clone());
    head.target = exchange.asked.raw_target().clone();
    let settings = Arc::clone(exchange.settings());
    move |answer| {
        let controls = &settings.policy.controls;
        let purging = answer
            .and_then(|answer| worker.purge_as_answered(&head, (answer.status, &answer.fields), controls));
        let Some(mode) = settings.invalidate else { return (kept, Writing::default().with_purge(purging)) };
        let named = match answer {
            Some(answer) => larder_cache::invalidates(&head, answer.status, &answer.fields),
            None => vec![head.target.clone()],
        };
        if named.is_empty() {
            return (kept, Writing::default().with_purge(purging));
        }
        let (proxy, now) = (&worker.proxy, worker.proxy.clock.now());
        let how = match mode {
            Invalidate::Validate => How::Validate(Some(now.monotonic)),
            Invalidate::Remove => How::Remove,
        };
        let own = proxy.announce();
        let (stores, mut kept) = (proxy.begin_invalidation(), kept);
        if let Some(OriginResponse { fields, .. }) = answer {
            let named = GroupTags::invalidated_by(head.scheme, &head.authority, fields);
            let own = GroupTags::of(head.scheme, &head.authority, fields);
            let since = kept.as_ref().map_or(0, |kept| kept.guard().number());
            let (number, was_good) = proxy.invalidations.invalidate_groups((&named, how), &own, since);
            if !named.is_empty() {
                note_groups(&stores, (&head, fields), (number, how, now));
            }
            kept = kept.filter(|_| was_good).map(|kept| kept.after_invalidating(number));
        }
        let forms: Vec<Target> = named.iter().flat_map(|target| site.forms(target, key::normalise)).collect();
        let cause = kept.as_ref().map(post::ForGet::guard);
        let flights = &proxy.flights;
        let under_way = UnderWay {
            any: &|key| flights.any_of_base(key, cause),
            tell: &|key, number, how| flights.invalidate(key, number, how, cause),
        };
        let under = (head.authority.as_str(), &forms[..]);
        let kind = InvalidationKind::UnsafeMethod;
        let done =
            invalidation::invalidate(&proxy.invalidations, &stores, under, (kind, how, now), &under_way);
        // Not before it has its number: an entry that is read back earlier would make fetches from before it look newer.
        let placing = own.and_then(|own| {
            let targets = named.iter().map(Target::as_str);
            share_unsafe(&*own, &head, targets, answer.map(|answer| &answer.fields))
        });
        worker.metrics.invalidated(&kind);
        (
            kept.map(|kept| kept.after_invalidating(done.number)),
            Writing::of(&stores).with_purge(purging).with_placing(placing),
        )
    }
}
