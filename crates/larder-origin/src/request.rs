//! The request as it goes to the origin: built from typed parts, nothing copied (RFC 9112 3, 6; RFC 9110 7.6.1).
//!
//! In: an [`OriginRequest`]. Out: an `http::Request` whose Host, framing and connection-level fields are ours.
//! A body whose length is known goes with Content-Length, any other in chunks, for every method: hyper on its own
//! would drop a GET's body of unknown length without a word, so the framing is always stated here.
//! Deliberately absent: Expect. The listener answers it; the origin would only make the upload wait twice.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::header::{self, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, Method, Request};
use larder_http::authority::Authority;
use larder_http::body::Body;
use larder_http::message::Peer;
use larder_http::target::Target;
use larder_http::trailers::{self, Wish};
use tokio::time::Instant;

use crate::answer::InterimSink;
use crate::error::OriginError;
use crate::fleet::ServerTag;
use crate::progress::Progress;
use crate::upload::Upload;

/// What to ask an origin.
pub struct OriginRequest {
    /// As the client sent it; methods are case-sensitive.
    pub method: Method,
    /// Goes out byte for byte.
    pub target: Target,
    /// Becomes Host, where the origin's settings name no other.
    pub authority: Authority,
    /// End-to-end fields, final. What is connection-level or framing all the same is dropped.
    pub fields: HeaderMap,
    /// What is sent along.
    pub body: Body,
    /// What its client says about trailers.
    pub trailers: Wish,
    /// Ask to switch to WebSocket; `fields` then holds the `Sec-WebSocket-*` ones.
    pub websocket: bool,
    /// Gets interim responses as they come, 100 and 101 excepted, 16 at most. Called from the connection's task, so
    /// it must not block.
    pub interims: Option<InterimSink>,
    /// Which server it should meet.
    pub affinity: Affinity,
    /// The client's connection, for the PROXY header; without one the header says that we speak for ourselves.
    pub peer: Option<Peer>,
    /// Is told how far the request has come.
    pub progress: Option<Arc<Progress>>,
    /// To this the bytes of content that come are added, as they come.
    pub received: Option<Arc<AtomicU64>>,
}

/// Which server a request should meet, where that server can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// Of the part of the request that is balanced by; used under [`Balance::Hash`](crate::Balance). The same on
    /// every worker and after a restart, so it is the caller's to make with a hash of fixed definition.
    pub hash: Option<u64>,
    /// The server that the client has met before; stronger than any balance.
    pub server: Option<ServerTag>,
}

impl std::fmt::Debug for OriginRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OriginRequest")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("authority", &self.authority)
            .field("body", &self.body)
            .field("websocket", &self.websocket)
            .finish_non_exhaustive()
    }
}

/// A request ready to be written, once or twice.
pub(crate) struct Outgoing {
    pub(crate) head: Head,
    pub(crate) body: Upload,
}

/// The part of a request that a second attempt repeats.
#[derive(Clone)]
pub(crate) struct Head {
    method: Method,
    uri: Uri,
    fields: HeaderMap,
}

impl Head {
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }
}

impl Outgoing {
    /// Builds the head.
    ///
    /// # Errors
    /// CONNECT, and otherwise only where a type's promise is broken: targets and authorities are checked when made.
    pub(crate) fn new(
        method: Method,
        target: &Target,
        authority: &Authority,
        fields: HeaderMap,
        body: Body,
        (websocket, wish): (bool, &Wish),
    ) -> Result<Self, OriginError> {
        if method == Method::CONNECT {
            // hyper would take any 2xx for a tunnel.
            return Err(OriginError::BadRequest("method"));
        }
        let mut body = Upload::new(body);
        let announced = wish.announced.as_deref().filter(|_| body.length().is_none());
        let names: Vec<HeaderName> = trailers::names(announced).collect();
        let uri = PathAndQuery::from_maybe_shared(target.as_bytes().clone())
            .map(Uri::from)
            .map_err(|_| OriginError::BadRequest("target"))?;
        let host = HeaderValue::from_maybe_shared(authority.as_bytes().clone())
            .map_err(|_| OriginError::BadRequest("authority"))?;
        let mut fields = outgoing_fields(host, fields, &method, &body, websocket);
        if let Some(announced) = announced.filter(|_| !names.is_empty()) {
            fields.insert(header::TRAILER, announced.clone());
        }
        body.announce(names);
        if wish.takes && !websocket {
            // RFC 9110 10.1.4: TE belongs to the connection, and is named there.
            fields.insert(header::TE, HeaderValue::from_static("trailers"));
            fields.insert(header::CONNECTION, HeaderValue::from_static("te"));
        }
        Ok(Self { head: Head { method, uri, fields }, body })
    }

    /// Asks for `authority` instead.
    pub(crate) fn ask_for(&mut self, authority: &Authority) {
        // Authorities are checked when they are made.
        if let Ok(host) = HeaderValue::from_maybe_shared(authority.as_bytes().clone()) {
            self.head.fields.insert(header::HOST, host);
        }
    }

    /// The same once more, where the body allows it.
    pub(crate) fn replay(&self) -> Option<Self> {
        Some(Self { head: self.head.clone(), body: self.body.replay()? })
    }

    /// Takes back what hyper did not send.
    pub(crate) fn from_request(request: Request<Upload>) -> Self {
        let (parts, body) = request.into_parts();
        Self { head: Head { method: parts.method, uri: parts.uri, fields: parts.headers }, body }
    }

    pub(crate) fn into_request(self) -> Request<Upload> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.head.method;
        *request.uri_mut() = self.head.uri;
        *request.headers_mut() = self.head.fields;
        request
    }
}

fn outgoing_fields(
    host: HeaderValue,
    mut given: HeaderMap,
    method: &Method,
    body: &Upload,
    websocket: bool,
) -> HeaderMap {
    larder_http::connection::strip(&mut given);
    for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::EXPECT] {
        given.remove(name);
    }
    // Host first (RFC 9110 7.2), so a map of our own.
    let mut fields = HeaderMap::with_capacity(given.len() + 4);
    fields.insert(header::HOST, host);
    let mut last_name = None;
    for (name, value) in given {
        if name.is_some() {
            last_name = name;
        }
        if let Some(name) = &last_name {
            fields.append(name.clone(), value);
        }
    }
    match body.length() {
        // Methods that define a meaning for content say that there is none (RFC 9110 8.6).
        Some(0) if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Some(0) => {}
        Some(length) => {
            fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        None => {
            fields.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    if websocket {
        fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    fields
}

/// What has to be known of a request to make sense of its answer.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) websocket: bool,
    /// When the whole exchange must be over.
    pub(crate) total: Option<Instant>,
    /// See [`authenticates_connection`].
    pub(crate) authenticates_connection: bool,
}

/// Whether a request may sign its client in for all that comes over the same connection: HTTP forbids that (RFC 9110 3.3), but
/// servers of NTLM and Negotiate do it (RFC 4559). Such a connection serves no other client's request.
pub(crate) fn authenticates_connection(fields: &HeaderMap) -> bool {
    fields.get_all(header::AUTHORIZATION).iter().any(|value| {
        let scheme =
            value.as_bytes().trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;
    use larder_http::message::Scheme;

    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(n, v)| (n.parse::<http::HeaderName>().unwrap(), HeaderValue::from_static(v)))
            .collect()
    }

    #[test]
    fn only_two_schemes_authenticate_a_connection() {
        for (value, is) in [
            ("NTLM TlRMTVNTUAAB", true),
            ("Negotiate YIIG", true),
            ("negotiate  YIIG", true),
            ("Basic bnRsbTp4", false),
            ("Bearer negotiate", false),
            ("Negotiated x", false),
            ("", false),
        ] {
            assert_eq!(authenticates_connection(&fields(&[("authorization", value)])), is, "{value}");
        }
        assert!(!authenticates_connection(&HeaderMap::new()));
    }

    #[track_caller]
    fn check(method: Method, given: &[(&'static str, &'static str)], body: Body, ws: bool, expected: &str) {
        let authority = Authority::parse(Bytes::from_static(b"example.com:8080"), Scheme::Http).unwrap();
        let target = Target::parse(Bytes::from_static(b"/")).unwrap();
        let mut given_map = HeaderMap::new();
        for (name, value) in fields(given).iter() {
            given_map.append(name, value.clone());
        }
        let outgoing =
            Outgoing::new(method, &target, &authority, given_map, body, (ws, &Wish::default())).unwrap();
        let lines: Vec<String> = outgoing
            .head
            .fields
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(lines.join("|"), expected);
    }

    #[test]
    fn host_and_framing_are_ours_whatever_was_given() {
        let empty = || Body::Empty;
        let full = || Body::from("abc");
        let open =
            || Body::Stream { length: None, stream: Box::pin(http_body_util::Empty::new().map_err_never()) };
        check(Method::GET, &[], empty(), false, "host: example.com:8080");
        check(
            Method::GET,
            &[("host", "evil"), ("x-a", "1")],
            empty(),
            false,
            "host: example.com:8080|x-a: 1",
        );
        check(Method::POST, &[], empty(), false, "host: example.com:8080|content-length: 0");
        check(Method::DELETE, &[("content-length", "9")], empty(), false, "host: example.com:8080");
        check(
            Method::POST,
            &[("content-length", "9")],
            full(),
            false,
            "host: example.com:8080|content-length: 3",
        );
        check(Method::GET, &[], open(), false, "host: example.com:8080|transfer-encoding: chunked");
        check(
            Method::GET,
            &[
                ("connection", "x-b, close"),
                ("x-b", "1"),
                ("keep-alive", "1"),
                ("te", "gzip"),
                ("expect", "x"),
            ],
            empty(),
            false,
            "host: example.com:8080",
        );
        check(
            Method::GET,
            &[("upgrade", "h2c"), ("http2-settings", "x"), ("sec-websocket-key", "k")],
            empty(),
            true,
            "host: example.com:8080|sec-websocket-key: k|connection: upgrade|upgrade: websocket",
        );
    }

    /// Gives a body that cannot fail the error type of those that can.
    trait NeverFails: Sized {
        fn map_err_never(self) -> http_body_util::combinators::MapErr<Self, NeverToBodyError>;
    }
    type NeverToBodyError = fn(std::convert::Infallible) -> larder_http::body::BodyError;
    impl NeverFails for http_body_util::Empty<Bytes> {
        fn map_err_never(self) -> http_body_util::combinators::MapErr<Self, NeverToBodyError> {
            use http_body_util::BodyExt;
            let convert: NeverToBodyError = |never| match never {};
            self.map_err(convert)
        }
    }
}
