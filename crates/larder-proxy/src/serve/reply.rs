//! What is said in the end, and the Cache-Status that goes with it.
//!
//! In: what the steps brought. Out: a [`Reply`]. No decision about whom to ask is made here any more.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE, CONTENT_TYPE, LOCATION, TRAILER};
use http::{HeaderMap, HeaderValue, StatusCode};
use larder_cache::{Answer, StaleCause, StoredHead};
use larder_http::body::Body;
use larder_http::fields::cache_status::{CacheStatus, Outcome};
use larder_http::message::{Response, ResponseHead};
use larder_http::time::Now;
use larder_origin::OriginResponse;
use larder_store::{CacheKey, Held};

use super::sheet::{self, Sheeted};
use crate::collapse::{Kept, PassedAnswer, SharedResponse};
use crate::detail::UPGRADE_IS_OFF;
use crate::exchange::{Exchange, Reply};
use crate::failure::Failure;
use crate::lookup::Miss;
use crate::not_stored::NotStored;
use crate::respond::{self, Represented};
use crate::root;
use crate::worker::Worker;

/// No answer from the origin: what is stale where nothing forbids it, else the failure.
pub(super) fn stale_or_failed(
    worker: &Arc<Worker>,
    exchange: &Exchange,
    (key, miss): (&CacheKey, &Miss),
    failure: Failure,
    mut status: CacheStatus,
) -> Reply {
    let now = worker.proxy.clock.now();
    status.detail = Some(failure.detail);
    let cause = StaleCause::OriginDead;
    let selected = miss.selected.as_ref().filter(|_| failure.dead);
    let head = selected.and_then(|stored| worker.proxy.invalidations.head_of(key, stored, miss.since));
    let may = |head: &StoredHead| {
        larder_cache::may_serve_stale(head, now, cause, &exchange.settings().policy).is_ok()
    };
    match selected.zip(head.filter(|head| may(head))) {
        Some((stored, head)) => {
            status.ttl_seconds = Some(head.freshness.ttl_seconds(now));
            let age = head.freshness.age(now);
            from_stored(exchange, Held::Shared(Arc::clone(stored)), age, now, status)
                .unwrap_or_else(|| Reply::new(respond::failure(failure), status))
        }
        None => Reply::new(respond::failure(failure), status),
    }
}

/// A stored response, as far as the request asks for it. `None` where its body lies on a disk and is not there any more.
#[inline(always)]
pub(super) fn from_stored(
    exchange: &Exchange,
    stored: Held,
    current_age: Duration,
    now: Now,
    status: CacheStatus,
) -> Option<Reply> {
    let stored = match sheet::from_stored(exchange, stored, current_age, status) {
        Sheeted::Template(reply) => return Some(reply),
        Sheeted::Plain(stored) => stored,
        Sheeted::Gone => return None,
    };
    Some(Reply::new(of_stored(exchange, stored, current_age, now)?, status))
}

/// The response alone.
#[inline(always)]
pub(super) fn of_stored(
    exchange: &Exchange,
    stored: Held,
    current_age: Duration,
    now: Now,
) -> Option<Response> {
    let shown = exchange.shows_tags().then(|| Arc::clone(&stored.head));
    let mut response = respond::represent(&exchange.asked.head, Represented::Stored(stored), now.wall);
    if let Some(response) = &mut response {
        response.head.age = Some(current_age.as_secs());
        if let Some(head) = shown {
            show_tags(&head, &mut response.head.fields);
        }
    }
    response
}

/// Adds the fields with the tags that clients are not sent otherwise.
#[inline(never)]
fn show_tags(head: &StoredHead, fields: &mut HeaderMap) {
    let (Some(tags), Some(controls)) = (&head.tags, &head.controls) else { return };
    for name in tags.names() {
        for value in controls.get_all(name) {
            fields.append(name, value.clone());
        }
    }
}

/// A response that is arriving, as far as the request asks for it. `None` where its body takes no new readers.
pub(super) fn from_shared(
    exchange: &Exchange,
    shared: &SharedResponse,
    status: &mut CacheStatus,
    now: Now,
) -> Option<Response> {
    let head = &shared.head;
    let mut response =
        respond::represent(&exchange.asked.head, Represented::Arriving(head, &shared.body), now.wall)?;
    if exchange.shows_tags() {
        show_tags(head, &mut response.head.fields);
    }
    tell_shared(shared, status, now);
    Some(response)
}

/// What Cache-Status says of it.
pub(super) fn tell_shared(shared: &SharedResponse, status: &mut CacheStatus, now: Now) {
    status.forward_status = Some(shared.forward_status);
    status.stored = shared.not_stored.is_none();
    status.detail = shared.not_stored;
    status.ttl_seconds = Some(shared.head.freshness.ttl_seconds(now));
}

/// The origin's answer as it came.
pub(super) fn passed(
    exchange: &Exchange,
    status: StatusCode,
    fields: HeaderMap,
    body: Body,
    content_length: Option<u64>,
) -> Response {
    let body = match exchange.asked.head.method == http::Method::HEAD {
        // No content says nothing of the length that a GET would get (RFC 9110 8.6).
        true => respond::unsent(content_length.or_else(|| body.length().filter(|length| *length > 0))),
        false => body,
    };
    Response::new(ResponseHead::new(status, fields), body)
}

/// Names the trailers that come behind a body which is passed on. The listener takes the field out where it sends none.
pub(super) fn announce(fields: &mut HeaderMap, announced: Option<HeaderValue>) {
    if let Some(announced) = announced {
        fields.insert(TRAILER, announced);
    }
}

/// The origin's answer for this client alone, and what it did to what is stored.
pub(super) fn passed_answer(
    exchange: &Exchange,
    passed_on: PassedAnswer,
    mut status: CacheStatus,
    now: Now,
) -> Reply {
    let PassedAnswer { answer, forward_status, kept, program, .. } = passed_on;
    status.forward_status = Some(forward_status);
    match kept {
        Kept::Nothing(reason) => status.detail = Some(reason.token()),
        Kept::Unread => status.detail = Some(NotStored::Unread.token()),
        Kept::Updated(freshness) => status.ttl_seconds = Some(freshness.ttl_seconds(now)),
    }
    let OriginResponse { status: code, mut fields, body, content_length, announced, .. } = *answer;
    announce(&mut fields, announced);
    let sheet = sheet::from_passed(program, &fields, now.wall);
    let response = passed(exchange, code, fields, body, content_length);
    match sheet {
        Some(_) => Reply { response, status, sheet },
        None => Reply::new(conditionally(exchange, response, now), status),
    }
}

/// Conditions that were kept from the origin are answered from what it sent. The answer is for this client alone, so
/// everything that it may say to it stays (a cookie that it sets above all): only what describes content goes.
fn conditionally(exchange: &Exchange, response: Response, now: Now) -> Response {
    let head = &response.head;
    match larder_cache::answer(&exchange.asked.head, head.status, &head.fields, None, now.wall) {
        Answer::NotModified => {
            let mut fields = response.head.fields;
            for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_RANGE, TRAILER] {
                fields.remove(name);
            }
            Response::new(ResponseHead::new(StatusCode::NOT_MODIFIED, fields), Body::Empty)
        }
        _ => response,
    }
}

/// Nothing better than a failure.
pub(super) fn failed(outcome: Outcome, failure: Failure) -> Reply {
    let status = CacheStatus { detail: Some(failure.detail), ..CacheStatus::new(outcome) };
    Reply::new(respond::failure(failure), status)
}

/// Says that the client asked for a WebSocket and the site passes none on, unless there is a failure to tell.
pub(super) fn tell_upgrade_is_off(reply: &mut Reply) {
    let CacheStatus { outcome, forward_status, .. } = reply.status;
    if outcome == Outcome::Hit || forward_status.is_some() {
        reply.status.detail = Some(UPGRADE_IS_OFF);
    }
}

/// A static file.
pub(super) fn static_file(exchange: &Exchange, file: &root::StaticFile) -> Reply {
    let fields = root::fields(file);
    let status = CacheStatus { detail: Some("static-file"), ..CacheStatus::new(Outcome::Own) };
    if let Some((response, sheet)) = sheet::from_file(exchange, &fields, file) {
        return Reply { response, status, sheet: Some(sheet) };
    }
    let (size, now) = (file.size(), exchange.started.wall);
    let response = respond::file(&exchange.asked.head, fields, size, now, |range| file.body(range));
    Reply::new(response, status)
}

/// To a directory's own path, with its slash.
pub(super) fn redirect(location: &str) -> Reply {
    let mut fields = HeaderMap::new();
    if let Ok(location) = HeaderValue::from_str(location) {
        fields.insert(LOCATION, location);
    }
    let status = CacheStatus { detail: Some("static-directory"), ..CacheStatus::new(Outcome::Own) };
    let head = ResponseHead::new(StatusCode::MOVED_PERMANENTLY, fields);
    Reply::new(Response::new(head, Body::Empty), status)
}
