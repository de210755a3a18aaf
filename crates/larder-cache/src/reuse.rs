//! Whether a stored response may answer a request (RFC 9111 4), once the request selects it (see [`crate::vary`]).
//!
//! In: what is stored, the request, the moment, the rule's settings. Out: use it, validate it first, or leave it
//! alone, each with its reason. This is the path of a hit: it allocates nothing and parses nothing but the request's
//! own Cache-Control, and its cookies where a configured lifetime makes them matter.
//! A client's wishes (`no-cache`, `max-age`, `min-fresh`) cause one validation, and none where the response was
//! fetched or validated less than [`WISH_GUARD`] ago or lives by a configured lifetime: no client can make the
//! origin work for every request. `max-stale` is not a reason to serve stale; Pragma means nothing.

use std::time::Duration;

use http::header;
use larder_http::fields::cache_control::RequestDirectives;
use larder_http::fields::cache_status::Forward;
use larder_http::message::RequestHead;
use larder_http::time::Now;

use crate::head::StoredHead;
use crate::policy::{CachePolicy, Personal};

/// How recent a response has to be to be used against a client's wish for a fresher one.
pub const WISH_GUARD: Duration = Duration::from_secs(1);

/// May it be used?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Yes, as it is.
    Fresh {
        /// For the field Age.
        age: Duration,
        /// What is left of its lifetime.
        ttl: Duration,
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
        }
    }

    /// The reason in RFC 9211's words.
    pub const fn forward(self) -> Forward {
        match self {
            Self::Stale | Self::NoCache => Forward::Stale,
            Self::RequestNoCache | Self::RequestMaxAge | Self::RequestMinFresh => Forward::Request,
        }
    }
}

/// Why what is stored is not for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnusableReason {
    /// The request has Authorization, and the response lives by a configured lifetime.
    Authorization,
    /// The request has a session cookie, and the response lives by a configured lifetime.
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
    if freshness.source.is_configured()
        && let Some(personal) = policy.personal(&request.fields)
    {
        return Reuse::Unusable(match personal {
            Personal::Authorization => UnusableReason::Authorization,
            Personal::SessionCookie => UnusableReason::SessionCookie,
        });
    }
    let ttl = freshness.remaining(now);
    if ttl.is_zero() {
        return Reuse::Validate(ValidateReason::Stale);
    }
    if freshness.no_cache {
        return Reuse::Validate(ValidateReason::NoCache);
    }
    let age = freshness.age(now);
    match wish(stored, request, now, age, ttl) {
        Some(reason) => Reuse::Validate(reason),
        None => Reuse::Fresh { age, ttl },
    }
}

fn wish(
    stored: &StoredHead,
    request: &RequestHead,
    now: Now,
    age: Duration,
    ttl: Duration,
) -> Option<ValidateReason> {
    let freshness = &stored.freshness;
    if !request.fields.contains_key(header::CACHE_CONTROL)
        || freshness.source.is_configured()
        || freshness.resident(now) < WISH_GUARD
    {
        return None;
    }
    let wishes = RequestDirectives::read(&request.fields);
    if wishes.no_cache {
        Some(ValidateReason::RequestNoCache)
    } else if wishes.max_age.is_some_and(|max_age| age > max_age) {
        Some(ValidateReason::RequestMaxAge)
    } else if wishes.min_fresh.is_some_and(|min_fresh| ttl < min_fresh) {
        Some(ValidateReason::RequestMinFresh)
    } else {
        None
    }
}

/// Whether the client wants an answer without the origin or none: 504 where nothing usable is stored
/// (RFC 9111 5.2.1.7).
pub fn only_if_cached(request: &RequestHead) -> bool {
    request.fields.contains_key(header::CACHE_CONTROL)
        && RequestDirectives::read(&request.fields).only_if_cached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{at_ms, request, stored};
    use crate::policy::Lifetimes;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn check(said: Lines<'_>, asked: Lines<'_>, ms: u64, reason: Option<ValidateReason>) {
        let policy = CachePolicy::default();
        let found = reuse(&stored(&[], said, &policy), &request("GET", asked), at_ms(ms), &policy);
        match (found, reason) {
            (Reuse::Fresh { age, .. }, None) => assert!(age <= Duration::from_millis(ms)),
            (Reuse::Validate(found), Some(reason)) => assert_eq!(found, reason, "{said:?} {asked:?}"),
            _ => panic!("{found:?} instead of {reason:?}: {said:?} {asked:?} after {ms} ms"),
        }
    }

    const FRESH: (&str, &str) = ("cache-control", "max-age=60");

    #[test]
    fn fresh_is_used_and_stale_is_validated() {
        check(&[FRESH], &[], 0, None);
        check(&[FRESH], &[], 59_999, None);
        check(&[FRESH], &[], 60_000, Some(ValidateReason::Stale));
        check(&[("etag", "\"a\"")], &[], 0, Some(ValidateReason::Stale));
        check(
            &[("cache-control", "max-age=60, no-cache"), ("etag", "\"a\"")],
            &[],
            0,
            Some(ValidateReason::NoCache),
        );
        check(&[("cache-control", "max-age=60, must-revalidate")], &[], 1_000, None);
        check(
            &[FRESH],
            &[("authorization", "Basic eDp5"), ("cookie", "sid=1"), ("pragma", "no-cache")],
            5_000,
            None,
        );
    }

    #[test]
    fn a_wish_causes_a_validation_and_at_most_one_per_second() {
        let wish = |value| [("cache-control", value)];
        for (value, reason) in [
            ("no-cache", Some(ValidateReason::RequestNoCache)),
            ("nothing-to-see-here, max-age=0", Some(ValidateReason::RequestMaxAge)),
            ("max-age=3", None),
            ("max-age=2", Some(ValidateReason::RequestMaxAge)),
            ("min-fresh=57", None),
            ("min-fresh=58", Some(ValidateReason::RequestMinFresh)),
            ("max-stale=10, nothing-to-see-here, no-store", None),
        ] {
            check(&[FRESH], &wish(value), 999, None);
            check(&[FRESH], &wish(value), 3_000, reason);
        }
    }

    #[test]
    fn configured_lifetimes_hear_no_wish_and_are_not_for_persons() {
        let lifetimes = Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
        let policy = CachePolicy { ttl: lifetimes, ..CachePolicy::default() };
        let stored = stored(&[], &[("age", "100")], &policy);
        let found = |asked: Lines<'_>, ms| reuse(&stored, &request("GET", asked), at_ms(ms), &policy);
        let fresh = Reuse::Fresh { age: Duration::from_secs(103), ttl: Duration::from_secs(4) };
        assert_eq!(found(&[("cache-control", "no-cache"), ("cookie", "theme=1")], 3_000), fresh);
        assert_eq!(found(&[("cookie", "sid=1")], 3_000), Reuse::Unusable(UnusableReason::SessionCookie));
        assert_eq!(found(&[("authorization", "x")], 9_000), Reuse::Unusable(UnusableReason::Authorization));
        assert_eq!(found(&[], 7_000), Reuse::Validate(ValidateReason::Stale));
    }

    #[test]
    fn only_if_cached_is_heard() {
        assert!(only_if_cached(&request("GET", &[("cache-control", "a, Only-If-Cached")])));
        assert!(!only_if_cached(&request("GET", &[])));
    }
}
