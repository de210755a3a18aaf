//! Whether a stale response may stand in for an origin that does not answer (RFC 9111 4.2.4, RFC 5861 4).
//!
//! In: a stale stored response and the cause. Out: permission or the rule that forbids it, both with a reason.
//! must-revalidate, proxy-revalidate and no-cache forbid all of it; s-maxage implies proxy-revalidate (RFC 9111
//! 5.2.2.10) unless the response itself speaks of stale use. A response that never was fresh is not shown to others:
//! it may be somebody's own page, kept only to be validated.

use std::time::Duration;

use larder_http::time::Now;

use crate::head::StoredHead;
use crate::policy::CachePolicy;

/// What keeps a stale response from being validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleCause {
    /// The origin gave no final head: refused, reset, timed out, not resolved, no TLS.
    OriginDead,
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
}

impl StaleReason {
    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::OriginDead => "stale-origin-dead",
            Self::StaleIfError => "stale-if-error",
            Self::StillFresh => "fresh-origin-dead",
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
    let StaleCause::OriginDead = cause;
    let (freshness, said) = (&stored.freshness, &stored.stale);
    if freshness.no_cache {
        return Err(StaleForbidden::NoCache);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{at_ms, stored};
    use crate::policy::Lifetimes;

    fn check(cc: &str, seconds: u64, expected: Result<StaleReason, StaleForbidden>) {
        let policy = CachePolicy::default();
        let stored = stored(&[], &[("cache-control", cc), ("etag", "\"a\"")], &policy);
        let found = may_serve_stale(&stored, at_ms(seconds * 1000), StaleCause::OriginDead, &policy);
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
    fn override_ttl_replaces_the_revalidate_directives() {
        let lifetimes = Lifetimes { any: Some(Duration::from_secs(1)), by_status: Vec::new() };
        let policy = CachePolicy { override_ttl: lifetimes, ..CachePolicy::default() };
        let stored = stored(&[], &[("cache-control", "s-maxage=1, must-revalidate, no-cache")], &policy);
        let found = may_serve_stale(&stored, at_ms(3_000), StaleCause::OriginDead, &policy);
        assert_eq!(found, Ok(StaleReason::OriginDead));
    }
}
