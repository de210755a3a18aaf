//! A client's exchange, from door to door: where the way of a request branches between the rooms.
//!
//! In: a request. Out: the response. Each step below is a room's; what is decided here is only which comes next:
//! route and rule, static files, then [`cached`] or [`pass`], and [`reply`] for what is said. Of requests with content only
//! QUERY may be answered from what is stored; its content is read first ([`content`]), for it belongs to the key. The future is dropped when
//! the client leaves: nothing it waits for depends on it, since a fetch is a task of its own ([`crate::forward`]); only
//! what nobody else can use (an upload, a bypass) ends with it.

mod cached;
mod content;
mod pass;
mod post;
mod refresh;
mod reply;

use std::sync::Arc;

use bytes::Bytes;
use http::header::VIA;
use larder_http::body::Body;
use larder_http::fields::cache_status::{CACHE_STATUS, CacheStatus, Forward, Outcome};
use larder_http::fields::cookie;
use larder_http::message::{Request, RequestHead, Response};
use larder_listen::Interims;
use larder_observe::RouteId;
use larder_origin::ServerTag;

use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::fetch::{self, Hop};
use crate::proxy::{Furnished, Worker};
use crate::root::Found as File;
use crate::settings::ProxySettings;
use crate::{key, respond, route};
use cached::Quest;
use content::Taken;

/// Serves one request.
pub(crate) async fn serve(worker: &Arc<Worker>, request: Request, interims: &Interims) -> Response {
    let furnished = worker.furnished.load_full();
    match enter(worker, &furnished, request) {
        Ok((mut exchange, inside)) => {
            let reply = decide(worker, &furnished, &mut exchange, inside, interims).await;
            if let (Outcome::Forwarded(_), Some(origin)) =
                (reply.status.outcome, exchange.site.settings.origin)
            {
                exchange.origin = furnished.origin(origin).map(|(choice, _)| Arc::clone(&choice.name));
            }
            exchange.close(worker, reply)
        }
        Err((failure, method)) => {
            worker.metrics.request(RouteId::default(), &method, failure.status);
            let mut response = respond::failure(failure);
            let status = CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(Outcome::Own) };
            response.head.fields.append(CACHE_STATUS, status.value());
            response
        }
    }
}

/// What a request carries beside its head.
struct Inside {
    site: usize,
    body: Body,
    websocket: bool,
}

type Refused = (Failure, http::Method);

/// Route: who asks, which site, which rule; then the head as it will be keyed.
fn enter(worker: &Worker, furnished: &Furnished, request: Request) -> Result<(Exchange, Inside), Refused> {
    let Request { mut head, body, websocket, peer } = request;
    let plan = &furnished.plan;
    let trusted = (plan.trusted)(peer.remote.ip());
    if trusted {
        route::believe_forwarded(&mut head);
    }
    route::drop_unkeyed_fields(&mut head, trusted);
    let Some((index, site)) = plan.router.site(head.authority.host()) else {
        return Err((Failure::UNKNOWN_HOST, head.method));
    };
    let Ok(settings) = site.settings_for(&head) else {
        return Err((Failure::CLIMBING_PATH, head.method));
    };
    if head.fields.contains_key(VIA) && fetch::is_looping(&head.fields) {
        return Err((Failure::LOOP, head.method));
    }
    let server = take_server(furnished, site.settings.origin, &mut head);
    let raw_target = head.target.clone();
    settings.request.apply(&mut head.fields);
    if let Some(target) = key::normalise(&head.target, &settings.key) {
        head.target = target;
    }
    let exchange = Exchange {
        raw_target,
        client: route::client_of(&head, peer.remote.ip(), |address| (plan.trusted)(address)),
        origin: None,
        hop: Hop { peer, is_waiting: true, trusted },
        server,
        site: Arc::clone(site),
        settings: Arc::clone(settings),
        keyed: false,
        started: worker.proxy.clock.now(),
        collapse_wait: None,
        origin_time: None,
        head,
    };
    Ok((exchange, Inside { site: index, body, websocket }))
}

/// The server that the client has met before, where the origin keeps clients at theirs. The cookie that says so is
/// larder's own: neither the cache nor the origin sees it.
fn take_server(furnished: &Furnished, origin: Option<usize>, head: &mut RequestHead) -> Option<ServerTag> {
    let name = furnished.choice(origin?)?.sticky.as_ref()?;
    let value = cookie::take(&mut head.fields, name.as_bytes())?;
    std::str::from_utf8(&value).ok()?.parse().ok()
}

async fn decide(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &mut Exchange,
    mut inside: Inside,
    interims: &Interims,
) -> Reply {
    if let Some(Some(root)) = furnished.plan.roots.get(inside.site) {
        match root.find(&exchange.head).await {
            File::File(file) => return reply::static_file(exchange, file),
            File::Directory(location) => return reply::redirect(&location),
            File::Nothing => {}
        }
    }
    let is_get = matches!(exchange.head.method, http::Method::GET | http::Method::HEAD);
    let Some(origin) = exchange.site.settings.origin.filter(|origin| furnished.origin(*origin).is_some())
    else {
        return reply::failed(Outcome::Own, if is_get { Failure::NO_SUCH_FILE } else { Failure::METHOD });
    };
    let quest = |content| Quest { worker, furnished, origin, content };
    let (reason, detail) = match exchange.settings.passes_by(&exchange.head.method) {
        Some(reason) => (reason, None),
        _ if inside.websocket && exchange.site.settings.websocket => (Forward::Bypass, Some("upgrade")),
        _ if is_get && inside.body.is_empty() => {
            return cached::cached(quest(Bytes::new()), exchange, interims).await;
        }
        _ if is_get => (Forward::Bypass, Some("request-body")),
        _ => match content::take(inside.body, ProxySettings::QUERY_CONTENT_MAX).await {
            Ok(Taken::All(content)) => return cached::cached(quest(content), exchange, interims).await,
            Ok(Taken::TooLong(body)) => {
                inside.body = body;
                (Forward::Bypass, Some("query-too-large"))
            }
            Err(error) => return reply::failed(Outcome::Own, Failure::of_content(error)),
        },
    };
    let mut reply = pass::pass(worker, furnished, exchange, origin, inside, interims).await;
    reply.status.outcome = Outcome::Forwarded(reason);
    reply.status.detail = reply.status.detail.or(detail);
    reply
}
