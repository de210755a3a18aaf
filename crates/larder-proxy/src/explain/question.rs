//! What somebody wants to have explained: a request that nobody sends.
//!
//! In: a URL, a method and field lines, as a person types them. Out: the head that a listener would have made of them:
//! canonical host, raw target, end-to-end fields; or why there is none. `Host` among the fields names the host in place
//! of the URL's.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use larder_http::authority::Authority;
use larder_http::connection;
use larder_http::message::RequestHead;
use larder_http::target::{Target, absolute_form};

/// Fields beyond which nothing is explained: as many as a listener takes.
const FIELDS_MAX: usize = 100;

/// Why there is nothing to explain.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// Not an absolute `http://` or `https://` URL.
    #[error("{0:?} is not an absolute URL such as http://example.com/path")]
    Url(String),
    /// Not a method.
    #[error("{0:?} is not a method")]
    Method(String),
    /// Not a field line, or one too many.
    #[error("{0:?} is not a field, or one more than a request may have")]
    Field(String),
    /// No site takes the host: such a request is answered 421.
    #[error("no site takes the host {0:?}: it is answered 421 (RFC 9110 15.5.20)")]
    UnknownHost(String),
    /// The site is served over TLS alone: such a request is answered 308.
    #[error("the site is served over TLS alone, and sends clear text there: explain {0}")]
    Https(String),
    /// The path climbs above the root: such a request is answered 400.
    #[error("the path climbs above the root: it is answered 400")]
    ClimbingPath,
}

impl ExplainError {
    /// The fixed word.
    pub const fn token(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Method(_) => "request-method",
            Self::Field(_) => "field",
            Self::UnknownHost(_) => "unknown-host",
            Self::Https(_) => "https",
            Self::ClimbingPath => "climbing-path",
        }
    }
}

/// A request to explain.
#[derive(Clone, Debug)]
pub struct Question {
    pub(super) head: RequestHead,
    pub(super) content: Bytes,
    pub(super) offline: bool,
    /// It asks for a WebSocket.
    pub(super) websocket: bool,
}

impl Question {
    /// Reads a question. `content` belongs to the key of a QUERY and is nothing else. With `offline` the origin is not
    /// asked.
    ///
    /// # Errors
    /// What is not a request.
    pub fn parse<'a>(
        method: &str,
        url: &str,
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
        content: Bytes,
        offline: bool,
    ) -> Result<Self, ExplainError> {
        let wrong = || ExplainError::Url(url.to_owned());
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|_| ExplainError::Method(method.to_owned()))?;
        let without_fragment = url.split('#').next().unwrap_or_default();
        let raw = Bytes::copy_from_slice(without_fragment.as_bytes());
        let (scheme, authority, target) = absolute_form(&raw).map_err(|_| wrong())?;
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            let refused = || ExplainError::Field(format!("{name}: {value}"));
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| refused())?;
            let value = HeaderValue::from_bytes(value.trim().as_bytes()).map_err(|_| refused())?;
            if map.len() == FIELDS_MAX {
                return Err(refused());
            }
            map.append(name, value);
        }
        let host = map.remove(HOST).map_or(authority, |host| Bytes::copy_from_slice(host.as_bytes()));
        map.remove(CONTENT_LENGTH);
        let options = connection::strip(&mut map);
        // `Connection: upgrade` need not be typed: nothing else could be meant.
        let websocket = options.websocket && method == Method::GET;
        let head = RequestHead {
            method,
            scheme,
            authority: Authority::parse(host, scheme).map_err(|_| wrong())?,
            target: Target::parse(target).map_err(|_| wrong())?,
            version: Version::HTTP_11,
            fields: map,
        };
        Ok(Self { head, content, offline, websocket })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(method: &str, url: &str, fields: &[(&str, &str)]) -> Result<Question, ExplainError> {
        Question::parse(method, url, fields.iter().copied(), Bytes::new(), true)
    }

    #[test]
    fn a_url_becomes_the_head_that_a_listener_would_make_of_it() {
        for (url, host, target) in [
            ("http://Example.com:80/a?b=%20#c", "example.com", "/a?b=%20"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "/"),
            ("HTTP://[::1]:8080/x", "[::1]:8080", "/x"),
        ] {
            let head = parse("GET", url, &[]).unwrap().head;
            assert_eq!((head.authority.as_str(), head.target.as_str()), (host, target), "{url}");
        }
    }

    #[test]
    fn what_is_not_a_request_is_told_by_its_own_words() {
        for url in
            ["/a", "example.com/a", "ftp://example.com/", "http:///a", "http://a b/", "http://a/b c", ""]
        {
            assert!(matches!(parse("GET", url, &[]), Err(ExplainError::Url(said)) if said == url), "{url}");
        }
        assert!(matches!(parse("G T", "http://a/", &[]), Err(ExplainError::Method(_))));
        assert!(matches!(parse("GET", "http://a/", &[("a b", "c")]), Err(ExplainError::Field(_))));
        assert!(matches!(parse("GET", "http://a/", &[("host", "a b")]), Err(ExplainError::Url(_))));
    }

    #[test]
    fn host_names_the_host_and_connection_level_fields_go() {
        let fields = [("Host", "b.example"), ("Connection", "close, x-a"), ("X-A", "1"), ("X-B", " 2 ")];
        let head = parse("GET", "http://a.example/", &fields).unwrap().head;
        assert_eq!(head.authority.as_str(), "b.example");
        assert_eq!(head.fields.len(), 1);
        assert_eq!(head.fields["x-b"], "2");
    }
}
