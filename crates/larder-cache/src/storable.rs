//! Whether a response may be stored (RFC 9111 3 and 3.5), and for how long it is then fresh.
//!
//! In: a request, the response's head, when both happened, the rule's settings. Out: a [`Freshness`], or the first
//! rule that forbids storing. Everything that could show one client's response to another is decided here: private,
//! no-store, Authorization, cookies, Vary. A response without lifetime is stored when it can be validated, since
//! then the origin is asked each time; one with neither is of no use. Errors cannot be validated.
//! A 206 is judged like the 200 that it is a part of; where the part lies is [`crate::part`]'s. A response to POST is
//! kept for later GETs where it says that it is what they would get. Deliberately absent: anything about size.

mod set_cookie;

use http::{HeaderMap, StatusCode, header};
use larder_http::fields::cache_control::{RequestDirectives, ResponseDirectives};
use larder_http::message::RequestHead;

use crate::age::ExchangeTimes;
use crate::directives::EffectiveDirectives;
use crate::freshness::{Freshness, freshness};
use crate::invalidate::names_own_target;
use crate::jitter::jittered;
use crate::not_storable::NotStorable;
use crate::part::Part;
use crate::policy::{CachePolicy, Personal, Wishes};
use crate::validators::Validators;
use crate::vary::selecting_names;
use set_cookie::by_set_cookie;

/// May it be stored?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storability {
    /// Yes; so long it is fresh.
    Storable(Freshness),
    /// No, because.
    NotStorable(NotStorable),
}

/// Whether what a request brings is for its own client, whatever the response will say: nobody should wait for it.
pub fn is_personal(request: &RequestHead, policy: &CachePolicy) -> bool {
    let fields = &request.fields;
    policy.is_authorized(fields)
        || wants_no_store(fields, policy)
        || (policy.has_lifetimes() && policy.personal(fields).is_some())
}

/// Whether a request has a [cookie](CachePolicy::personal_cookie) by which what it brings may not be for others.
pub fn has_personal_cookie(request: &RequestHead, policy: &CachePolicy) -> bool {
    policy.personal_cookie(&request.fields).is_some()
}

/// Whether a response with such a lifetime may be used for `request`: one that larder gave is for those alone who are
/// nobody in particular to the application.
pub fn is_shared_with(request: &RequestHead, freshness: &Freshness, policy: &CachePolicy) -> bool {
    !is_its_clients_alone(&request.fields, freshness, policy)
}

fn wants_no_store(request: &HeaderMap, policy: &CachePolicy) -> bool {
    policy.request_directives != Wishes::Ignore
        && request.contains_key(header::CACHE_CONTROL)
        && RequestDirectives::read(request).no_store
}

/// Decides whether the response with `status` and `fields` to `request` may be stored. `fields` are all that the origin
/// sent, the private ones included (see [`crate::directives`]).
pub fn storable(
    request: &RequestHead,
    status: StatusCode,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Storability {
    let judged = || storable_as_get(request, status, fields, times, policy);
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    match request.method.as_str() {
        "GET" if is_part && !request.fields.contains_key(header::RANGE) => {
            Storability::NotStorable(NotStorable::PartialContent)
        }
        "QUERY" if is_part => Storability::NotStorable(NotStorable::PartialContent),
        "GET" | "QUERY" => judged(),
        "POST" if status == StatusCode::OK && names_own_target(request, fields) => match judged() {
            Storability::Storable(freshness)
                if !(freshness.source.is_explicit() && freshness.is_shareable()) =>
            {
                Storability::NotStorable(NotStorable::Method)
            }
            judged => judged,
        },
        _ => Storability::NotStorable(NotStorable::Method),
    }
}

/// How long a response is fresh that is not as it came: a whole, or a larger part, that was put together from parts.
/// `status` and `fields` are its own; `before` is the freshness of the part that arrived last, whose age and arrival it
/// keeps, since Age is not among stored fields. `None` where a rule forbids storing it; the parts may stay what they were.
///
/// A part has the lifetimes of its whole, so that nothing differs from `before` unless the fields do: what only the older
/// part said holds for both (RFC 9111 3.4), its `no-cache` or `max-age` as well.
pub fn rejudge(
    request: &RequestHead,
    status: StatusCode,
    fields: &HeaderMap,
    before: &Freshness,
    policy: &CachePolicy,
) -> Option<Freshness> {
    let times = ExchangeTimes { request: before.received, response: before.received };
    match storable(request, status, fields, times, policy) {
        Storability::Storable(anew) => {
            // Another spelling of the target may have another jitter, which must not make a response live longer.
            let is_same = anew.source.is_configured() && anew.source == before.source;
            let lifetime = if is_same { anew.lifetime.min(before.lifetime) } else { anew.lifetime };
            Some(Freshness { initial_age: before.initial_age, lifetime, ..anew })
        }
        Storability::NotStorable(_) => None,
    }
}

/// [`storable`], whatever the method: a HEAD may validate what a GET stored.
pub(crate) fn storable_as_get(
    request: &RequestHead,
    status: StatusCode,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Storability {
    let directives = EffectiveDirectives::read(fields, policy);
    let freshness = freshness(status, fields, &directives, times, policy);
    let asked = &request.fields;
    let forbidden = by_status(status, fields)
        .or_else(|| by_directives(asked, status, &directives.said, policy))
        .or_else(|| by_person(asked, &directives.said, &freshness, policy))
        .or_else(|| selecting_names(fields, policy).is_none().then_some(NotStorable::VaryAny))
        .or_else(|| by_set_cookie(fields, &directives, &freshness, policy))
        .or_else(|| by_usefulness(status, fields, &freshness));
    match forbidden {
        Some(reason) => Storability::NotStorable(reason),
        None => Storability::Storable(jittered(freshness, request, policy)),
    }
}

fn by_status(status: StatusCode, fields: &HeaderMap) -> Option<NotStorable> {
    match status {
        status if status.is_informational() => Some(NotStorable::Interim),
        StatusCode::PARTIAL_CONTENT => Part::of(fields).is_none().then_some(NotStorable::PartialContent),
        StatusCode::NOT_MODIFIED => Some(NotStorable::NotModified),
        StatusCode::PRECONDITION_FAILED => Some(NotStorable::PreconditionFailed),
        StatusCode::RANGE_NOT_SATISFIABLE => Some(NotStorable::RangeNotSatisfiable),
        _ => None,
    }
}

/// Statuses whose caching rules are known here, for `must-understand`: those that RFC 9110 defines.
fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=206 | 300..=303 | 305 | 307 | 308 | 400..=411 | 413..=415 | 417 | 421 | 422 | 426 | 500..=505
    )
}

fn by_directives(
    request: &HeaderMap,
    status: StatusCode,
    directives: &ResponseDirectives,
    policy: &CachePolicy,
) -> Option<NotStorable> {
    if directives.must_understand && !is_understood(status) {
        return Some(NotStorable::MustUnderstand);
    }
    // With must-understand, no-store is meant for caches that do not know the status (RFC 9111 5.2.2.3).
    if directives.no_store && !directives.must_understand {
        return Some(NotStorable::NoStore);
    }
    if directives.private.is_whole() {
        return Some(NotStorable::Private);
    }
    // After what the response says, which holds for all requests and is the better reason to tell.
    wants_no_store(request, policy).then_some(NotStorable::RequestNoStore)
}

fn by_person(
    request: &HeaderMap,
    directives: &ResponseDirectives,
    freshness: &Freshness,
    policy: &CachePolicy,
) -> Option<NotStorable> {
    let lifts = directives.public || directives.permits.must_revalidate || directives.permits.s_maxage;
    if policy.is_authorized(request) && !lifts {
        return Some(NotStorable::Authorization);
    }
    if !freshness.source.is_assumed() {
        return None;
    }
    policy.personal(request).map(|personal| match personal {
        Personal::Credentials(_) => NotStorable::Authorization,
        Personal::Cookie(_) => NotStorable::SessionCookie,
    })
}

/// Whether a response may well be its client's own page: the request has credentials or a cookie that may mean a session,
/// and that others may see the page is not the application's word, since its lifetime is not.
pub(crate) fn is_its_clients_alone(request: &HeaderMap, freshness: &Freshness, policy: &CachePolicy) -> bool {
    freshness.source.is_assumed() && policy.personal(request).is_some()
}

/// What nobody could use: neither a lifetime nor a way to validate it. An error has no such way, whatever its fields say:
/// with a lifetime of zero it must not take the place of a page that went stale and may stand in for it.
fn by_usefulness(status: StatusCode, fields: &HeaderMap, freshness: &Freshness) -> Option<NotStorable> {
    if !freshness.no_cache && !freshness.lifetime.is_zero() {
        return None;
    }
    match Validators::of(status, fields, freshness.received.wall).is_empty() {
        false => None,
        true if freshness.no_cache => Some(NotStorable::NoCache),
        true => Some(NotStorable::NoLifetime),
    }
}

#[cfg(test)]
mod tests;
