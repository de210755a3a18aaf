//! What a rule's settings say about caching. The default is plain RFC behaviour with the Set-Cookie guard.
//!
//! In: nothing; the binary maps the configuration to these types. Out: answers to "which lifetime", "is this a
//! session". What the origin forbids is lifted by [`Ignored`] alone, one rule by one word: no lifetime, and nothing
//! said about cookies or clients' wishes, lifts `private`, `no-store`, `Vary: *` or the Authorization rule.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};
use larder_http::fields::client_cert::CLIENT_CERT;
use larder_http::fields::cookie;
use larder_http::template::Language;

pub use crate::cookies::{HarmlessNames, SessionNames};
use crate::purge::tags::TagFields;

/// The largest [`jitter_percent`](CachePolicy::jitter_percent): something of a lifetime has to remain.
pub const JITTER_MAX: u8 = 90;

/// The settings of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// Lifetimes where the origin gives neither an explicit one nor a restricting directive; they beat heuristics.
    pub ttl: Lifetimes,
    /// Lifetimes in place of the origin's, of `no-cache` and of the revalidate directives.
    pub override_ttl: Lifetimes,
    /// The only cookies that mean a session where the application gave no lifetime. Default none: all that are not
    /// [harmless](Self::harmless_cookies).
    pub session_cookies: Option<SessionNames>,
    /// Cookies of requests that say nothing of whose page it is.
    pub harmless_cookies: HarmlessNames,
    /// Cookies that are part of the cache key, so that their owners have their own stored responses.
    pub keyed_cookies: Vec<String>,
    /// The same for request fields.
    pub keyed_fields: Vec<HeaderName>,
    /// Let requests with any cookies fill and use responses that live by a lifetime that the application did not give.
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
    /// What to do with responses that set cookies. Default [`SetCookiePolicy::Guard`].
    pub set_cookie: SetCookiePolicy,
    /// Which fields beside Cache-Control and Expires an origin may speak with.
    pub controls: Controls,
    /// Which of a client's directives are heard. Default [`Wishes::Guarded`].
    pub request_directives: Wishes,
    /// Rules of the origin that do not hold here. Default: none.
    pub ignore: Ignored,
    /// Let a response that varies by Accept-Language also answer requests that like its Content-Language best. Default
    /// no: RFC 9111 4.1 wants the same preferences.
    pub language_selection: bool,
    /// Which responses are templates.
    pub templates: TemplatePolicy,
    /// Whether requests may say in Client-Cert which certificate their client has shown (RFC 9440), which is no less than Authorization. Default no:
    /// then the field is not there.
    pub client_certificates: bool,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            ttl: Lifetimes::default(),
            override_ttl: Lifetimes::default(),
            session_cookies: None,
            harmless_cookies: HarmlessNames::default(),
            keyed_cookies: Vec::new(),
            keyed_fields: Vec::new(),
            ignore_cookies: false,
            stale_if_dead: Duration::from_secs(24 * 60 * 60),
            stale_while_revalidate: None,
            stale_if_error: None,
            jitter_percent: 0,
            set_cookie: SetCookiePolicy::Guard,
            controls: Controls::default(),
            request_directives: Wishes::Guarded,
            ignore: Ignored::default(),
            language_selection: false,
            templates: TemplatePolicy::default(),
            client_certificates: false,
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
            || self.has_certificate(request)
    }

    /// Whether a request has credentials, whatever they matter: what it is answered may be its client's own, and it is not repeated for anybody else.
    pub fn has_credentials(&self, request: &HeaderMap) -> bool {
        request.contains_key(header::AUTHORIZATION) || self.has_certificate(request)
    }

    fn has_certificate(&self, request: &HeaderMap) -> bool {
        self.client_certificates && request.contains_key(CLIENT_CERT)
    }

    /// Why a request may neither fill nor use a response that lives by a lifetime that the application did not give, if it
    /// may not.
    pub(crate) fn personal<'a>(&self, request: &'a HeaderMap) -> Option<Personal<'a>> {
        let credentials = self.credentials(request).map(Personal::Credentials);
        credentials.or_else(|| self.personal_cookie(request).map(Personal::Cookie))
    }

    /// A field of the request that carries credentials, and that no other rule makes everybody's.
    pub fn credentials<'a>(&self, request: &'a HeaderMap) -> Option<&'a HeaderName> {
        if self.ignore.authorization {
            return None;
        }
        let is_credential = |name: &&HeaderName| CREDENTIALS.contains(&name.as_str());
        request.keys().filter(is_credential).find(|name| !self.keyed_fields.contains(name))
    }

    /// The first cookie of a request by which its page may be one person's: one that is neither harmless nor part of the
    /// cache key, and one of `session_cookies` where the rule has such.
    pub fn personal_cookie<'a>(&self, request: &'a HeaderMap) -> Option<&'a [u8]> {
        if self.ignore_cookies || !request.contains_key(header::COOKIE) {
            return None;
        }
        let is_keyed = |name: &[u8]| self.keyed_cookies.iter().any(|keyed| keyed.as_bytes() == name);
        let counts = |name: &[u8]| match &self.session_cookies {
            None => !self.harmless_cookies.matches(name),
            Some(names) => {
                names.is_named(name) || (!self.harmless_cookies.matches(name) && names.matches(name))
            }
        };
        cookie::pairs(request).map(|(name, _)| name).find(|name| counts(name) && !is_keyed(name))
    }

    /// Whether a request has credentials, or a cookie that is called like a session: whose answer no file by hand takes the
    /// place of.
    pub(crate) fn has_session_by_name(&self, request: &HeaderMap) -> bool {
        if self.is_authorized(request) {
            return true;
        }
        if self.ignore_cookies || !request.contains_key(header::COOKIE) {
            return false;
        }
        let is_keyed = |name: &[u8]| self.keyed_cookies.iter().any(|keyed| keyed.as_bytes() == name);
        let known = SessionNames::known();
        let names = self.session_cookies.as_ref().unwrap_or(&known);
        cookie::pairs(request).any(|(name, _)| names.matches(name) && !is_keyed(name))
    }
}

/// Request fields that carry credentials. The RFC knows the first; the others count where the application did not say
/// for how long its response may be shared.
const CREDENTIALS: [&str; 5] =
    ["client-cert", "authorization", "x-api-key", "x-auth-token", "x-access-token"];

/// Whether a request field of this name carries credentials: Authorization, Client-Cert, or an API key by one of its usual names.
pub fn is_credentials(name: &HeaderName) -> bool {
    CREDENTIALS.contains(&name.as_str())
}

/// What makes a request somebody's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Personal<'a> {
    Credentials(&'a HeaderName),
    Cookie(&'a [u8]),
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

/// What to do with responses that carry Set-Cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookiePolicy {
    /// Keep cookies that may be [somebody's](crate::cookies::own) out of what is stored: where the origin says that the
    /// response is for all (`public`, `s-maxage`, or a field that is meant for shared caches) it is stored without them,
    /// else not at all. Other cookies are stored with an explicit lifetime of the origin only.
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
    /// Which fields carry tags. They are taken out unless they are to be passed on.
    pub tags: TagFields,
    /// Further fields that are taken out: those of purges in responses, and LiteSpeed's. A site that has one of these among them
    /// listens to it. Default none.
    pub ending: Vec<HeaderName>,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            targets: vec![HeaderName::from_static("cdn-cache-control")],
            surrogate_control: true,
            x_accel_expires: true,
            x_reverse_proxy_ttl: true,
            tags: TagFields::default(),
            ending: Vec::new(),
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
    /// [`SetCookiePolicy::Guard`]. It does not lift [`SetCookiePolicy::Bypass`].
    pub set_cookie: bool,
}

/// Which responses of a rule are templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePolicy {
    /// By what they are known. Default [`Assemble::Auto`].
    pub assemble: Assemble,
    /// The media types, in lower case and without parameters, of responses that are templates under
    /// [`Assemble::Language`]. Default `text/html`.
    pub types: Vec<String>,
    /// Whether values that come from a request are escaped for HTML where ESI's `vars` writes them. Default yes.
    pub escapes_html: bool,
    /// Whether a template with a problem is an error. Default no: each problem has a rule for what stands there.
    pub strict: bool,
}

impl Default for TemplatePolicy {
    fn default() -> Self {
        Self {
            assemble: Assemble::Auto,
            types: vec!["text/html".to_owned()],
            escapes_html: true,
            strict: false,
        }
    }
}

impl TemplatePolicy {
    /// Whether any response can be a template, which the origin is told then.
    pub fn is_on(&self) -> bool {
        self.assemble != Assemble::Off
    }
}

/// By what a rule knows templates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assemble {
    /// By what they say of themselves.
    #[default]
    Auto,
    /// By that, or else by their media type: they are in this language.
    Language(Language),
    /// There are none.
    Off,
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
}
