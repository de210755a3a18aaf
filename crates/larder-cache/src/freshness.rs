//! How long a response is fresh, and how old it is (RFC 9111 4.2).
//!
//! In: a response's fields, its directives and a rule's lifetimes. Out: a [`Freshness`] that answers for any later
//! moment without parsing anything. `PRECEDENCE` is the order in which lifetimes are looked for; [`crate::explain`]
//! walks the same table.
//! Time passes on the monotonic clock only, so that no jump of the wall clock makes a stale response fresh. The
//! origin's lifetimes are compared with the whole age, delays and other caches included; configured lifetimes count
//! from the arrival of the head. A response is fresh while its lifetime is strictly greater than what is counted.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use larder_http::fields::date::DateField;
use larder_http::fields::surrogate;
use larder_http::time::{Now, WallTime};

use crate::age::{ExchangeTimes, initial_age};
use crate::directives::{EffectiveDirectives, Said};
use crate::policy::CachePolicy;

/// Where a lifetime comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeSource {
    /// The rule's `override_ttl`.
    OverrideTtl,
    /// `s-maxage` or `max-age` of a targeted field (RFC 9213).
    Targeted,
    /// `max-age` of Surrogate-Control.
    SurrogateControl,
    /// X-Accel-Expires.
    XAccelExpires,
    /// X-Reverse-Proxy-TTL.
    XReverseProxyTtl,
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
    /// The operator's own hand: a file that was put in place of a response.
    ByHand,
    /// The store's `near`, or what the value has left: it is a copy of one that its application put into another program's memory.
    Remote,
}

impl LifetimeSource {
    /// The fixed word for logs and metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::OverrideTtl => "override-ttl",
            Self::Targeted => "targeted",
            Self::SurrogateControl => "surrogate-control",
            Self::XAccelExpires => "x-accel-expires",
            Self::XReverseProxyTtl => "x-reverse-proxy-ttl",
            Self::SMaxage => "s-maxage",
            Self::MaxAge => "max-age",
            Self::Expires => "expires",
            Self::Ttl => "ttl",
            Self::Heuristic => "heuristic",
            Self::Nothing => "nothing",
            Self::ByHand => "by-hand",
            Self::Remote => "remote",
        }
    }

    /// All of them, each at its number on disks: new ones come last, and none is taken away.
    const WRITTEN: [Self; 13] = [
        Self::OverrideTtl,
        Self::Targeted,
        Self::SurrogateControl,
        Self::XAccelExpires,
        Self::XReverseProxyTtl,
        Self::SMaxage,
        Self::MaxAge,
        Self::Expires,
        Self::Ttl,
        Self::Heuristic,
        Self::Nothing,
        Self::ByHand,
        Self::Remote,
    ];

    /// The number that stands for it on disk.
    pub(crate) fn number(self) -> u8 {
        let place = Self::WRITTEN.iter().position(|other| *other == self);
        place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
    }

    /// The source of this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::WRITTEN.get(usize::from(number)).copied()
    }

    /// The source of this word.
    pub fn of_token(token: &str) -> Option<Self> {
        Self::WRITTEN.into_iter().find(|source| source.token() == token)
    }

    /// Set by the operator, not by the origin.
    pub const fn is_configured(self) -> bool {
        matches!(self, Self::OverrideTtl | Self::Ttl | Self::ByHand)
    }

    /// Given by larder: configured, or guessed. The application never said that others may have the response so long.
    pub const fn is_assumed(self) -> bool {
        matches!(self, Self::OverrideTtl | Self::Ttl | Self::Heuristic)
    }

    /// Stated by the origin, or by the application that put a value where all who ask find it.
    pub const fn is_explicit(self) -> bool {
        match self {
            Self::Targeted
            | Self::SurrogateControl
            | Self::XAccelExpires
            | Self::XReverseProxyTtl
            | Self::SMaxage
            | Self::MaxAge
            | Self::Expires
            | Self::Remote => true,
            Self::OverrideTtl | Self::Ttl | Self::Heuristic | Self::Nothing | Self::ByHand => false,
        }
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

    /// The same with a lifetime that ended at this moment of the monotonic clock, unless it was over before. A response
    /// that had a lifetime keeps a trace of it: it may stand in for an origin, which one that never was fresh may not.
    /// One that arrived later than that is stale from its arrival on: it may be looked at in the millisecond in which it came.
    #[must_use]
    pub fn ended_at(&self, moment: Duration) -> Self {
        const TRACE: Duration = Duration::from_nanos(1);
        let at = Now { wall: self.received.wall, monotonic: moment };
        let counted = self.counted(at);
        if counted.is_zero() && !self.lifetime.is_zero() {
            let monotonic = self.received.monotonic.saturating_sub(TRACE);
            return Self { lifetime: TRACE, received: Now { monotonic, ..self.received }, ..*self };
        }
        Self { lifetime: self.lifetime.min(counted), ..*self }
    }

    /// The same of a copy that is used for `most` from its arrival, and then asked for again. A lifetime that is not the
    /// application's stays known as such.
    #[must_use]
    pub fn of_copy(&self, most: Duration) -> Self {
        let left = self.remaining(self.received);
        if left <= most {
            return *self;
        }
        let source = if self.source.is_assumed() { self.source } else { LifetimeSource::Remote };
        let lifetime = self.lifetime.saturating_sub(left).saturating_add(most);
        Self { lifetime, source, ..*self }
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

    /// How long before the end of its lifetime a response that is in use is refreshed, where the rule wants that. `took` is
    /// how long it took to come: the next one may take half as long again, and a twentieth of the lifetime is added, so
    /// that a use falls into it. At most half of the lifetime, or responses of a short one would be fetched without pause.
    /// The lifetime is what was left of it on arrival: another cache, or the way, may have used up the rest.
    pub fn refresh_ahead(&self, took: Duration) -> Duration {
        let lifetime = self.remaining(self.received);
        let wanted = took.saturating_add(took / 2).saturating_add(lifetime / 20);
        wanted.min(lifetime / 2)
    }

    /// Whether requests that came while it was being fetched may have it too: it was fresh on arrival and needs no
    /// validation. One that never was fresh may be somebody's own page.
    pub fn is_shareable(&self) -> bool {
        !self.no_cache && self.is_fresh(self.received)
    }
}

/// Longest heuristic lifetime: what nobody asked for should not outlive a day.
const HEURISTIC_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Statuses that may be given a heuristic lifetime (RFC 9110 15.1).
const fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// A response whose lifetime is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) status: StatusCode,
    pub(crate) fields: &'a HeaderMap,
    pub(crate) directives: &'a EffectiveDirectives,
    /// When it arrived.
    pub(crate) received: WallTime,
    pub(crate) policy: &'a CachePolicy,
}

/// Gives a lifetime, if it has one to give.
pub(crate) type Giver = fn(&Asked<'_>) -> Option<Duration>;

/// Who may give a lifetime. The first that does decides.
pub(crate) const PRECEDENCE: [(LifetimeSource, Giver); 10] = [
    (LifetimeSource::OverrideTtl, |of| of.policy.override_ttl.for_status(of.status)),
    (LifetimeSource::Targeted, targeted),
    (LifetimeSource::SurrogateControl, surrogate_control),
    (LifetimeSource::XAccelExpires, x_accel_expires),
    (LifetimeSource::XReverseProxyTtl, x_reverse_proxy_ttl),
    (LifetimeSource::SMaxage, |of| of.directives.said.s_maxage.filter(|_| of.is_by(Said::CacheControl))),
    (LifetimeSource::MaxAge, |of| of.directives.said.max_age.filter(|_| of.is_by(Said::CacheControl))),
    (LifetimeSource::Expires, expires),
    (LifetimeSource::Ttl, ttl),
    (LifetimeSource::Heuristic, heuristic),
];

impl Asked<'_> {
    fn is_by(&self, said: Said) -> bool {
        self.directives.by == said
    }

    /// Date, or where that is absent or not a date the moment of receipt, to the second as Date would be.
    fn date(&self) -> WallTime {
        let said = DateField::read(self.fields, &header::DATE, self.received).at();
        said.unwrap_or_else(|| WallTime::from_secs(self.received.secs()))
    }

    /// All lifetimes that are given, in order of precedence.
    pub(crate) fn lifetimes(&self) -> impl Iterator<Item = (LifetimeSource, Duration)> + '_ {
        PRECEDENCE.iter().filter_map(|(source, giver)| Some((*source, giver(self)?)))
    }
}

/// The freshness of a response.
pub(crate) fn freshness(
    status: StatusCode,
    fields: &HeaderMap,
    directives: &EffectiveDirectives,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Freshness {
    let asked = Asked { status, fields, directives, received: times.response.wall, policy };
    let (source, lifetime) = asked.lifetimes().next().unwrap_or((LifetimeSource::Nothing, Duration::ZERO));
    Freshness {
        lifetime,
        source,
        initial_age: initial_age(fields, times),
        received: times.response,
        no_cache: source != LifetimeSource::OverrideTtl && directives.said.no_cache.is_whole(),
    }
}

fn targeted(of: &Asked<'_>) -> Option<Duration> {
    match of.directives.by {
        Said::Target(_) => of.directives.said.s_maxage.or(of.directives.said.max_age),
        Said::CacheControl | Said::SurrogateControl => None,
    }
}

fn surrogate_control(of: &Asked<'_>) -> Option<Duration> {
    of.directives.said.max_age.filter(|_| of.is_by(Said::SurrogateControl))
}

/// An instant (`@`) becomes a lifetime from the arrival, against which the age on arrival counts as well, though the
/// instant has that in it: behind another cache the response is stale too early, never too late.
fn x_accel_expires(of: &Asked<'_>) -> Option<Duration> {
    let heard = of.policy.controls.x_accel_expires;
    heard.then(|| surrogate::accel_expires(of.fields, of.received)).flatten()
}

fn x_reverse_proxy_ttl(of: &Asked<'_>) -> Option<Duration> {
    let heard = of.policy.controls.x_reverse_proxy_ttl;
    heard.then(|| surrogate::reverse_proxy_ttl(of.fields)).flatten()
}

fn expires(of: &Asked<'_>) -> Option<Duration> {
    if !of.is_by(Said::CacheControl) {
        return None;
    }
    match DateField::read(of.fields, &header::EXPIRES, of.received) {
        DateField::Absent => None,
        DateField::Invalid => Some(Duration::ZERO),
        DateField::At(expires) => Some(expires.since(of.date())),
    }
}

/// Not against a directive that wants each use validated; the stricter ones forbid storing altogether.
fn ttl(of: &Asked<'_>) -> Option<Duration> {
    let heard = !of.directives.said.no_cache.is_whole();
    heard.then(|| of.policy.ttl.for_status(of.status)).flatten()
}

fn heuristic(of: &Asked<'_>) -> Option<Duration> {
    if !is_heuristically_cacheable(of.status) && !of.directives.said.public {
        return None;
    }
    let modified = DateField::read(of.fields, &header::LAST_MODIFIED, of.received).at()?;
    let lifetime = (of.date().since(modified) / 10).min(HEURISTIC_MAX);
    (!lifetime.is_zero()).then_some(lifetime)
}

#[cfg(test)]
mod tests;
