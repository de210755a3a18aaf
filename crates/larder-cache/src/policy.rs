//! What a rule's settings say about caching. The default is plain RFC behaviour with the Set-Cookie guard.
//!
//! In: nothing; the binary maps the configuration to these types. Out: answers to "which lifetime", "is this a
//! session". What the origin forbids is lifted by [`Ignored`] alone, one rule by one word: no lifetime, and nothing
//! said about cookies or clients' wishes, lifts `private`, `no-store`, `Vary: *` or the Authorization rule.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use larder_http::fields::cookie;

/// The largest [`jitter_percent`](CachePolicy::jitter_percent): something of a lifetime has to remain.
pub const JITTER_MAX: u8 = 90;

/// The settings of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Lifetimes where the origin gives neither an explicit one nor a restricting directive; they beat heuristics.
    pub ttl: Lifetimes,
    /// Lifetimes in place of the origin's, of `no-cache` and of the revalidate directives.
    pub override_ttl: Lifetimes,
    /// Cookies that mean a session.
    pub session_cookies: SessionNames,
    /// Cookies that are part of the cache key, so that their owners have their own stored responses.
    pub keyed_cookies: Vec<String>,
    /// Let requests with session cookies fill and use responses that live by a configured lifetime, and fill those that
    /// live by a heuristic one.
    pub ignore_cookies: bool,
    /// How long after its lifetime a response may stand in for a dead origin. Default 24 h.
    pub stale_if_dead: Duration,
    /// How long after its lifetime a response may be used at once while it is refreshed behind, where it has no
    /// `stale-while-revalidate` of its own. Default none: never.
    pub stale_while_revalidate: Option<Duration>,
    /// How long after its lifetime a response may stand in for an error of the origin, where it has no `stale-if-error`
    /// of its own. Default none: never.
    pub stale_if_error: Option<Duration>,
    /// At most so many hundredths are taken off each configured lifetime, so that what was stored together does not
    /// expire together. Default 0; more than [`JITTER_MAX`] counts as that.
    pub jitter_percent: u8,
    /// What to do with responses that set cookies. Default [`SetCookie::Guard`].
    pub set_cookie: SetCookie,
    /// Which fields beside Cache-Control and Expires an origin may speak with.
    pub controls: Controls,
    /// Which of a client's directives are heard. Default [`Wishes::Guarded`].
    pub request_directives: Wishes,
    /// Rules of the origin that do not hold here. Default: none.
    pub ignore: Ignored,
    /// Let a response that varies by Accept-Language also answer requests that like its Content-Language best. Default
    /// no: RFC 9111 4.1 wants the same preferences.
    pub language_selection: bool,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            ttl: Lifetimes::default(),
            override_ttl: Lifetimes::default(),
            session_cookies: SessionNames::default(),
            keyed_cookies: Vec::new(),
            ignore_cookies: false,
            stale_if_dead: Duration::from_secs(24 * 60 * 60),
            stale_while_revalidate: None,
            stale_if_error: None,
            jitter_percent: 0,
            set_cookie: SetCookie::Guard,
            controls: Controls::default(),
            request_directives: Wishes::Guarded,
            ignore: Ignored::default(),
            language_selection: false,
        }
    }
}

impl CachePolicy {
    /// Whether the rule gives lifetimes of its own.
    pub(crate) fn has_lifetimes(&self) -> bool {
        [&self.ttl, &self.override_ttl]
            .into_iter()
            .any(|said| said.any.is_some() || !said.by_status.is_empty())
    }

    /// Whether a request has credentials that matter.
    pub(crate) fn is_authorized(&self, request: &HeaderMap) -> bool {
        !self.ignore.authorization && request.contains_key(header::AUTHORIZATION)
    }

    /// Why a request may neither fill nor use a response that lives by a configured lifetime, if it may not.
    pub(crate) fn personal(&self, request: &HeaderMap) -> Option<Personal> {
        if self.is_authorized(request) {
            return Some(Personal::Authorization);
        }
        self.has_session(request).then_some(Personal::SessionCookie)
    }

    /// Whether a request has a session cookie that matters: one that is not part of the cache key.
    pub(crate) fn has_session(&self, request: &HeaderMap) -> bool {
        if self.ignore_cookies || !request.contains_key(header::COOKIE) {
            return false;
        }
        let is_keyed = |name: &[u8]| self.keyed_cookies.iter().any(|keyed| keyed.as_bytes() == name);
        cookie::pairs(request).any(|(name, _)| self.session_cookies.matches(name) && !is_keyed(name))
    }
}

/// What makes a request somebody's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Personal {
    Authorization,
    SessionCookie,
}

/// Configured lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// For 200, its parts (206), 203, 301 and 308; all others have to be named.
    pub any: Option<Duration>,
    /// By status; the first entry of a status decides, also over `any`. 206 is none of its own: see
    /// [`for_status`](Self::for_status).
    pub by_status: Vec<(u16, Duration)>,
}

impl Lifetimes {
    /// The lifetime configured for `status`. A part has that of the whole, which it may become.
    pub fn for_status(&self, status: StatusCode) -> Option<Duration> {
        let status = if status == StatusCode::PARTIAL_CONTENT { StatusCode::OK } else { status };
        let named = self.by_status.iter().find(|(named, _)| *named == status.as_u16());
        match named {
            Some((_, lifetime)) => Some(*lifetime),
            None if matches!(status.as_u16(), 200 | 203 | 301 | 308) => self.any,
            None => None,
        }
    }
}

/// Names of cookies that mean a session. All comparisons ignore letter case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionNames {
    /// Whole names.
    pub exact: Vec<String>,
    /// Parts of names; an empty part matches every name.
    pub containing: Vec<String>,
}

impl Default for SessionNames {
    fn default() -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            exact: list(&["PHPSESSID", "JSESSIONID", "ASP.NET_SessionId", "connect.sid", "sid"]),
            containing: list(&["sess", "auth", "token", "login", "csrf"]),
        }
    }
}

impl SessionNames {
    /// Whether `name` means a session.
    pub fn matches(&self, name: &[u8]) -> bool {
        let contains = |part: &String| {
            part.is_empty()
                || name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
        };
        self.exact.iter().any(|exact| name.eq_ignore_ascii_case(exact.as_bytes()))
            || self.containing.iter().any(contains)
    }
}

/// What to do with responses that carry Set-Cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// Store them only with an explicit lifetime of the origin, and those that set a session only where the origin
    /// also says that they are shared (`public`, `s-maxage`, or a field that is meant for shared caches); never through
    /// a configured lifetime.
    #[default]
    Guard,
    /// Store them like all others, cookies included.
    Store,
    /// Store them like all others, without the cookies: the client whose request fetched them does not get them either.
    Strip,
    /// Never store them.
    Bypass,
}

/// Fields that speak to this cache beside Cache-Control and Expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controls {
    /// Targeted fields (RFC 9213), the most specific first; the first usable one replaces Cache-Control and Expires.
    /// They are passed on. Default `CDN-Cache-Control`.
    pub targets: Vec<HeaderName>,
    /// Understand Surrogate-Control and take it out. Default yes, as for the two below.
    pub surrogate_control: bool,
    /// Understand X-Accel-Expires and take it out.
    pub x_accel_expires: bool,
    /// Understand X-Reverse-Proxy-TTL and take it out.
    pub x_reverse_proxy_ttl: bool,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            targets: vec![HeaderName::from_static("cdn-cache-control")],
            surrogate_control: true,
            x_accel_expires: true,
            x_reverse_proxy_ttl: true,
        }
    }
}

/// Which directives of a request's Cache-Control are heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wishes {
    /// `no-cache`, `max-age` and `min-fresh` cause one validation per second at most; `no-store` and `only-if-cached`
    /// hold.
    #[default]
    Guarded,
    /// All of them, each time, `max-stale` included.
    Honour,
    /// None of them.
    Ignore,
}

/// Rules of the origin that do not hold: each lifts exactly what it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// `private` in a response, for some fields or all of it.
    pub private: bool,
    /// `no-store` in a response.
    pub no_store: bool,
    /// The `*` in Vary; names beside it still select.
    pub vary: bool,
    /// That a response to a request with Authorization is its client's own.
    pub authorization: bool,
    /// [`SetCookie::Guard`]. It does not lift [`SetCookie::Bypass`].
    pub set_cookie: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_lifetime_holds_for_few_statuses_and_named_ones_win() {
        let any = Some(Duration::from_secs(1));
        let lifetimes = Lifetimes {
            any,
            by_status: vec![(404, Duration::from_secs(10)), (301, Duration::from_secs(20))],
        };
        for (status, seconds) in [
            (200, Some(1)),
            (203, Some(1)),
            (204, None),
            (206, Some(1)),
            (301, Some(20)),
            (302, None),
            (308, Some(1)),
            (404, Some(10)),
            (500, None),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            assert_eq!(lifetimes.for_status(status), seconds.map(Duration::from_secs), "{status}");
        }
        let named = [206, 200].map(|status| (status, Duration::from_secs(u64::from(status))));
        let parts = Lifetimes { any, by_status: named.to_vec() };
        assert_eq!(parts.for_status(StatusCode::PARTIAL_CONTENT), Some(Duration::from_secs(200)));
    }

    #[test]
    fn session_names_ignore_letter_case() {
        let names = SessionNames::default();
        for name in
            ["PHPSESSID", "phpsessid", "JSESSIONID", "connect.sid", "SID", "my_Session", "wp-authx", "xCSRFy"]
        {
            assert!(names.matches(name.as_bytes()), "{name}");
        }
        for name in ["", "side", "theme", "lang", "_ga", "ses", "connect.sid2"] {
            assert!(!names.matches(name.as_bytes()), "{name}");
        }
    }
}
