//! What a rule's settings say about caching. The default is plain RFC behaviour with the Set-Cookie guard.
//!
//! In: nothing; the binary maps the configuration to these types. Out: answers to "which lifetime", "is this a
//! session". Settings never lift what the origin forbids: `private`, `no-store`, `Vary: *`, the Authorization rule
//! and the Set-Cookie guard hold under every policy that can be written here.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use larder_http::fields::cookie;

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
    /// Let requests with session cookies fill and use responses that live by a configured lifetime.
    pub ignore_cookies: bool,
    /// How long after its lifetime a response may stand in for a dead origin. Default 24 h.
    pub stale_if_dead: Duration,
    /// What to do with responses that set cookies.
    pub set_cookie: SetCookie,
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
            set_cookie: SetCookie::Guard,
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

    /// Why a request may neither fill nor use a response that lives by a configured lifetime, if it may not.
    pub(crate) fn personal(&self, request: &HeaderMap) -> Option<Personal> {
        if request.contains_key(header::AUTHORIZATION) {
            return Some(Personal::Authorization);
        }
        if self.ignore_cookies || !request.contains_key(header::COOKIE) {
            return None;
        }
        let is_keyed = |name: &[u8]| self.keyed_cookies.iter().any(|keyed| keyed.as_bytes() == name);
        cookie::pairs(request)
            .any(|(name, _)| self.session_cookies.matches(name) && !is_keyed(name))
            .then_some(Personal::SessionCookie)
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
    /// For 200, 203, 301 and 308; all others have to be named.
    pub any: Option<Duration>,
    /// By status; the first entry of a status decides, also over `any`.
    pub by_status: Vec<(u16, Duration)>,
}

impl Lifetimes {
    /// The lifetime configured for `status`.
    pub fn for_status(&self, status: StatusCode) -> Option<Duration> {
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
    /// also says that they are shared (`public` or `s-maxage`); never through a configured lifetime.
    #[default]
    Guard,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_lifetime_holds_for_four_statuses_and_named_ones_win() {
        let any = Some(Duration::from_secs(1));
        let lifetimes = Lifetimes {
            any,
            by_status: vec![(404, Duration::from_secs(10)), (301, Duration::from_secs(20))],
        };
        for (status, seconds) in [
            (200, Some(1)),
            (203, Some(1)),
            (204, None),
            (301, Some(20)),
            (302, None),
            (308, Some(1)),
            (404, Some(10)),
            (500, None),
        ] {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            assert_eq!(lifetimes.for_status(status), seconds.map(Duration::from_secs), "{status}");
        }
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
