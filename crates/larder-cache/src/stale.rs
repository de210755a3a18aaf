//! Whether a stale response may be used: in place of an origin that does not answer or answers with an error (RFC 9111
//! 4.2.4, RFC 5861 4), or while it is refreshed behind (RFC 5861 3).
//!
//! In: a stale stored response and the cause. Out: permission or the rule that forbids it, both with a reason. An error is
//! an answer, and is only replaced where the response itself says so (`stale-if-error`); a dead origin gave none.
//! must-revalidate, proxy-revalidate and no-cache forbid all of it; s-maxage implies proxy-revalidate (RFC 9111
//! 5.2.2.10) unless the response itself speaks of stale use. A response that never was fresh is not shown to others:
//! it may be somebody's own page, kept only to be validated.

use std::time::Duration;

use http::StatusCode;
use larder_http::time::Now;

use crate::head::StoredHead;
use crate::policy::CachePolicy;

/// What keeps a stale response from being validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleCause {
    /// The origin gave no final head: refused, reset, timed out, not resolved, no TLS.
    OriginDead,
    /// The origin answered with 500, 502, 503 or 504.
    OriginError,
}

impl StaleCause {
    /// Whether the answer with `status` is an error that a stale response may replace (RFC 5861 4).
    pub fn of_status(status: StatusCode) -> Option<Self> {
        matches!(status.as_u16(), 500 | 502 | 503 | 504).then_some(Self::OriginError)
    }
}

/// On what ground a stale response is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleReason {
    /// Within the rule's `stale_if_dead`.
    OriginDead,
    /// Within the response's own stale-if-error.
    StaleIfError,
    /// It is not stale at all: only a client's wish asked for its validation.
    StillFresh,
    /// Within the response's own stale-while-revalidate, while it is refreshed behind.
    WhileRevalidate,
    /// Within the request's max-stale, where the rule honours it.
    MaxStale,
}

impl StaleReason {
    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::OriginDead => "stale-origin-dead",
            Self::StaleIfError => "stale-if-error",
            Self::StillFresh => "fresh-origin-dead",
            Self::WhileRevalidate => "stale-while-revalidate",
            Self::MaxStale => "max-stale",
        }
    }
}

/// Why a stale response is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleForbidden {
    /// `no-cache`
    NoCache,
    /// `must-revalidate` or `proxy-revalidate`
    MustRevalidate,
    /// `s-maxage` and no word about stale use.
    SMaxage,
    /// It has no lifetime that could have passed.
    NeverFresh,
    /// It has been stale for longer than is allowed.
    TooOld,
    /// The origin answered, with an error, and the response has no `stale-if-error`.
    NotOnError,
}

impl StaleForbidden {
    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::NoCache => "stale-no-cache",
            Self::MustRevalidate => "stale-must-revalidate",
            Self::SMaxage => "stale-s-maxage",
            Self::NeverFresh => "stale-never-fresh",
            Self::TooOld => "stale-too-old",
            Self::NotOnError => "stale-not-on-error",
        }
    }
}

/// Decides whether `stored` may be served at `now` although it could not be validated.
///
/// # Errors
/// The rule that forbids it.
pub fn may_serve_stale(
    stored: &StoredHead,
    now: Now,
    cause: StaleCause,
    policy: &CachePolicy,
) -> Result<StaleReason, StaleForbidden> {
    let (freshness, said) = (&stored.freshness, &stored.stale);
    if freshness.no_cache {
        return Err(StaleForbidden::NoCache);
    }
    if cause == StaleCause::OriginError && said.if_error.is_none() {
        return Err(StaleForbidden::NotOnError);
    }
    if freshness.is_fresh(now) {
        return Ok(StaleReason::StillFresh);
    }
    if said.must_revalidate {
        return Err(StaleForbidden::MustRevalidate);
    }
    if said.s_maxage && said.while_revalidate.is_none() && said.if_error.is_none() {
        return Err(StaleForbidden::SMaxage);
    }
    if freshness.lifetime == Duration::ZERO {
        return Err(StaleForbidden::NeverFresh);
    }
    let (window, reason) = match said.if_error {
        Some(window) => (window, StaleReason::StaleIfError),
        None => (policy.stale_if_dead, StaleReason::OriginDead),
    };
    if freshness.staleness(now) <= window { Ok(reason) } else { Err(StaleForbidden::TooOld) }
}

/// Whether `stored` is stale at `now`, and may be used all the same while somebody validates it: within its
/// stale-while-revalidate, and nothing forbids stale use. `s-maxage` does not: who says the one and the other means it.
pub fn may_refresh_behind(stored: &StoredHead, now: Now) -> bool {
    let (freshness, said) = (&stored.freshness, &stored.stale);
    let allowed = !freshness.no_cache && !said.must_revalidate && freshness.lifetime > Duration::ZERO;
    let within = |window| !freshness.is_fresh(now) && freshness.staleness(now) < window;
    allowed && said.while_revalidate.is_some_and(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{at_ms, stored};
    use crate::policy::Lifetimes;

    fn check(cc: &str, seconds: u64, expected: Result<StaleReason, StaleForbidden>) {
        check_on(StaleCause::OriginDead, cc, seconds, expected);
    }

    fn check_on(cause: StaleCause, cc: &str, seconds: u64, expected: Result<StaleReason, StaleForbidden>) {
        let policy = CachePolicy::default();
        let stored = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], &policy);
        let found = may_serve_stale(&stored, at_ms(seconds * 1000), cause, &policy);
        assert_eq!(found, expected, "{cc} after {seconds} s");
    }

    const DAY: u64 = 24 * 60 * 60;

    #[test]
    fn a_dead_origin_is_stood_in_for_unless_that_is_forbidden() {
        check("max-age=2", 3, Ok(StaleReason::OriginDead));
        check("max-age=2", 2 + DAY, Ok(StaleReason::OriginDead));
        check("max-age=2", 3 + DAY, Err(StaleForbidden::TooOld));
        check("max-age=2", 1, Ok(StaleReason::StillFresh));
        check("max-age=2, must-revalidate", 1, Ok(StaleReason::StillFresh));
        check("max-age=2, must-revalidate", 3, Err(StaleForbidden::MustRevalidate));
        check("max-age=2, proxy-revalidate", 3, Err(StaleForbidden::MustRevalidate));
        check("max-age=2, no-cache", 1, Err(StaleForbidden::NoCache));
        check("s-maxage=2", 3, Err(StaleForbidden::SMaxage));
        check("s-maxage=2, stale-while-revalidate=1", 3, Ok(StaleReason::OriginDead));
        check("s-maxage=2, stale-if-error=10", 12, Ok(StaleReason::StaleIfError));
        check("max-age=2, stale-if-error=10", 13, Err(StaleForbidden::TooOld));
        check("max-age=2, stale-if-error=x", 3, Err(StaleForbidden::TooOld));
        check("max-age=2, must-revalidate, stale-if-error=10", 3, Err(StaleForbidden::MustRevalidate));
        check("max-age=0", 3, Err(StaleForbidden::NeverFresh));
        check("x", 3, Err(StaleForbidden::NeverFresh));
    }

    #[test]
    fn an_error_is_replaced_only_where_the_response_says_so() {
        let on_error = |cc, seconds, expected| check_on(StaleCause::OriginError, cc, seconds, expected);
        on_error("max-age=2, stale-if-error=10", 12, Ok(StaleReason::StaleIfError));
        on_error("max-age=2, stale-if-error=10", 13, Err(StaleForbidden::TooOld));
        on_error("max-age=2, stale-if-error=10", 1, Ok(StaleReason::StillFresh));
        on_error("s-maxage=2, stale-if-error=10", 3, Ok(StaleReason::StaleIfError));
        on_error("max-age=2, stale-if-error=10, must-revalidate", 3, Err(StaleForbidden::MustRevalidate));
        on_error("max-age=2", 3, Err(StaleForbidden::NotOnError));
        on_error("max-age=2", 1, Err(StaleForbidden::NotOnError));
        on_error("max-age=2, stale-while-revalidate=10", 3, Err(StaleForbidden::NotOnError));
        for (status, expected) in
            [(500, true), (501, false), (502, true), (503, true), (504, true), (505, false), (404, false)]
        {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            assert_eq!(StaleCause::of_status(status).is_some(), expected, "{status}");
        }
    }

    #[test]
    fn what_is_stale_is_refreshed_behind_within_its_window() {
        for (cc, seconds, expected) in [
            ("max-age=2, stale-while-revalidate=4", 1, false),
            ("max-age=2, stale-while-revalidate=4", 2, true),
            ("max-age=2, stale-while-revalidate=4", 5, true),
            ("max-age=2, stale-while-revalidate=4", 6, false),
            ("max-age=2, stale-while-revalidate=0", 2, false),
            ("max-age=2, stale-while-revalidate=x", 2, false),
            ("max-age=2", 2, false),
            ("s-maxage=2, stale-while-revalidate=4", 3, true),
            ("max-age=2, stale-while-revalidate=4, no-cache", 3, false),
            ("max-age=2, stale-while-revalidate=4, must-revalidate", 3, false),
            ("max-age=2, stale-while-revalidate=4, proxy-revalidate", 3, false),
            ("max-age=0, stale-while-revalidate=4", 1, false),
        ] {
            let head = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], &CachePolicy::default());
            assert_eq!(may_refresh_behind(&head, at_ms(seconds * 1000)), expected, "{cc} after {seconds} s");
        }
    }

    #[test]
    fn the_extension_of_surrogate_control_allows_both() {
        let policy = CachePolicy::default();
        let head = stored(&[], &[("surrogate-control", "max-age=2+4")], &policy);
        assert!(may_refresh_behind(&head, at_ms(3_000)));
        let found = may_serve_stale(&head, at_ms(3_000), StaleCause::OriginError, &policy);
        assert_eq!(found, Ok(StaleReason::StaleIfError));
    }

    #[test]
    fn override_ttl_replaces_the_revalidate_directives() {
        let lifetimes = Lifetimes { any: Some(Duration::from_secs(1)), by_status: Vec::new() };
        let policy = CachePolicy { override_ttl: lifetimes, ..CachePolicy::default() };
        let stored = stored(&[], &[("cache-control", "s-maxage=1, must-revalidate, no-cache")], &policy);
        let found = may_serve_stale(&stored, at_ms(3_000), StaleCause::OriginDead, &policy);
        assert_eq!(found, Ok(StaleReason::OriginDead));
    }
}
