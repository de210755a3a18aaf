//! A client's exchange, from door to door: the one place that branches between the rooms.
//!
//! In: a request. Out: the response. Each step below is a room's; what is decided here is only which comes next. The
//! future is dropped when the client leaves: nothing it waits for depends on it, since a fetch is a task of its own
//! ([`crate::forward`]); only what nobody else can use (an upload, a bypass) ends with it.

use std::sync::Arc;

use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE, CONTENT_TYPE, LOCATION, VIA};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::StoredHead;
use larder_http::body::Body;
use larder_http::fields::age;
use larder_http::fields::cache_status::{CACHE_STATUS, CacheStatus, Forward, Outcome};
use larder_http::message::{Request, Response, ResponseHead};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_listen::Interims;
use larder_observe::RouteId;
use larder_origin::OriginResponse;
use tokio::sync::oneshot;

use crate::collapse::{Event, Follower, Seat, Trip};
use crate::exchange::{Exchange, InvalidationKind, NotStored, Reply};
use crate::failure::Failure;
use crate::fetch::{self, Hop};
use crate::forward::{self, Candidates, Flown, Job, Share};
use crate::lookup::{Ask, Found, look_up};
use crate::proxy::{Furnished, Worker};
use crate::respond::{self, Content, Represented};
use crate::root::Found as File;
use crate::{invalidate, key, root, route};

/// Looks at the index before a request stops hoping that somebody else's fetch will do.
const LOOKS_MAX: usize = 6;

/// Lost fetches that a request outlives.
const LOST_MAX: usize = 2;

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
    let raw_target = head.target.clone();
    settings.request.apply(&mut head.fields);
    if let Some(target) = key::normalise(&head.target, &settings.key) {
        head.target = target;
    }
    let exchange = Exchange {
        raw_target,
        client: route::client_of(&head, peer.remote.ip(), |address| (plan.trusted)(address)),
        origin: None,
        hop: Hop { client: peer.remote.ip(), trusted },
        site: Arc::clone(site),
        settings: Arc::clone(settings),
        started: worker.proxy.clock.now(),
        collapse_wait: None,
        origin_time: None,
        head,
    };
    Ok((exchange, Inside { site: index, body, websocket }))
}

async fn decide(
    worker: &Arc<Worker>,
    furnished: &Arc<Furnished>,
    exchange: &mut Exchange,
    inside: Inside,
    interims: &Interims,
) -> Reply {
    if let Some(Some(root)) = furnished.plan.roots.get(inside.site) {
        match root.find(&exchange.head).await {
            File::File(file) => return static_file(exchange, file),
            File::Directory(location) => return redirect(&location),
            File::Nothing => {}
        }
    }
    let Some(origin) = exchange.site.settings.origin.filter(|origin| furnished.origin(*origin).is_some())
    else {
        let known = fetch::is_cacheable_method(&exchange.head.method);
        return failed(Outcome::Own, if known { Failure::NO_SUCH_FILE } else { Failure::METHOD });
    };
    let cacheable = fetch::is_cacheable_method(&exchange.head.method);
    let (reason, detail) = match () {
        () if !cacheable => (Forward::Method, None),
        () if !exchange.settings.cache => (Forward::Bypass, None),
        () if inside.websocket && exchange.site.settings.websocket => (Forward::Bypass, Some("upgrade")),
        () if !inside.body.is_empty() => (Forward::Bypass, Some("request-body")),
        () => return cached(worker, furnished, exchange, origin, interims).await,
    };
    let mut reply = pass(worker, furnished, exchange, origin, inside, interims).await;
    reply.status.outcome = Outcome::Forwarded(reason);
    reply.status.detail = reply.status.detail.or(detail);
    reply
}

/// A request that only its own client can use: to the origin and back, and gone when the client leaves.
async fn pass(
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
        Err(failure) => return failed(Outcome::Own, failure),
    };
    exchange.origin_time = Some(times.delay());
    let status = CacheStatus { forward_status: Some(answer.status), ..CacheStatus::new(Outcome::Own) };
    let mut response = passed(exchange, answer.status, answer.fields, answer.body, answer.content_length);
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

/// GET and HEAD on a site that caches: look, and where that is not enough, ask the origin once for all who wait.
async fn cached(
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
                return from_stored(exchange, &stored, age, now, status);
            }
            Found::Ask(ask) => ask,
        };
        if larder_cache::only_if_cached(&exchange.head) {
            return failed(Outcome::Own, Failure::ONLY_IF_CACHED);
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
            Seat::Full => return failed(Outcome::Forwarded(ask.forward), Failure::WAITERS_FULL),
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
                return failed(Outcome::Forwarded(ask.forward), Failure::FETCH_LOST);
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
        Told::Failed(failure) => stale_or_failed(worker, exchange, ask, failure, status),
        Told::Share(Share::Passed(Flown { answer, forward_status, delay, detail })) => {
            status.forward_status = Some(forward_status);
            status.detail = Some(detail);
            exchange.origin_time = Some(delay);
            let OriginResponse { status: code, fields, body, content_length, .. } = *answer;
            let response = passed(exchange, code, fields, body, content_length);
            Reply { response: conditionally(exchange, response, now), status }
        }
        Told::Share(Share::Confirmed(stored)) => {
            let head = &stored.head;
            if collapsed && !(head.vary.selects(&exchange.head.fields) && is_usable(exchange, head, now)) {
                return Landed::LookAgain;
            }
            status.forward_status = Some(StatusCode::NOT_MODIFIED);
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            from_stored(exchange, &stored, stored.head.freshness.age(now), now, status)
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
                    Landed::Reply(Box::new(stale_or_failed(
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

/// No answer from the origin: what is stale where nothing forbids it, else the failure.
fn stale_or_failed(
    worker: &Arc<Worker>,
    exchange: &Exchange,
    ask: &Ask,
    failure: Failure,
    mut status: CacheStatus,
) -> Reply {
    let now = worker.proxy.clock.now();
    status.detail = Some(failure.detail);
    let cause = larder_cache::StaleCause::OriginDead;
    let stale = ask.selected.as_ref().filter(|stored| {
        failure.dead
            && larder_cache::may_serve_stale(&stored.head, now, cause, &exchange.settings.policy).is_ok()
    });
    match stale {
        Some(stored) => {
            status.ttl_seconds = Some(stored.head.freshness.ttl_seconds(now));
            from_stored(exchange, stored, stored.head.freshness.age(now), now, status)
        }
        None => Reply { response: respond::failure(failure), status },
    }
}

fn from_stored(
    exchange: &Exchange,
    stored: &Arc<larder_store::StoredResponse>,
    current_age: std::time::Duration,
    now: Now,
    status: CacheStatus,
) -> Reply {
    let content = Content::Stored(Arc::clone(&stored.body));
    let of = Represented { status: stored.head.status, fields: &stored.head.fields, content };
    let response = respond::represent(&exchange.head, &of, now.wall);
    // A body that is whole always takes another reader.
    let mut response = response.unwrap_or_else(|| respond::failure(Failure::FETCH_LOST));
    response.head.fields.insert(http::header::AGE, age::format(current_age));
    Reply { response, status }
}

/// The origin's answer as it came.
fn passed(
    exchange: &Exchange,
    status: StatusCode,
    fields: HeaderMap,
    body: Body,
    content_length: Option<u64>,
) -> Response {
    let is_head = exchange.head.method == http::Method::HEAD;
    let body = if is_head { respond::unsent(content_length) } else { body };
    Response::new(ResponseHead::new(status, fields), body)
}

/// Conditions that were kept from the origin are answered from what it sent. The answer is for this client alone, so
/// everything that it may say to it stays (a cookie that it sets above all): only what describes content goes.
fn conditionally(exchange: &Exchange, response: Response, now: Now) -> Response {
    let head = &response.head;
    match larder_cache::answer(&exchange.head, head.status, &head.fields, None, now.wall) {
        larder_cache::Answer::NotModified => {
            let mut fields = response.head.fields;
            for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE] {
                fields.remove(name);
            }
            Response::new(ResponseHead::new(StatusCode::NOT_MODIFIED, fields), Body::Empty)
        }
        _ => response,
    }
}

fn failed(outcome: Outcome, failure: Failure) -> Reply {
    let status = CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(outcome) };
    Reply { response: respond::failure(failure), status }
}

fn static_file(exchange: &Exchange, file: root::StaticFile) -> Reply {
    let fields = root::fields(&file);
    let (size, now) = (file.size(), exchange.started.wall);
    let response = respond::file(&exchange.head, fields, size, now, |range| file.body(range));
    let status = CacheStatus { detail: Some("static-file"), ..CacheStatus::new(Outcome::Own) };
    Reply { response, status }
}

fn redirect(location: &str) -> Reply {
    let mut fields = HeaderMap::new();
    if let Ok(location) = HeaderValue::from_str(location) {
        fields.insert(LOCATION, location);
    }
    let status = CacheStatus { detail: Some("static-directory"), ..CacheStatus::new(Outcome::Own) };
    let head = ResponseHead::new(StatusCode::MOVED_PERMANENTLY, fields);
    Reply { response: Response::new(head, Body::Empty), status }
}
