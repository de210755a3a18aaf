//! A client's exchange, from request to response: where the way of a request branches between the steps.
//!
//! In: a request. Out: the response. Each step below has a module of its own; what is decided here is only which comes next:
//! route and rule, static files, then [`cached`] or [`pass`], and [`reply`] for what is said. Of requests with content only
//! QUERY may be answered from what is stored; its content is read first ([`content`]), for it belongs to the key. The future is dropped when
//! the client leaves: nothing it waits for depends on it, since a fetch is a task of its own ([`crate::forward`]); only
//! what nobody else can use (an upload, a bypass) ends with it.

mod aim;
mod cached;
mod content;
mod context;
mod counted;
mod fragment;
mod kept;
mod look;
mod outcome;
mod page;
mod page_answer;
mod pass;
mod post;
mod privilege;
mod proof;
mod purge;
mod refresh;
mod renew;
mod reply;
mod resume;
mod serving;
mod sheet;
mod transport;
mod turned_away;
mod used;
mod way;

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::Guard;
use bytes::Bytes;
use http::header::VIA;
use larder_http::fields::cache_status::Outcome;
use larder_http::fields::cookie;
use larder_http::message::{Peer, Request, RequestHead};
use larder_http::target::Target;
use larder_listen::Interims;
use larder_origin::ServerTag;

use crate::asked::{Asked, Asker, MatchedRule};
use crate::detail;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::fetch::{self, ClientHop};
use crate::plan::Plan;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;
use crate::{key, route};
pub(crate) use aim::Aim;
use content::Inside;
use context::RequestContext;
pub(crate) use fragment::{failure_of, has_private_key};
use purge::PurgeCall;
pub(crate) use refresh::standing_in;
pub(crate) use serving::Serving;
use turned_away::TurnedAwayRequest;
use way::{looks_at_once, reply_to};

/// Serves one request.
pub(crate) fn serve(worker: &Arc<Worker>, request: Request, interims: &Interims) -> Serving {
    let worker_plan = worker.worker_plan.load();
    if purge::may_be_one(&worker_plan.plan, &request.head) && purge::is_one(&worker_plan.plan, &request.head)
    {
        return purging(worker, &worker_plan.plan, request);
    }
    if let Some(proof) = proof::of(worker, &request.head, &request.peer) {
        let answered =
            turned_away::answer_with(worker, (&request.head, &request.peer), proof, detail::ACME_PROOF);
        return Serving::Answered(Some(answered));
    }
    let Request { mut head, body, websocket, trailers, peer } = request;
    let privilege = privilege::of(&worker_plan.plan, &mut head, &peer);
    let entered = match enter(worker_plan, &mut head, &peer) {
        Ok(entered) => entered,
        Err(turned) => {
            let answered = turned_away::answer(worker, &head, &peer, turned);
            return Serving::Answered(Some(answered));
        }
    };
    let inside = Inside { body, websocket, announced: trailers.announced };
    let Entered { route, sent_target, server, client, trusted } = entered;
    let takes_trailers = trailers.takes;
    // The last two are known where an origin is asked.
    let hop = ClientHop { peer, is_waiting: true, trusted, takes_trailers, via: true, assembles: false };
    let (asked, asker) = (Asked::new(head, sent_target, route), Asker { hop, server, client });
    let mut exchange = Exchange::new(asked, asker, worker.proxy.clock.now());
    exchange.shows = privilege.shows;
    if privilege.renews {
        renew::invalidate(worker, &exchange);
    }
    let origin = looks_at_once(&exchange, &inside).filter(|_| exchange.asked.take_known_versions());
    exchange.keyed = origin.is_some();
    let mut looked = None;
    if let Some(origin) = origin {
        let now = exchange.started;
        let context = RequestContext {
            worker,
            worker_plan: exchange.asked.route.worker_plan(),
            origin,
            content: Bytes::new(),
        };
        match look::first(&context, &exchange, now) {
            Ok(used) if used.is_template() => match page::serve(worker, exchange, origin, (used, now)) {
                Ok(serving) => return serving,
                // The request looks again.
                Err(back) => exchange = back,
            },
            Ok(used) => {
                let status = used.status();
                let mut response = used::answer(&context, &exchange, (used, now));
                let close = |response| exchange.close_in_place(worker, response, status);
                let receipt = response.as_mut().map(close);
                // One after the other: a pair of both would be one more copy.
                if let Some(receipt) = receipt
                    && let Some(response) = response
                {
                    return Serving::Answered(Some((response, receipt)));
                }
                // It lay on a disk, and went with its segment a moment later: the request looks again.
            }
            Err(first) => looked = Some(first),
        }
    }
    exchange.asked.route = exchange.asked.route.for_long();
    let (worker, interims) = (Arc::clone(worker), interims.clone());
    Serving::Underway(Box::pin(async move {
        let worker_plan = Arc::clone(exchange.asked.route.worker_plan());
        let refuses_upgrade = inside.websocket && !exchange.site().settings.websocket;
        let mut reply = reply_to(&worker, &worker_plan, &mut exchange, inside, looked, &interims).await;
        if reply.sheet.is_some() {
            reply = Box::pin(page::assembled(&worker, &mut exchange, reply)).await;
        }
        if refuses_upgrade {
            worker.proxy.complain_of_upgrade(exchange.site());
            reply::tell_upgrade_is_off(&mut reply);
        }
        if let (Outcome::Forwarded(_), Some(origin)) = (reply.status.outcome, exchange.site().settings.origin)
        {
            exchange.origin = worker_plan.origin(origin).map(|(choice, _)| Arc::clone(&choice.name));
        }
        exchange.close(&worker, reply)
    }))
}

/// Apart from the walk of a hit, which would make room for this one's values.
#[cold]
fn purging(worker: &Arc<Worker>, plan: &Plan, request: Request) -> Serving {
    let call = PurgeCall::new(plan, request.head, request.body, request.peer);
    Serving::Underway(Box::pin(call.answer(Arc::clone(worker))))
}

/// A request that has found where it belongs.
struct Entered {
    route: MatchedRule,
    /// What the client sent, where the rule changed it.
    sent_target: Option<Target>,
    server: Option<ServerTag>,
    client: IpAddr,
    trusted: bool,
}

/// Finds who asks, which site and which rule; the head becomes what will be keyed.
fn enter(
    worker_plan: Guard<Arc<WorkerPlan>>,
    head: &mut RequestHead,
    peer: &Peer,
) -> Result<Entered, TurnedAwayRequest> {
    let (plan, remote) = (&worker_plan.plan, peer.remote.ip());
    let trusted = (plan.trusted)(remote);
    if trusted {
        route::believe_forwarded(head);
    }
    route::drop_unkeyed_fields(head, trusted);
    let (index, site) = plan.router.site(head.authority.host()).ok_or(Failure::UNKNOWN_HOST)?;
    // Most sites are served in clear text, to clients that come so.
    if site.settings.tls.is_some() || peer.tls.is_some() {
        transport::admit(site.settings.tls.as_deref(), head, peer)?;
    }
    let rule = site.rule_for(head).map_err(|_| Failure::CLIMBING_PATH)?;
    if !head.fields.is_empty() && head.fields.contains_key(VIA) && fetch::is_looping(&head.fields) {
        return Err(Failure::LOOP.into());
    }
    let server = take_server(&worker_plan, site.settings.origin, head);
    let settings = site.settings_at(rule);
    settings.request.apply(&mut head.fields);
    let normal = key::normalise(&head.target, &settings.key);
    let sent_target = normal.map(|target| std::mem::replace(&mut head.target, target));
    let client = match trusted {
        true => route::client_of(head, remote, |address| (plan.trusted)(address)),
        false => remote,
    };
    Ok(Entered { route: MatchedRule::new(worker_plan, index, rule), sent_target, server, client, trusted })
}

/// The server that the client has met before, where the origin keeps clients at theirs. The cookie that says so is
/// larder's own: neither the cache nor the origin sees it.
fn take_server(worker_plan: &WorkerPlan, origin: Option<usize>, head: &mut RequestHead) -> Option<ServerTag> {
    let name = worker_plan.choice(origin?)?.sticky.as_ref()?;
    let value = cookie::take(&mut head.fields, name.as_bytes())?;
    std::str::from_utf8(&value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
