//! The decisions of this crate in words for people, for `larder explain`.
//!
//! In: a reason, or a response whose lifetime is asked for. Out: one sentence with the section that it rests on, and
//! all lifetimes that a response was given, the one that decided first. They come from the table that
//! [`freshness`](crate::freshness) itself walks, so what is told is what was done.
//! Nothing here is on the path of an answer. Deliberately absent: order and layout, which are the command's own.

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use larder_http::fields::surrogate::{SURROGATE_CONTROL, X_ACCEL_EXPIRES, X_REVERSE_PROXY_TTL};

use crate::age::ExchangeTimes;
use crate::directives::{EffectiveDirectives, Said};
use crate::freshness::{Asked, Freshness, LifetimeSource};
use crate::jitter;
use crate::not_storable::NotStorable;
use crate::policy::CachePolicy;
use crate::reuse::{UnusableReason, ValidateReason};
use crate::stale::{StaleForbidden, StaleReason};

/// A lifetime that a response was given, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifetimeCandidate {
    /// Where it comes from.
    pub source: LifetimeSource,
    /// How long.
    pub lifetime: Duration,
    /// The field or setting as it stands, such as `cache-control: max-age=60` or `ttl = 60s`; empty for
    /// [`LifetimeSource::Nothing`]. Cut after [`FIELD_MAX`] bytes, and without anything that is not printable.
    pub field: String,
}

/// Longest text of a field.
pub const FIELD_MAX: usize = 256;

/// All lifetimes that the response was given. The first decides, and is what [`storable`](fn@crate::storable) finds, but for jitter;
/// then come those that lost, in order of precedence, and last those in fields that another field replaces. Never empty.
pub fn lifetimes(
    status: StatusCode,
    fields: &HeaderMap,
    times: ExchangeTimes,
    policy: &CachePolicy,
) -> Vec<LifetimeCandidate> {
    let received = times.response.wall;
    let mut candidates = Vec::new();
    for (place, directives) in EffectiveDirectives::all(fields, policy).enumerate() {
        let asked = Asked { status, fields, directives: &directives, received, policy };
        let given = asked.lifetimes().filter(|(source, _)| place == 0 || is_by(*source, directives.by));
        candidates.extend(given.map(|(source, lifetime)| {
            let field = text(source, lifetime, directives.by, fields, policy);
            LifetimeCandidate { source, lifetime, field }
        }));
        if candidates.is_empty() {
            candidates.push(LifetimeCandidate {
                source: LifetimeSource::Nothing,
                lifetime: Duration::ZERO,
                field: String::new(),
            });
        }
    }
    candidates
}

/// The lifetime that jitter has shortened to that of `freshness`, where it has. `told` is what gives the response its
/// lifetimes under `policy`; one that was stored under other settings may be shorter for another reason.
pub fn shortened_from(
    freshness: &Freshness,
    told: &[LifetimeCandidate],
    policy: &CachePolicy,
) -> Option<Duration> {
    let first = told.first().filter(|first| first.source.is_configured())?;
    let band = jitter::shortest(first.lifetime, policy.jitter_percent)..first.lifetime;
    (first.source == freshness.source && band.contains(&freshness.lifetime)).then_some(first.lifetime)
}

/// Whether a lifetime of this kind is `said`'s own.
fn is_by(source: LifetimeSource, said: Said) -> bool {
    match source {
        LifetimeSource::Targeted => matches!(said, Said::Target(_)),
        LifetimeSource::SurrogateControl => said == Said::SurrogateControl,
        LifetimeSource::SMaxage | LifetimeSource::MaxAge | LifetimeSource::Expires => {
            said == Said::CacheControl
        }
        LifetimeSource::OverrideTtl
        | LifetimeSource::XAccelExpires
        | LifetimeSource::XReverseProxyTtl
        | LifetimeSource::Ttl
        | LifetimeSource::Heuristic
        | LifetimeSource::Nothing
        | LifetimeSource::ByHand
        | LifetimeSource::Remote => false,
    }
}

fn text(
    source: LifetimeSource,
    lifetime: Duration,
    said: Said,
    fields: &HeaderMap,
    policy: &CachePolicy,
) -> String {
    let line = |name: &HeaderName| field_text(fields, name);
    match (source, said) {
        (LifetimeSource::OverrideTtl, _) => format!("override_ttl = {lifetime:?}"),
        (LifetimeSource::Ttl, _) => format!("ttl = {lifetime:?}"),
        (LifetimeSource::Targeted, Said::Target(place)) => {
            policy.controls.targets.get(place).map(line).unwrap_or_default()
        }
        (LifetimeSource::SurrogateControl, _) => line(&SURROGATE_CONTROL),
        (LifetimeSource::XAccelExpires, _) => line(&X_ACCEL_EXPIRES),
        (LifetimeSource::XReverseProxyTtl, _) => line(&X_REVERSE_PROXY_TTL),
        (LifetimeSource::SMaxage | LifetimeSource::MaxAge, _) => line(&header::CACHE_CONTROL),
        (LifetimeSource::Expires, _) => line(&header::EXPIRES),
        (LifetimeSource::Heuristic, _) => line(&header::LAST_MODIFIED),
        (
            LifetimeSource::Targeted
            | LifetimeSource::Nothing
            | LifetimeSource::ByHand
            | LifetimeSource::Remote,
            _,
        ) => String::new(),
    }
}

/// All lines of `name` as one, printable.
fn field_text(fields: &HeaderMap, name: &HeaderName) -> String {
    let lines = fields.get_all(name).iter().map(HeaderValue::as_bytes).map(String::from_utf8_lossy);
    let joined = lines.collect::<Vec<Cow<'_, str>>>().join(", ");
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = format!("{name}: {joined}").chars().map(printable).collect();
    if let Some((end, _)) = text.char_indices().find(|(at, c)| at + c.len_utf8() > FIELD_MAX) {
        text.truncate(end);
    }
    text
}

impl LifetimeSource {
    /// What gave the lifetime.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::OverrideTtl => "The rule's override_ttl replaces what the origin says.",
            Self::Targeted => "A targeted field replaces Cache-Control and Expires.",
            Self::SurrogateControl => "Surrogate-Control replaces Cache-Control and Expires.",
            Self::XAccelExpires => "X-Accel-Expires replaces max-age, s-maxage and Expires.",
            Self::XReverseProxyTtl => "X-Reverse-Proxy-TTL replaces max-age, s-maxage and Expires.",
            Self::SMaxage => "s-maxage is the lifetime for shared caches.",
            Self::MaxAge => "max-age is the lifetime.",
            Self::Expires => "The lifetime is Expires less Date.",
            Self::Ttl => "The origin gives no lifetime, so the rule's ttl does.",
            Self::Heuristic => "Nothing gives a lifetime, so it is a tenth of the time since Last-Modified.",
            Self::Nothing => "Nothing gives a lifetime, so it is zero.",
            Self::ByHand => "It is a file that somebody put there: fresh for as long as it lies there.",
            Self::Remote => {
                "It is a copy of a value in memcached or Redis: fresh for the store's near, or as long as the value stays, if that is less."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::OverrideTtl | Self::Ttl | Self::ByHand | Self::Remote => "configuration",
            Self::Targeted => "RFC 9213 2.2",
            Self::SurrogateControl => "Edge Architecture 2.2",
            Self::XAccelExpires | Self::XReverseProxyTtl => "RFC 9111 4.2.1, by a private field",
            Self::SMaxage => "RFC 9111 5.2.2.10",
            Self::MaxAge => "RFC 9111 5.2.2.1",
            Self::Expires => "RFC 9111 5.3",
            Self::Heuristic => "RFC 9111 4.2.2",
            Self::Nothing => "RFC 9111 4.2.1",
        }
    }
}

impl NotStorable {
    /// Why it is not stored.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Method => {
                "Answers to GET and QUERY are stored, and those to POST only with a lifetime of their own and a \
                 Content-Location that is the request's target."
            }
            Self::Interim => "An interim response is not final.",
            Self::PartialContent => {
                "A 206 is stored only as one part that says where it lies, in answer to a GET with Range."
            }
            Self::NotModified => "A 304 updates what is stored and is nothing by itself.",
            Self::PreconditionFailed => "A 412 answers the conditions of one request.",
            Self::RangeNotSatisfiable => "A 416 answers the Range of one request.",
            Self::RequestNoStore => "The request says no-store.",
            Self::MustUnderstand => {
                "It says must-understand, and the rules of its status are not known here."
            }
            Self::NoStore => "It says no-store.",
            Self::Private => "It says private: it is for one client.",
            Self::Authorization => {
                "The request has credentials, and the origin does not say that all may see the response, or \
                 does not give its lifetime: that would be the rule's ttl or override_ttl, or a guess."
            }
            Self::SessionCookie => {
                "The request has a cookie that may mean a session, and the lifetime would be the rule's ttl or \
                 override_ttl, or a guess from Last-Modified."
            }
            Self::VaryAny => "It varies by more than request fields, so no later request can select it.",
            Self::SetCookie => {
                "It sets a cookie, and has no lifetime of the origin's that holds without validation."
            }
            Self::SetSessionCookie => {
                "It sets a cookie that looks like a session, and nothing says that the response is for all."
            }
            Self::SetPersonalCookie => {
                "It sets a cookie whose value could tell people apart, and nothing says that the response is for \
                 all."
            }
            Self::SetCookieBypass => "It sets a cookie, and the rule stores no such response.",
            Self::NoCache => {
                "It says no-cache and cannot be validated, which takes a validator and one of 200, 203 and 206: \
                 it could never be used."
            }
            Self::NoLifetime => {
                "It has no lifetime and cannot be validated, which takes a validator and one of 200, 203 and \
                 206: it could never be used."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Method => "RFC 9110 9.2.3, 9.3.3",
            Self::Interim => "RFC 9111 3",
            Self::PartialContent => "RFC 9111 3.3",
            Self::NotModified => "RFC 9111 4.3.4",
            Self::PreconditionFailed => "RFC 9110 15.5.13",
            Self::RangeNotSatisfiable => "RFC 9110 15.5.17",
            Self::RequestNoStore => "RFC 9111 5.2.1.5",
            Self::MustUnderstand => "RFC 9111 5.2.2.3",
            Self::NoStore => "RFC 9111 5.2.2.5",
            Self::Private => "RFC 9111 5.2.2.7",
            Self::Authorization => "RFC 9111 3.5, configuration",
            Self::SessionCookie | Self::SetCookieBypass => "configuration",
            Self::VaryAny => "RFC 9111 4.1",
            Self::SetCookie | Self::SetSessionCookie | Self::SetPersonalCookie => "RFC 9111 7.3",
            Self::NoCache => "RFC 9111 5.2.2.4",
            Self::NoLifetime => "RFC 9111 3",
        }
    }
}

impl ValidateReason {
    /// Why the origin has to be asked first.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Stale => "Its lifetime has passed.",
            Self::NoCache => "It says no-cache: each use has to be validated.",
            Self::RequestNoCache => "The request says no-cache.",
            Self::RequestMaxAge => "It is older than the request's max-age.",
            Self::RequestMinFresh => "It is not fresh for as long as the request's min-fresh.",
            Self::OtherRules => {
                "It was stored under other rules about cookies, and the origin has not confirmed it since."
            }
            Self::Invalidated => "An unsafe request has invalidated it since it was fetched.",
            Self::SoftPurged => "A soft purge has ended its lifetime since it was fetched.",
            Self::BelowFloor => {
                "There were more purges than are remembered, and whether one of them concerns it is not known any more."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Stale => "RFC 9111 4.2",
            Self::NoCache => "RFC 9111 5.2.2.4",
            Self::RequestNoCache => "RFC 9111 5.2.1.4",
            Self::RequestMaxAge => "RFC 9111 5.2.1.1",
            Self::RequestMinFresh => "RFC 9111 5.2.1.3",
            Self::OtherRules => "configuration",
            Self::Invalidated => "RFC 9111 4.4",
            Self::SoftPurged | Self::BelowFloor => "purge",
        }
    }
}

impl UnusableReason {
    /// Why it is not for this request.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Authorization => {
                "The request has credentials, and the application did not say how long others may have what is \
                 stored."
            }
            Self::SessionCookie => {
                "The request has a cookie that may mean a session, and the application did not say how long \
                 others may have what is stored."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Authorization | Self::SessionCookie => "configuration",
        }
    }
}

impl StaleReason {
    /// On what ground it is served.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::OriginDead => "Without an answer of the origin it may be used stale: nothing forbids it.",
            Self::OriginDown => {
                "The origin has failed lately: it will be used at once, and the origin asked behind."
            }
            Self::StaleIfError => "It or the rule says stale-if-error, which covers a failure of the origin.",
            Self::StillFresh => "It is fresh: only the request wanted it validated.",
            Self::MaxStale => "The request accepts it stale (max-stale), and the rule honours that.",
            Self::SoftPurged => {
                "A soft purge has ended its lifetime; it is used within stale-while-revalidate, and refreshed behind."
            }
            Self::WhileRevalidate => {
                "It or the rule says stale-while-revalidate: it will be used at once and refreshed behind."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::OriginDead | Self::OriginDown => "RFC 9111 4.2.4",
            Self::StaleIfError => "RFC 5861 4",
            Self::StillFresh => "RFC 9111 5.2.1",
            Self::WhileRevalidate | Self::SoftPurged => "RFC 5861 3",
            Self::MaxStale => "RFC 9111 5.2.1.2",
        }
    }
}

impl StaleForbidden {
    /// Why it is not served stale.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::NoCache => "It says no-cache.",
            Self::MustRevalidate => "It says must-revalidate or proxy-revalidate.",
            Self::SMaxage => {
                "It says s-maxage, which forbids stale use, and neither it nor the rule allows any."
            }
            Self::NeverFresh => "It never was fresh.",
            Self::TooOld => "It has been stale for too long.",
            Self::NotOnError => {
                "Neither it nor the rule says stale-if-error, so the error will be the answer."
            }
            Self::OtherRules => {
                "It was stored under other rules about cookies, and the origin has not confirmed it since."
            }
        }
    }

    /// On what that rests.
    pub const fn section(self) -> &'static str {
        match self {
            Self::NoCache => "RFC 9111 5.2.2.4",
            Self::MustRevalidate => "RFC 9111 5.2.2.2, 5.2.2.8",
            Self::SMaxage => "RFC 9111 5.2.2.10",
            Self::NeverFresh | Self::TooOld => "RFC 9111 4.2.4",
            Self::NotOnError => "RFC 5861 4",
            Self::OtherRules => "configuration",
        }
    }
}

#[cfg(test)]
mod tests;
