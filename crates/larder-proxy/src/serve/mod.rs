//! A client's exchange, from request to response: where the way of a request branches between the steps.
//!
//! In: a request. Out: the response. Each step below has a module of its own; what is decided here is only which comes next:
//! route and rule, static files, then [`cached`] or [`pass`], and [`reply`] for what is said. Of requests with content only
//! QUERY may be answered from what is stored; its content is read first ([`content`]), for it belongs to the key. The future is dropped when
//! the client leaves: nothing it waits for depends on it, since a fetch is a task of its own ([`crate::forward`]); only
//! what nobody else can use (an upload, a bypass) ends with it.

mod cached;
mod content;
mod context;
mod look;
mod outcome;
mod pass;
mod post;
mod privilege;
mod purge;
mod refresh;
mod renew;
mod reply;
mod resume;
mod turned_away;
mod used;

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::Guard;
use bytes::Bytes;
use http::header::VIA;
use larder_http::body::Body;
use larder_http::fields::cache_status::Outcome;
use larder_http::fields::cookie;
use larder_http::message::{Request, RequestHead, Response};
use larder_http::target::Target;
use larder_listen::Interims;

use larder_origin::ServerTag;

use crate::asked::{Asked, Asker, MatchedRule};
use crate::decision::{Arrived, ContentRead, Counters, Document, Facts, Next, next};
use crate::exchange::{Exchange, Reply};
use crate::facts::{self, Carried};
use crate::failure::Failure;
use crate::fetch::{self, ClientHop};
use crate::plan::Plan;
use crate::receipt::Receipt;
use crate::root::RootEntry;
use crate::settings::ProxySettings;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;
use crate::{key, route};
use content::{Inside, Taken};
use context::RequestContext;
use look::FirstLook;
use purge::PurgeCall;
pub(crate) use refresh::standing_in;

/// A request that is being served. What is in the index is an answer at once, without a task's state to set up and take
/// down; everything that may have to wait is a future on the heap, so that an idle connection keeps no room for it.
#[expect(clippy::large_enum_variant, reason = "nearly every one is of the large kind")]
pub enum Serving {
    Answered(Option<(Response, Receipt)>),
    Underway(Pin<Box<dyn Future<Output = (Response, Receipt)> + Send>>),
}

impl Future for Serving {
    type Output = (Response, Receipt);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Answered(answer) => Poll::Ready(answer.take().expect("polled after it was ready")),
            Self::Underway(serving) => serving.as_mut().poll(cx),
        }
    }
}

/// Serves one request.
pub(crate) fn serve(worker: &Arc<Worker>, request: Request, interims: &Interims) -> Serving {
    let worker_plan = worker.worker_plan.load();
    if purge::may_be_one(&worker_plan.plan, &request.head) && purge::is_one(&worker_plan.plan, &request.head)
    {
        return purging(worker, &worker_plan.plan, request);
    }
    let Request { mut head, body, websocket, trailers, peer } = request;
    let privilege = privilege::of(&worker_plan.plan, &mut head, &peer);
    let entered = match enter(worker_plan, &mut head, peer.remote.ip()) {
        Ok(entered) => entered,
        Err(failure) => {
            let answered = turned_away::answer(worker, &head, peer.remote.ip(), failure);
            return Serving::Answered(Some(answered));
        }
    };
    let inside = Inside { body, websocket, announced: trailers.announced };
    let Entered { route, sent_target, server, client, trusted } = entered;
    let hop = ClientHop { peer, is_waiting: true, trusted, takes_trailers: trailers.takes, via: true };
    let (asked, asker) = (Asked { head, sent_target, route }, Asker { hop, server, client });
    let mut exchange = Exchange::new(asked, asker, worker.proxy.clock.now());
    exchange.shows = privilege.shows;
    if privilege.renews {
        renew::invalidate(worker, &exchange);
    }
    let origin = looks_at_once(&exchange, &inside);
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

/// The origin of a request that is looked up without anything to wait for before, as nearly every one is. `None` where
/// it goes another way, or where a handshake that the site does not pass on has to be told of.
#[inline(always)]
fn looks_at_once(exchange: &Exchange, inside: &Inside) -> Option<usize> {
    let origin = exchange.site().settings.origin?;
    if exchange.asked.route.root().is_some() || inside.websocket {
        return None;
    }
    let (step, _) = next(&Facts::Arrived(arrived(exchange, inside, None)), Counters::default());
    // Matched, not compared: comparing it cost a hit 36 instructions.
    matches!(step, Next::Look).then_some(origin)
}

/// What is known of a request when it comes.
#[inline(always)]
fn arrived(exchange: &Exchange, inside: &Inside, document: Option<Document>) -> Arrived {
    let (site, rule) = (&exchange.site().settings, exchange.settings());
    let origins = exchange.asked.route.worker_plan().origins().len();
    let carried = Carried { websocket: inside.websocket, has_content: !inside.body.is_empty() };
    facts::arrived(&exchange.asked.head.method, (site, rule), origins, document, carried)
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
    remote: IpAddr,
) -> Result<Entered, Failure> {
    let plan = &worker_plan.plan;
    let trusted = (plan.trusted)(remote);
    if trusted {
        route::believe_forwarded(head);
    }
    route::drop_unkeyed_fields(head, trusted);
    let (index, site) = plan.router.site(head.authority.host()).ok_or(Failure::UNKNOWN_HOST)?;
    let rule = site.rule_for(head).map_err(|_| Failure::CLIMBING_PATH)?;
    if !head.fields.is_empty() && head.fields.contains_key(VIA) && fetch::is_looping(&head.fields) {
        return Err(Failure::LOOP);
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

/// The reply, by the way that the request takes.
async fn reply_to(
    worker: &Arc<Worker>,
    worker_plan: &Arc<WorkerPlan>,
    exchange: &mut Exchange,
    mut inside: Inside,
    looked: Option<Box<FirstLook>>,
    interims: &Interims,
) -> Reply {
    let mut entry = match exchange.asked.route.root() {
        Some(root) => root.find(&exchange.asked.head).await,
        None => RootEntry::Nothing,
    };
    let mut facts = Facts::Arrived(arrived(exchange, &inside, entry.document()));
    let origin = exchange.site().settings.origin.unwrap_or_default();
    let mut content = Bytes::new();
    loop {
        let (step, _) = next(&facts, Counters::default());
        match (step, entry) {
            (Next::File, RootEntry::File(file)) => return reply::static_file(exchange, &file),
            (Next::Redirect, RootEntry::Directory(location)) => return reply::redirect(&location),
            (Next::Look, _) => {
                let context = RequestContext { worker, worker_plan, origin, content };
                return cached::cached(context, exchange, looked, interims).await;
            }
            (Next::Pass { forward, detail }, _) => {
                let mut reply = pass::pass(worker, worker_plan, exchange, origin, inside, interims).await;
                reply.status.outcome = Outcome::Forwarded(forward);
                reply.status.detail = reply.status.detail.or(detail);
                return reply;
            }
            (Next::ReadContent, nothing) => {
                let body = std::mem::replace(&mut inside.body, Body::Empty);
                let read = match content::take(body, ProxySettings::QUERY_CONTENT_MAX).await {
                    Ok(Taken::All(all)) => {
                        content = all;
                        ContentRead::All
                    }
                    Ok(Taken::TooLong(body)) => {
                        inside.body = body;
                        ContentRead::TooLong
                    }
                    Err(error) => ContentRead::Broken(Failure::of_content(error)),
                };
                (facts, entry) = (Facts::ContentRead(read), nothing);
            }
            (Next::Refuse(failure), _) => return reply::failed(Outcome::Own, failure),
            // Nothing else follows on these facts.
            _ => return reply::failed(Outcome::Own, Failure::FETCH_LOST),
        }
    }
}
