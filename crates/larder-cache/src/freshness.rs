//! How long a response is fresh, and how old it is (RFC 9111 4.2).
//!
//! In: a response's fields, its directives and a rule's lifetimes. Out: a [`Freshness`] that answers for any later
//! moment without parsing anything. Precedence: `override_ttl`, s-maxage, max-age, Expires, `ttl`, heuristics.
//! Time passes on the monotonic clock only, so that no jump of the wall clock makes a stale response fresh. The
//! origin's lifetimes are compared with the whole age, delays and other caches included; configured lifetimes count
//! from the arrival of the head. A response is fresh while its lifetime is strictly greater than what is counted.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use larder_http::fields::cache_control::ResponseDirectives;
use larder_http::fields::date::DateField;
use larder_http::time::{Now, WallTime};

use crate::age::initial_age;
use crate::policy::CachePolicy;

/// When an exchange with the origin happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// When the request was sent.
    pub request: Now,
    /// When the response's head had arrived.
    pub response: Now,
}

impl ExchangeTimes {
    /// How long the answer took.
    pub fn delay(&self) -> Duration {
        self.response.since(&self.request)
    }
}

/// Where a lifetime comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeSource {
    /// The rule's `override_ttl`.
    OverrideTtl,
    /// `s-maxage`
    SMaxage,
    /// `max-age`
    MaxAge,
    /// Expires less Date.
    Expires,
    /// The rule's `ttl`.
    Ttl,
    /// A tenth of the time since Last-Modified.
    Heuristic,
    /// Nowhere: the lifetime is zero.
    Nothing,
}

impl LifetimeSource {
    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::OverrideTtl => "override-ttl",
            Self::SMaxage => "s-maxage",
            Self::MaxAge => "max-age",
            Self::Expires => "expires",
            Self::Ttl => "ttl",
            Self::Heuristic => "heuristic",
            Self::Nothing => "nothing",
        }
    }

    /// Set by the operator, not by the origin.
    pub const fn is_configured(self) -> bool {
        matches!(self, Self::OverrideTtl | Self::Ttl)
    }

    /// Stated by the origin.
    pub const fn is_explicit(self) -> bool {
        matches!(self, Self::SMaxage | Self::MaxAge | Self::Expires)
    }
}

/// How long a response is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The freshness lifetime.
    pub lifetime: Duration,
    /// Where it comes from.
    pub source: LifetimeSource,
    /// How old the response was when it arrived.
    pub initial_age: Duration,
    /// When its head arrived, or that of the 304 that last validated it.
    pub received: Now,
    /// Whether it has to be validated before every use, fresh or not (`no-cache`).
    pub no_cache: bool,
}

impl Freshness {
    /// How long the response, or its last validation, has been here.
    pub fn resident(&self, now: Now) -> Duration {
        now.since(&self.received)
    }

    /// The current age, as sent in Age.
    pub fn age(&self, now: Now) -> Duration {
        self.initial_age.saturating_add(self.resident(now))
    }

    /// What the lifetime is compared with.
    fn counted(&self, now: Now) -> Duration {
        if self.source.is_configured() { self.resident(now) } else { self.age(now) }
    }

    /// What is left of the lifetime; zero when stale.
    pub fn remaining(&self, now: Now) -> Duration {
        self.lifetime.saturating_sub(self.counted(now))
    }

    /// How long the response has been stale; zero when fresh.
    pub fn staleness(&self, now: Now) -> Duration {
        self.counted(now).saturating_sub(self.lifetime)
    }

    /// Whole seconds of freshness left, negative when stale: the `ttl` of Cache-Status.
    pub fn ttl_seconds(&self, now: Now) -> i64 {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        match self.remaining(now) {
            Duration::ZERO => -seconds(self.staleness(now)),
            left => seconds(left),
        }
    }

    /// Whether the lifetime has not passed. `no_cache` is another question.
    pub fn is_fresh(&self, now: Now) -> bool {
        self.remaining(now) > Duration::ZERO
    }

    /// Whether requests that came while it was being fetched may have it too: it was fresh on arrival and needs no
    /// validation. One that never was fresh may be somebody's own page.
    pub fn is_shareable(&self) -> bool {
        !self.no_cache && self.is_fresh(self.received)
    }
}

/// Longest heuristic lifetime: what nobody asked for should not outlive a day.
const HEURISTIC_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Statuses that may be given a heuristic lifetime (RFC 9110 15.1), less 206, which is not stored.
const fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The freshness of a response.
pub(crate) fn freshness(
    status: StatusCode,
    fields: &HeaderMap,
    directives: &ResponseDirectives,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Freshness {
    let overridden = policy.override_ttl.for_status(status);
    let (lifetime, source) = match overridden {
        Some(lifetime) => (lifetime, LifetimeSource::OverrideTtl),
        None => explicit(fields, directives, times.response.wall)
            .or_else(|| configured(status, directives, policy))
            .or_else(|| heuristic(status, fields, directives, times.response.wall))
            .unwrap_or((Duration::ZERO, LifetimeSource::Nothing)),
    };
    Freshness {
        lifetime,
        source,
        initial_age: initial_age(fields, times),
        received: times.response,
        no_cache: overridden.is_none() && directives.no_cache.is_whole(),
    }
}

type Lifetime = (Duration, LifetimeSource);

fn explicit(fields: &HeaderMap, directives: &ResponseDirectives, received: WallTime) -> Option<Lifetime> {
    if let Some(lifetime) = directives.s_maxage {
        return Some((lifetime, LifetimeSource::SMaxage));
    }
    if let Some(lifetime) = directives.max_age {
        return Some((lifetime, LifetimeSource::MaxAge));
    }
    match DateField::read(fields, &header::EXPIRES, received) {
        DateField::Absent => None,
        DateField::Invalid => Some((Duration::ZERO, LifetimeSource::Expires)),
        DateField::At(expires) => Some((expires.since(date(fields, received)), LifetimeSource::Expires)),
    }
}

/// Date, or where that is absent or not a date the moment of receipt, to the second as Date would be.
fn date(fields: &HeaderMap, received: WallTime) -> WallTime {
    let said = DateField::read(fields, &header::DATE, received).at();
    said.unwrap_or_else(|| WallTime::from_secs(received.secs()))
}

fn configured(status: StatusCode, directives: &ResponseDirectives, policy: &CachePolicy) -> Option<Lifetime> {
    if directives.no_cache.is_whole() {
        return None;
    }
    policy.ttl.for_status(status).map(|lifetime| (lifetime, LifetimeSource::Ttl))
}

fn heuristic(
    status: StatusCode,
    fields: &HeaderMap,
    directives: &ResponseDirectives,
    received: WallTime,
) -> Option<Lifetime> {
    if !is_heuristically_cacheable(status) && !directives.public {
        return None;
    }
    let modified = DateField::read(fields, &header::LAST_MODIFIED, received).at()?;
    let lifetime = (date(fields, received).since(modified) / 10).min(HEURISTIC_MAX);
    (!lifetime.is_zero()).then_some((lifetime, LifetimeSource::Heuristic))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::{DATE, at_ms, at_once, fields};
    use crate::policy::Lifetimes;

    fn of(status: u16, lines: &[(&str, &str)], policy: &CachePolicy) -> Freshness {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let fields = fields(lines);
        freshness(status, &fields, &ResponseDirectives::read(&fields), at_once(), policy)
    }

    fn check(
        status: u16,
        lines: &[(&str, &str)],
        policy: &CachePolicy,
        seconds: u64,
        source: LifetimeSource,
    ) {
        let found = of(status, lines, policy);
        assert_eq!(
            (found.lifetime, found.source),
            (Duration::from_secs(seconds), source),
            "{status} {lines:?}"
        );
    }

    const HOUR_LATER: &str = "Sun, 06 Nov 1994 09:49:37 GMT";
    const DAY_BEFORE: &str = "Sat, 05 Nov 1994 08:49:37 GMT";

    #[test]
    fn s_maxage_beats_max_age_beats_expires_beats_heuristics() {
        use LifetimeSource::{Expires, Heuristic, MaxAge, Nothing, SMaxage};
        let plain = CachePolicy::default();
        let cc = |value| ("cache-control", value);
        let (date, later, modified) =
            (("date", DATE), ("expires", HOUR_LATER), ("last-modified", DAY_BEFORE));
        check(200, &[cc("max-age=9, s-maxage=5"), later], &plain, 5, SMaxage);
        check(200, &[cc("s-maxage=9"), cc("max-age=5")], &plain, 9, SMaxage);
        check(599, &[cc("max-age=9"), later, date], &plain, 9, MaxAge);
        check(200, &[cc("max-age=x"), later, date], &plain, 0, MaxAge);
        check(200, &[later, date, modified], &plain, 3600, Expires);
        check(200, &[later], &plain, 3600, Expires);
        check(200, &[later, ("date", "foo")], &plain, 3600, Expires);
        check(200, &[later, ("date", HOUR_LATER)], &plain, 0, Expires);
        check(200, &[("expires", "0"), modified], &plain, 0, Expires);
        check(200, &[later, later], &plain, 0, Expires);
        check(200, &[date, modified], &plain, 8640, Heuristic);
        check(599, &[date, modified, cc("public")], &plain, 8640, Heuristic);
        check(200, &[date, ("last-modified", "Sun, 06 Nov 1904 08:49:37 GMT")], &plain, 86_400, Heuristic);
        check(200, &[date, ("last-modified", HOUR_LATER)], &plain, 0, Nothing);
        check(200, &[date], &plain, 0, Nothing);
        for status in [203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            check(status, &[date, modified], &plain, 8640, Heuristic);
        }
        for status in [201, 202, 206, 302, 307, 403, 502, 503, 504, 599] {
            check(status, &[date, modified], &plain, 0, Nothing);
        }
    }

    #[test]
    fn ttl_fills_in_and_override_ttl_replaces() {
        use LifetimeSource::{MaxAge, Nothing, OverrideTtl, Ttl};
        let lifetimes = || Lifetimes { any: Some(Duration::from_secs(7)), by_status: Vec::new() };
        let ttl = CachePolicy { ttl: lifetimes(), ..CachePolicy::default() };
        let replaced = CachePolicy { override_ttl: lifetimes(), ..CachePolicy::default() };
        let modified = ("last-modified", DAY_BEFORE);
        check(200, &[modified], &ttl, 7, Ttl);
        check(404, &[], &ttl, 0, Nothing);
        check(200, &[("cache-control", "max-age=3")], &ttl, 3, MaxAge);
        check(200, &[("cache-control", "no-cache")], &ttl, 0, Nothing);
        check(200, &[("cache-control", "max-age=3, no-cache")], &replaced, 7, OverrideTtl);
        assert!(of(200, &[("cache-control", "no-cache")], &ttl).no_cache);
        assert!(!of(200, &[("cache-control", "no-cache")], &replaced).no_cache);
        // Configured lifetimes count from arrival, the origin's own count every age.
        let old = ("age", "100");
        assert!(of(200, &[old], &ttl).is_fresh(at_ms(6_999)));
        assert!(!of(200, &[old], &ttl).is_fresh(at_ms(7_000)));
        assert!(!of(200, &[old, ("cache-control", "max-age=100")], &ttl).is_shareable());
    }

    #[test]
    fn a_lifetime_is_over_when_age_reaches_it() {
        let found = of(200, &[("cache-control", "max-age=2")], &CachePolicy::default());
        for (ms, fresh, age, ttl) in
            [(0, true, 0, 2), (1_999, true, 1, 0), (2_000, false, 2, 0), (5_500, false, 5, -3)]
        {
            let now = at_ms(ms);
            assert_eq!(
                (found.is_fresh(now), found.age(now).as_secs(), found.ttl_seconds(now)),
                (fresh, age, ttl),
                "{ms}"
            );
        }
    }

    #[test]
    fn what_was_never_fresh_is_not_shared() {
        let shareable = |value| of(200, &[("cache-control", value)], &CachePolicy::default()).is_shareable();
        assert!(shareable("max-age=1"));
        assert!(!shareable("max-age=0"));
        assert!(!shareable("max-age=60, no-cache"));
        assert!(!of(200, &[("etag", "\"a\"")], &CachePolicy::default()).is_shareable());
    }

    fn any_freshness() -> impl Strategy<Value = Freshness> {
        let sources = [LifetimeSource::MaxAge, LifetimeSource::Ttl, LifetimeSource::Heuristic];
        (0..u64::MAX, 0..10_000_u64, 0..3_usize, any::<bool>()).prop_map(
            move |(lifetime, age, source, short)| {
                let lifetime = if short { lifetime % 10_000 } else { lifetime };
                Freshness {
                    lifetime: Duration::from_millis(lifetime),
                    source: sources[source],
                    initial_age: Duration::from_millis(age),
                    received: at_ms(0),
                    no_cache: false,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn never_fresh_after_its_lifetime(found in any_freshness(), ms in 0..30_000_u64) {
            let now = at_ms(ms);
            if found.resident(now) >= found.lifetime {
                prop_assert!(!found.is_fresh(now));
            }
            prop_assert_eq!(found.is_fresh(now), found.remaining(now) > Duration::ZERO);
            prop_assert!(!(found.is_fresh(now) && found.staleness(now) > Duration::ZERO));
        }

        #[test]
        fn no_jump_of_the_wall_clock_makes_stale_fresh(
            found in any_freshness(), ms in 0..30_000_u64, more in 0..30_000_u64, wall in any::<u64>()
        ) {
            let later = Now { wall: WallTime(wall), ..at_ms(ms + more) };
            prop_assert!(found.is_fresh(at_ms(ms)) || !found.is_fresh(later));
            prop_assert_eq!(found.age(later), found.age(at_ms(ms + more)));
        }

        #[test]
        fn no_lines_panic_or_outlive_the_clamp(
            cc in "[a-z0-9=, \"-]{0,40}", expires in "[ -~]{0,33}", age in "[0-9,-]{0,12}", status in 100..999_u16
        ) {
            let lines = [("cache-control", cc.as_str()), ("expires", &expires), ("age", &age), ("date", DATE)];
            let found = of(status, &lines, &CachePolicy::default());
            prop_assert!(!found.source.is_configured());
            let _ = (found.ttl_seconds(at_ms(5)), found.is_shareable());
        }
    }
}
