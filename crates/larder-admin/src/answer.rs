//! The form of every answer: what it is, and the fields that keep browsers and caches from doing more with it.
//!
//! In: content, or why there is none. Out: a response that is not stored anywhere. Its fields let a browser run and load only what comes from this
//! address, and let no other page frame it or read it.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use larder_http::body::Body;
use larder_http::message::{Response, ResponseHead};

use crate::endpoints::line::{Action, Endpoint};
use crate::larder::{Fault, Unanswered, Unexplained};

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
/// A stored body, whatever its own type is: nothing that a browser would run.
const BYTES: &str = "application/octet-stream";

/// What every answer forbids a browser: all but scripts, styles, pictures and requests of this address itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The fields of every answer.
const FIELDS: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// An answer with content.
pub(crate) fn content(status: StatusCode, form: &'static str, bytes: impl Into<Bytes>) -> Response {
    with_body(status, form, Body::from(bytes.into()))
}

/// An answer whose content may come as it is read.
pub(crate) fn with_body(status: StatusCode, form: &'static str, body: Body) -> Response {
    let mut fields = HeaderMap::with_capacity(8);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(form));
    for (name, value) in FIELDS {
        fields.insert(name, HeaderValue::from_static(value));
    }
    Response::new(ResponseHead::new(status, fields), body)
}

/// A stored body, which a browser saves and never shows.
pub(crate) fn attachment(body: Body) -> Response {
    let mut response = with_body(StatusCode::OK, BYTES, body);
    response.head.fields.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    response
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refused {
    /// Its Host may belong to somebody else.
    Host,
    /// It shows no token.
    NoToken,
    /// It shows a token that is not the one.
    WrongToken,
    /// The same, after too many of them; for so long.
    WrongTokens(Duration),
    /// Its token is for looking, and it would change something.
    ViewToken,
    /// There is nothing by that name.
    Path,
    /// This larder is in no fleet.
    NoFleet,
    /// None of the endpoint's methods.
    Method(&'static Endpoint),
    /// A page of another site sent it.
    Page,
    /// A query that cannot be read.
    Query,
    /// A query of `/objects` that cannot be read.
    ListQuery,
    /// A query of `/object` that cannot be read.
    ObjectQuery,
    /// A renewal of no certificate.
    RenewQuery,
    /// A renewal of a certificate that larder does not order.
    NotOrdered,
    /// A change without anything that a page of another site could not send.
    Change,
    /// Content that is too long, or broke off.
    Content,
    /// As many explanations, or looks at what is stored, are under way as may be.
    Busy,
    /// A query of the live view that cannot be read.
    LiveQuery,
    /// A query for figures over time that cannot be read.
    HistoryQuery,
    /// A query of figures that cannot be read.
    FiguresQuery,
    /// As many streams are open as may be.
    Streams,
    /// Nothing is seen of requests here.
    NoWatch,
    /// Statistics that cannot be written as JSON.
    Broken,
}

/// The status of a refusal, a fixed word and a sentence.
pub(crate) fn words(refused: Refused) -> (StatusCode, &'static str, &'static str) {
    match refused {
        Refused::Host => (
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "ask by address, by localhost, or by a name that the configuration lists",
        ),
        Refused::NoToken | Refused::WrongToken => {
            (StatusCode::UNAUTHORIZED, "token", "show the admin token: Authorization: Bearer TOKEN")
        }
        Refused::WrongTokens(_) => (
            StatusCode::TOO_MANY_REQUESTS,
            "wrong-tokens",
            "too many wrong tokens came from this address: wait for a minute, or show the right one",
        ),
        Refused::ViewToken => (
            StatusCode::FORBIDDEN,
            "view-token",
            "view_token may look and explain, but not purge: show the token of [admin]",
        ),
        Refused::NoFleet => (StatusCode::NOT_FOUND, "no-fleet", "no [fleet] is configured here"),
        Refused::RenewQuery => (StatusCode::BAD_REQUEST, "query", "name the host: name=www.example.com"),
        Refused::NotOrdered => (
            StatusCode::NOT_FOUND,
            "not-ordered",
            "larder orders no certificate for this host: no site with tls = \"acme\" has it",
        ),
        Refused::Path => (StatusCode::NOT_FOUND, "not-found", "/ lists what is here"),
        Refused::Method(_) => {
            (StatusCode::METHOD_NOT_ALLOWED, "method", "Allow lists the methods that are answered here")
        }
        Refused::Page => (StatusCode::FORBIDDEN, "page", "no page of another site may ask for this"),
        Refused::Change => (
            StatusCode::FORBIDDEN,
            "change",
            "send JSON with Content-Type: application/json, or a token in Authorization or Fastly-Key",
        ),
        Refused::Content => {
            (StatusCode::PAYLOAD_TOO_LARGE, "content", "the content is longer than 1 MiB, or broke off")
        }
        Refused::Busy => {
            (StatusCode::SERVICE_UNAVAILABLE, "busy", "too many ask for this at once: ask again")
        }
        Refused::Query => (
            StatusCode::BAD_REQUEST,
            "query",
            "ask for /explain?url=URL, with method=, field=Name:%20value, content=, offline=true",
        ),
        Refused::ListQuery => (
            StatusCode::BAD_REQUEST,
            "query",
            "ask for /objects, with prefix=, store=, cursor=, limit=1 to 1000, remote=true, names=N",
        ),
        Refused::ObjectQuery => (
            StatusCode::BAD_REQUEST,
            "query",
            "ask for /object?url=URL, with body=1 for the body of the first response, with assembled=page for the page of a template",
        ),
        Refused::LiveQuery => (
            StatusCode::BAD_REQUEST,
            "query",
            "a parameter stands twice or cannot be read: limit and recent are up to 1000, all is true or false, tick and samples are 0 or 1",
        ),
        Refused::HistoryQuery => (
            StatusCode::BAD_REQUEST,
            "query",
            "ask with names=A,B for series, and with of=hit, forwarded, local, all or origin/NAME for latencies; from, to and step are seconds",
        ),
        Refused::FiguresQuery => {
            (StatusCode::BAD_REQUEST, "query", "a parameter stands twice, has no value or is no text")
        }
        Refused::Streams => {
            (StatusCode::SERVICE_UNAVAILABLE, "streams", "as many streams are open as may be: close one")
        }
        Refused::NoWatch => (StatusCode::NOT_FOUND, "no-live", "nothing is seen of requests here"),
        Refused::Broken => (StatusCode::INTERNAL_SERVER_ERROR, "broken", "see the log"),
    }
}

/// The answer to a request that is refused: JSON with a fixed word and a sentence.
pub(crate) fn refusal(refused: Refused) -> Response {
    let (_, word, message) = words(refused);
    refusal_as(refused, &serde_json::json!({ "error": word, "message": message }))
}

/// The same, with other JSON.
pub(crate) fn refusal_as(refused: Refused, json: &serde_json::Value) -> Response {
    let (status, ..) = words(refused);
    let mut response = content(status, JSON, json.to_string());
    match refused {
        Refused::NoToken | Refused::WrongToken => {
            let challenge = HeaderValue::from_static("Bearer realm=\"larder\"");
            response.head.fields.insert(WWW_AUTHENTICATE, challenge);
        }
        Refused::Method(endpoint) => {
            if let Ok(methods) = HeaderValue::try_from(endpoint.methods()) {
                response.head.fields.insert(ALLOW, methods);
            }
        }
        Refused::WrongTokens(wait) => {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.head.fields.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        Refused::Busy | Refused::Streams => {
            response.head.fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        Refused::Host
        | Refused::Path
        | Refused::NoFleet
        | Refused::ViewToken
        | Refused::Page
        | Refused::Change
        | Refused::Content
        | Refused::Query
        | Refused::ListQuery
        | Refused::ObjectQuery
        | Refused::RenewQuery
        | Refused::NotOrdered
        | Refused::LiveQuery
        | Refused::HistoryQuery
        | Refused::FiguresQuery
        | Refused::NoWatch
        | Refused::Broken => {}
    }
    response
}

/// The answer to a request with a parameter that its endpoint does not have.
pub(crate) fn unknown_parameter(name: &str, action: &Action) -> Response {
    let known: Vec<_> = action.parameters.iter().map(|parameter| parameter.name).collect();
    let known = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("known are {}", known.join(", "))
    };
    let name: String = name.chars().take(64).collect();
    let json = serde_json::json!({
        "error": "parameter",
        "message": format!("there is no parameter {name:?} here: {known}"),
    });
    content(StatusCode::BAD_REQUEST, JSON, json.to_string())
}

/// The answer to a question that has no explanation.
pub(crate) fn unexplained(why: &Unexplained) -> Response {
    let json = serde_json::json!({ "error": why.token, "message": why.message });
    content(StatusCode::UNPROCESSABLE_ENTITY, JSON, json.to_string())
}

/// The answer to a question about what is stored that has none.
pub(crate) fn unanswered(why: &Unanswered) -> Response {
    let status = match why.fault {
        Fault::Asker => StatusCode::BAD_REQUEST,
        Fault::Absent => StatusCode::NOT_FOUND,
        Fault::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Fault::Store => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let json = serde_json::json!({ "error": why.token, "message": why.message });
    content(status, JSON, json.to_string())
}
