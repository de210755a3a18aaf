//! What a page asks of the request that it answers, and what of it was used.
//!
//! In: the request's head, whom it came from, and the time. Out: single facts, each noted when it is asked for: a page that
//! used a field varies by it, and one that used a cookie or the client's address is for that client alone.
//! Authorization and Proxy-Authorization are never given out: no template needs a password.
//! Deliberately absent: what belongs to a document's own URI. That is part of its cache key, and needs no note.

use std::borrow::Cow;
use std::net::IpAddr;

use http::{HeaderMap, HeaderName, Method, Version, header};
use larder_http::fields::client_cert::CLIENT_CERT;
use larder_http::fields::cookie;
use larder_http::message::Scheme;
use larder_http::time::WallTime;

/// The request of the page. The same one is handed to a run each time.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// The client's end-to-end fields.
    pub fields: &'a HeaderMap,
    /// The client's method.
    pub method: &'a Method,
    /// Where the client is.
    pub client: IpAddr,
    /// How the client asked.
    pub scheme: Scheme,
    /// The version of the client's protocol.
    pub version: Version,
    /// The time of the page: the same for all of its parts.
    pub now: WallTime,
}

/// What of the request was used, so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactsUsed {
    /// Fields that a value or a condition read, each once, in the order of their first use. An absent field counts.
    pub fields: Vec<HeaderName>,
    /// The client's address.
    pub client: bool,
    /// The time, or a date that was written.
    pub clock: bool,
    /// Method, scheme or version.
    pub start_line: bool,
}

/// Gives out facts and notes them.
pub(crate) struct Asker<'a> {
    facts: &'a RequestFacts<'a>,
    used: &'a mut FactsUsed,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(facts: &'a RequestFacts<'a>, used: &'a mut FactsUsed) -> Self {
        Self { facts, used }
    }

    /// All lines of a field in one; `None` where there is none, and for fields with passwords.
    pub(crate) fn field(&mut self, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
        if is_secret(name) {
            return None;
        }
        self.note(name);
        let mut lines = self.facts.fields.get_all(name).iter();
        let mut all = Cow::Borrowed(lines.next()?.as_bytes());
        let between: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
        for line in lines {
            let all = all.to_mut();
            all.extend_from_slice(between);
            all.extend_from_slice(line.as_bytes());
        }
        Some(all)
    }

    /// The first cookie with that name, as it came.
    pub(crate) fn cookie(&mut self, is_it: impl Fn(&[u8]) -> bool) -> Option<&'a [u8]> {
        self.note(&header::COOKIE);
        cookie::pairs(self.facts.fields).find(|(name, _)| is_it(name)).map(|(_, value)| value)
    }

    pub(crate) fn method(&mut self) -> &'a str {
        self.used.start_line = true;
        self.facts.method.as_str()
    }

    pub(crate) fn scheme(&mut self) -> &'static str {
        self.used.start_line = true;
        self.facts.scheme.as_str()
    }

    pub(crate) fn version(&mut self) -> &'static str {
        self.used.start_line = true;
        match self.facts.version {
            Version::HTTP_09 | Version::HTTP_10 => "HTTP/1.0",
            Version::HTTP_2 => "HTTP/2.0",
            Version::HTTP_3 => "HTTP/3.0",
            _ => "HTTP/1.1",
        }
    }

    pub(crate) fn client(&mut self) -> String {
        self.used.client = true;
        self.facts.client.to_canonical().to_string()
    }

    pub(crate) fn now(&mut self) -> WallTime {
        self.used.clock = true;
        self.facts.now
    }

    fn note(&mut self, name: &HeaderName) {
        if !self.used.fields.contains(name) {
            self.used.fields.push(name.clone());
        }
    }
}

/// Whether a field holds a password.
pub(crate) fn is_secret(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION || *name == header::PROXY_AUTHORIZATION || *name == CLIENT_CERT
}
