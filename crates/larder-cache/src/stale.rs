//! Whether a stale response may be used: in place of an origin that does not answer or answers with an error (RFC 9111
//! 4.2.4, RFC 5861 4), or while it is refreshed behind (RFC 5861 3).
//!
//! In: a stale stored response, the cause and the rule's settings. Out: permission or the rule that forbids it, both with a
//! reason. An error is an answer, and is only replaced where the response (`stale-if-error`) or the rule says so; a dead
//! origin gave none. How long stale use may last is the response's word first, the rule's where it says nothing.
//! must-revalidate, proxy-revalidate and no-cache forbid all of it; s-maxage implies proxy-revalidate (RFC 9111
//! 5.2.2.10) unless the response or the rule speaks of stale use. A response that never was fresh is not shown to
//! others: it may be somebody's own page, kept only to be validated.

use std::time::Duration;

use http::StatusCode;
use larder_http::message::RequestHead;
use larder_http::time::Now;

use crate::head::{StaleDirectives, StoredHead};
use crate::policy::CachePolicy;
use crate::storable::is_shared_with;

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
    /// Without asking: the origin has failed lately, and is asked behind.
    OriginDown,
    /// Within stale-if-error, the response's own or the rule's.
    StaleIfError,
    /// It is not stale at all: only a client's wish asked for its validation.
    StillFresh,
    /// Within stale-while-revalidate, the response's own or the rule's, while it is refreshed behind.
    WhileRevalidate,
    /// The same, where a soft purge has ended its lifetime.
    SoftPurged,
    /// Within the request's max-stale, where the rule honours it.
    MaxStale,
}

impl StaleReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::OriginDead,
        Self::OriginDown,
        Self::StaleIfError,
        Self::StillFresh,
        Self::WhileRevalidate,
        Self::SoftPurged,
        Self::MaxStale,
    ];

    /// The fixed word for Cache-Status, logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::OriginDead => "stale-origin-dead",
            Self::OriginDown => "stale-origin-down",
            Self::StaleIfError => "stale-if-error",
            Self::StillFresh => "fresh-origin-dead",
            Self::WhileRevalidate => "stale-while-revalidate",
            Self::SoftPurged => "soft-purged",
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
    /// `s-maxage` and no word about stale use, of the response or of the rule.
    SMaxage,
    /// It has no lifetime that could have passed.
    NeverFresh,
    /// It has been stale for longer than is allowed.
    TooOld,
    /// The origin answered, with an error, and neither the response nor the rule says `stale-if-error`.
    NotOnError,
    /// It was stored under other rules about cookies, and the origin has not confirmed it since.
    OtherRules,
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
            Self::OtherRules => "stale-other-rules",
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
    if stored.caution.holds(policy) {
        return Err(StaleForbidden::OtherRules);
    }
    if freshness.no_cache {
        return Err(StaleForbidden::NoCache);
    }
    let Some(window) = window(said, cause, policy) else {
        return Err(StaleForbidden::NotOnError);
    };
    if freshness.is_fresh(now) {
        return Ok(StaleReason::StillFresh);
    }
    if said.must_revalidate {
        return Err(StaleForbidden::MustRevalidate);
    }
    if said.s_maxage && while_revalidate(said, policy).or(if_error(said, policy)).is_none() {
        return Err(StaleForbidden::SMaxage);
    }
    if freshness.lifetime == Duration::ZERO {
        return Err(StaleForbidden::NeverFresh);
    }
    if freshness.staleness(now) > window.length {
        return Err(StaleForbidden::TooOld);
    }
    let is_dead = cause == StaleCause::OriginDead && window.source == WindowSource::Rule;
    Ok(if is_dead { StaleReason::OriginDead } else { StaleReason::StaleIfError })
}

/// How long after one refresh another may begin, where the first brought nothing.
pub const REFRESH_PAUSE: Duration = Duration::from_secs(1);

/// How long a failed attempt to ask the origin keeps clients from waiting for another one, where what is stored may
/// [stand in](may_stand_in). It is asked behind all the while that anybody wants what is stored, and each failure begins
/// the time anew, so this is how long the first request after a silence may still be spared.
pub const FAILURE_MEMORY: Duration = Duration::from_secs(60);

/// On what ground `stored` is served at `now` without asking an origin that is known to fail by `cause`, if it may be.
/// Only what is stale is spared: who wants to have something fresh validated, is told the truth.
pub fn may_stand_in(
    stored: &StoredHead,
    now: Now,
    cause: StaleCause,
    policy: &CachePolicy,
) -> Option<StaleReason> {
    match (may_serve_stale(stored, now, cause, policy).ok()?, cause) {
        (StaleReason::StillFresh, _) => None,
        (_, StaleCause::OriginDead) => Some(StaleReason::OriginDown),
        (ground, StaleCause::OriginError) => Some(ground),
    }
}

/// Whether a refresh that nobody waits for may be made with this request: not where the answer would be its client's own,
/// and so nothing to refresh with. Nobody's credentials are used for a request that nobody waits for.
pub fn may_refresh_with(request: &RequestHead, stored: &StoredHead, policy: &CachePolicy) -> bool {
    !policy.has_credentials(&request.fields) && is_shared_with(request, &stored.freshness, policy)
}

/// Whether `stored` is stale at `now`, and may be used all the same while somebody validates it: within its
/// stale-while-revalidate, or the rule's where it has none, and nothing forbids stale use. `s-maxage` does not: who says
/// the one and the other means it.
pub fn may_refresh_behind(stored: &StoredHead, now: Now, policy: &CachePolicy) -> bool {
    let (freshness, said) = (&stored.freshness, &stored.stale);
    let allowed = !freshness.no_cache
        && !said.must_revalidate
        && freshness.lifetime > Duration::ZERO
        && !stored.caution.holds(policy);
    let within = |window: StaleWindow| !freshness.is_fresh(now) && freshness.staleness(now) < window.length;
    allowed && while_revalidate(said, policy).is_some_and(within)
}

/// How long past its lifetime a response may be used, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleWindow {
    /// From the end of the lifetime.
    pub length: Duration,
    /// Who says so.
    pub source: WindowSource,
}

/// Who allows stale use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowSource {
    /// The response itself; its word goes before the rule's, a window of zero included.
    Response,
    /// The rule's settings.
    Rule,
}

impl WindowSource {
    /// The fixed word for explanations.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Rule => "rule",
        }
    }
}

/// How long a response with the directives `said` may stand in for an origin that failed by `cause`, where nothing forbids
/// it. For a dead origin there is always a window, for an error only where somebody says so.
pub fn window(said: &StaleDirectives, cause: StaleCause, policy: &CachePolicy) -> Option<StaleWindow> {
    match cause {
        StaleCause::OriginDead => either(said.if_error, Some(policy.stale_if_dead)),
        StaleCause::OriginError => if_error(said, policy),
    }
}

/// How long a response with the directives `said` may be used while it is refreshed behind, where nothing forbids it.
pub fn while_revalidate(said: &StaleDirectives, policy: &CachePolicy) -> Option<StaleWindow> {
    either(said.while_revalidate, policy.stale_while_revalidate)
}

fn if_error(said: &StaleDirectives, policy: &CachePolicy) -> Option<StaleWindow> {
    either(said.if_error, policy.stale_if_error)
}

fn either(response: Option<Duration>, rule: Option<Duration>) -> Option<StaleWindow> {
    let by = |source| move |length| StaleWindow { length, source };
    response.map(by(WindowSource::Response)).or_else(|| rule.map(by(WindowSource::Rule)))
}

#[cfg(test)]
mod tests;
