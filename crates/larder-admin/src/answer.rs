//! The form of every answer: what it is, that nobody may keep it, that no browser may read more into it.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Response, ResponseHead};

use crate::larder::Unexplained;

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

/// The methods of every endpoint.
const METHODS: &str = "GET, HEAD";

/// An answer with content.
pub(crate) fn content(status: StatusCode, form: &'static str, bytes: impl Into<Bytes>) -> Response {
    let mut fields = HeaderMap::with_capacity(8);
    let mut set =
        |name: HeaderName, value: &'static str| fields.insert(name, HeaderValue::from_static(value));
    set(CONTENT_TYPE, form);
    set(CACHE_CONTROL, "no-store");
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    if form == HTML {
        set(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    }
    Response::new(ResponseHead::new(status, fields), Body::from(bytes.into()))
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its Host may belong to somebody else.
    Host,
    /// It does not show the token.
    Token,
    /// There is nothing by that name.
    Path,
    /// Neither GET nor HEAD.
    Method,
    /// A page of another site sent it.
    Page,
    /// A query that cannot be read.
    Query,
    /// As many explanations are under way as may be.
    Busy,
    /// Statistics that cannot be written as JSON.
    Broken,
}

/// The answer to a request that is refused: JSON with a fixed word and a sentence.
pub(crate) fn refusal(refused: Refused) -> Response {
    let (status, text) = match refused {
        Refused::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            r#"{"error":"host","message":"ask by address, by localhost, or by a name that the configuration lists"}"#,
        ),
        Refused::Token => (
            StatusCode::UNAUTHORIZED,
            r#"{"error":"token","message":"show the admin token: Authorization: Bearer TOKEN"}"#,
        ),
        Refused::Path => (StatusCode::NOT_FOUND, r#"{"error":"not-found","message":"/ lists what is here"}"#),
        Refused::Method => (
            StatusCode::METHOD_NOT_ALLOWED,
            r#"{"error":"method","message":"only GET and HEAD are answered"}"#,
        ),
        Refused::Page => (
            StatusCode::FORBIDDEN,
            r#"{"error":"page","message":"no page of another site may have something explained"}"#,
        ),
        Refused::Busy => (
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"error":"busy","message":"too many explanations at once: ask again"}"#,
        ),
        Refused::Query => (
            StatusCode::BAD_REQUEST,
            r#"{"error":"query","message":"ask for /explain?url=URL, with method=, field=Name:%20value, content=, offline=true"}"#,
        ),
        Refused::Broken => {
            (StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"broken","message":"see the log"}"#)
        }
    };
    let mut response = content(status, JSON, text);
    match refused {
        Refused::Token => {
            let challenge = HeaderValue::from_static("Bearer realm=\"larder\"");
            response.head.fields.insert(WWW_AUTHENTICATE, challenge);
        }
        Refused::Method => {
            response.head.fields.insert(ALLOW, HeaderValue::from_static(METHODS));
        }
        Refused::Busy => {
            response.head.fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Refused::Host | Refused::Path | Refused::Page | Refused::Query | Refused::Broken => {}
    }
    response
}

/// The answer to a question that has no explanation.
pub(crate) fn unexplained(why: &Unexplained) -> Response {
    let json = serde_json::json!({ "error": why.token, "message": why.message });
    content(StatusCode::UNPROCESSABLE_ENTITY, JSON, json.to_string())
}
