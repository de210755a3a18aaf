//! Whether a stored response may answer a request (RFC 9111 4), once the request selects it (see [`crate::vary`]).
//!
//! In: what is stored, the request, the moment, the rule's settings. Out: use it, use it and refresh it behind, validate
//! it first, or leave it alone, each with its reason. This is the path of a hit: it allocates nothing and parses nothing
//! but the request's own Cache-Control, and its cookies where a lifetime that the application did not give makes them matter.
//! A client's wishes (`no-cache`, `max-age`, `min-fresh`) cause one validation, and none where the response was
//! fetched or validated less than [`WISH_GUARD`] ago or lives by a configured lifetime: no client can make the
//! origin work for every request. A rule may honour them without that guard, and `max-stale` with them (RFC 9111
//! 5.2.1.2), or ignore them all. Pragma means nothing.

use std::time::Duration;

use http::{HeaderMap, header};
use larder_http::fields::cache_control::{Argument, Directives, RequestDirectives};
use larder_http::fields::cache_status::Forward;
use larder_http::message::RequestHead;
use larder_http::time::Now;

use crate::freshness::LifetimeSource;
use crate::head::StoredHead;
use crate::policy::{CachePolicy, Personal, Wishes};
use crate::stale::{StaleCause, may_refresh_behind, may_serve_stale};

/// How recent a response has to be to be used against a client's wish for a fresher one.
pub const WISH_GUARD: Duration = Duration::from_secs(1);

/// May it be used?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Yes, as it is.
    Fresh {
        /// For the field Age.
        age: Duration,
        /// What is left of its lifetime; zero where it is stale and the client's `max-stale` is honoured.
        ttl: Duration,
    },
    /// Yes, at once, and it is to be refreshed behind: it is stale within the stale-while-revalidate that it has or the rule
    /// gives it (RFC 5861 3).
    Refresh {
        /// For the field Age.
        age: Duration,
        /// How long it has been stale.
        staleness: Duration,
    },
    /// Only after asking the origin.
    Validate(ValidateReason),
    /// Not for this request; what is stored stays as it is.
    Unusable(UnusableReason),
}

/// Why the origin has to be asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValidateReason {
    /// The lifetime has passed.
    Stale,
    /// The response says `no-cache`.
    NoCache,
    /// The request says `no-cache`.
    RequestNoCache,
    /// It is older than the request's `max-age`.
    RequestMaxAge,
    /// It is not fresh for as long as the request's `min-fresh`.
    RequestMinFresh,
    /// It was stored under other rules about cookies.
    OtherRules,
    /// An unsafe request has invalidated it.
    Invalidated,
    /// A soft purge has ended its lifetime.
    SoftPurged,
    /// Whether a purge concerns it is not known any more.
    BelowFloor,
}

impl ValidateReason {
    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::NoCache => "no-cache",
            Self::RequestNoCache => "request-no-cache",
            Self::RequestMaxAge => "request-max-age",
            Self::RequestMinFresh => "request-min-fresh",
            Self::OtherRules => "other-rules",
            Self::Invalidated => "invalidated",
            Self::SoftPurged => "soft-purged",
            Self::BelowFloor => "below-floor",
        }
    }

    /// The reason in RFC 9211's words.
    pub const fn forward(self) -> Forward {
        match self {
            Self::Stale
            | Self::NoCache
            | Self::OtherRules
            | Self::Invalidated
            | Self::SoftPurged
            | Self::BelowFloor => Forward::Stale,
            Self::RequestNoCache | Self::RequestMaxAge | Self::RequestMinFresh => Forward::Request,
        }
    }
}

/// Why what is stored is not for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnusableReason {
    /// The request has credentials, and the application did not give the response its lifetime.
    Authorization,
    /// The request has a cookie that may mean a session, likewise.
    SessionCookie,
}

impl UnusableReason {
    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Authorization => "authorization",
            Self::SessionCookie => "session-cookie",
        }
    }

    /// The reason in RFC 9211's words.
    pub const fn forward(self) -> Forward {
        Forward::Request
    }
}

/// Decides whether `stored`, which `request` selects, may answer it at `now`.
pub fn reuse(stored: &StoredHead, request: &RequestHead, now: Now, policy: &CachePolicy) -> Reuse {
    let freshness = &stored.freshness;
    if !freshness.source.is_explicit()
        && let Some(reason) = unusable(freshness.source, &request.fields, policy)
    {
        return Reuse::Unusable(reason);
    }
    if stored.caution.holds(policy) {
        return Reuse::Validate(ValidateReason::OtherRules);
    }
    let ttl = freshness.remaining(now);
    if ttl.is_zero() {
        return stale(stored, request, now, policy);
    }
    if freshness.no_cache {
        return Reuse::Validate(ValidateReason::NoCache);
    }
    let age = freshness.age(now);
    match wish(stored, request, now, policy) {
        Some(reason) => Reuse::Validate(reason),
        None => Reuse::Fresh { age, ttl },
    }
}

/// Whether the request's client may be somebody to the application, where that did not say how long others may have the
/// response. A file by hand is the operator's word for all but those who have a session.
fn unusable(source: LifetimeSource, request: &HeaderMap, policy: &CachePolicy) -> Option<UnusableReason> {
    if source.is_assumed() {
        return policy.personal(request).map(|personal| match personal {
            Personal::Credentials(_) => UnusableReason::Authorization,
            Personal::Cookie(_) => UnusableReason::SessionCookie,
        });
    }
    if source != LifetimeSource::ByHand || !policy.has_session_by_name(request) {
        return None;
    }
    Some(match policy.is_authorized(request) {
        true => UnusableReason::Authorization,
        false => UnusableReason::SessionCookie,
    })
}

/// What is stale is used where the response, the rule or the client allows it for a while.
fn stale(stored: &StoredHead, request: &RequestHead, now: Now, policy: &CachePolicy) -> Reuse {
    let (age, staleness) = (stored.freshness.age(now), stored.freshness.staleness(now));
    // Nobody's credentials are used for a request that nobody waits for.
    if may_refresh_behind(stored, now, policy)
        && !policy.has_credentials(&request.fields)
        && wish(stored, request, now, policy).is_none()
    {
        return Reuse::Refresh { age, staleness };
    }
    if policy.request_directives == Wishes::Honour
        && max_stale(&request.fields).is_some_and(|wished| staleness <= wished)
        && may_serve_stale(stored, now, StaleCause::OriginDead, policy).is_ok()
        && wish(stored, request, now, policy).is_none()
    {
        return Reuse::Fresh { age, ttl: Duration::ZERO };
    }
    Reuse::Validate(ValidateReason::Stale)
}

/// Which wish of the client, of those that the rule hears, keeps the response from being used as it is.
fn wish(
    stored: &StoredHead,
    request: &RequestHead,
    now: Now,
    policy: &CachePolicy,
) -> Option<ValidateReason> {
    let freshness = &stored.freshness;
    if !request.fields.contains_key(header::CACHE_CONTROL) || freshness.source.is_configured() {
        return None;
    }
    match policy.request_directives {
        Wishes::Ignore => return None,
        Wishes::Guarded if freshness.resident(now) < WISH_GUARD => return None,
        Wishes::Guarded | Wishes::Honour => {}
    }
    let wishes = RequestDirectives::read(&request.fields);
    if wishes.no_cache {
        Some(ValidateReason::RequestNoCache)
    } else if wishes.max_age.is_some_and(|max_age| freshness.age(now) > max_age) {
        Some(ValidateReason::RequestMaxAge)
    } else if wishes.min_fresh.is_some_and(|min_fresh| freshness.remaining(now) < min_fresh) {
        Some(ValidateReason::RequestMinFresh)
    } else {
        None
    }
}

/// For how long past its lifetime the client takes a response: the shortest that it names; without a number for any
/// time. One that is not a number is ignored.
fn max_stale(request: &HeaderMap) -> Option<Duration> {
    let mut shortest: Option<Duration> = None;
    for line in request.get_all(header::CACHE_CONTROL) {
        for (name, argument) in Directives::new(line.as_bytes()) {
            if !name.eq_ignore_ascii_case(b"max-stale") {
                continue;
            }
            let said = match argument {
                Argument::None => Duration::MAX,
                Argument::Token(text) | Argument::Quoted(text) => match seconds(text) {
                    Some(said) => said,
                    None => continue,
                },
                Argument::Malformed(_) => continue,
            };
            shortest = Some(shortest.map_or(said, |before| before.min(said)));
        }
    }
    shortest
}

/// A number of seconds; one that is too large to hold saturates.
fn seconds(digits: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// Whether the client wants an answer without the origin or none: 504 where nothing usable is stored
/// (RFC 9111 5.2.1.7). Never where the rule ignores what clients wish.
pub fn only_if_cached(request: &RequestHead, policy: &CachePolicy) -> bool {
    policy.request_directives != Wishes::Ignore
        && request.fields.contains_key(header::CACHE_CONTROL)
        && RequestDirectives::read(&request.fields).only_if_cached
}

#[cfg(test)]
mod tests;
