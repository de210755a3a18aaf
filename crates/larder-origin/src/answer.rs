//! What an origin may answer: a final head is checked and stripped before anybody else sees it (RFC 9112 6.3).
//!
//! In: a head that hyper has parsed. Out: end-to-end fields, the length that was announced, and whether the connection
//! may be used again; or an error, after which it is closed. hyper has refused by then what is no HTTP at all: a
//! missing status line, a status below 100, folded lines, space before a colon, names that are no tokens, NUL or a
//! bare CR in a value. It has also refused Transfer-Encoding on HTTP/1.0. It does not look at framing where no
//! content follows (HEAD, 204, 304), prefers Transfer-Encoding over any Content-Length, and decodes only the
//! outermost of several codings: those leniencies end here. A bare LF as a line end is accepted by hyper and repaired
//! by writing the head anew.

use std::sync::Arc;
use std::time::Duration;

use http::header;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use larder_http::body::Body;
use larder_http::message::{Interim, Tunnel};

use crate::error::OriginError;
use crate::fleet::ServerTag;
use crate::settings::HeadLimits;

/// Where interim responses go.
pub type InterimSink = Arc<dyn Fn(Interim) + Send + Sync>;

/// How long the parts of an exchange took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Waiting for a place among the requests in flight, and for the names of servers.
    pub queue: Duration,
    /// DNS, TCP and TLS; `None` on a used connection.
    pub connect: Option<Duration>,
    /// From handing the request to the connection to the end of the final head.
    pub first_byte: Duration,
}

/// A final response. Dropping it, or its body before the end, closes the connection.
#[derive(Debug)]
pub struct OriginResponse {
    /// 101 (then with a tunnel), or 200 to 999.
    pub status: StatusCode,
    /// End-to-end fields; Content-Length is in `content_length`.
    pub fields: HeaderMap,
    /// What the origin announced, also where no content follows (HEAD, 304).
    pub content_length: Option<u64>,
    /// The trailers that are announced to come behind the body.
    pub announced: Option<HeaderValue>,
    /// `Empty`, or a `Stream` with the length from the framing. Never ends cleanly before its framing says so.
    pub body: Body,
    /// Both directions, where WebSocket was asked for and granted.
    pub tunnel: Option<Tunnel>,
    /// Which server answered, as configured.
    pub server: Arc<str>,
    /// How often the request was sent, with this time.
    pub attempts: u32,
    /// Names the server, for a cookie that keeps a client there.
    pub tag: ServerTag,
    /// Whether a kept connection was used.
    pub reused: bool,
    /// How long it took.
    pub timing: Timing,
}

/// What a checked head says about its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Content-Length, where it stands.
    pub(crate) content_length: Option<u64>,
    /// Whether the connection may serve another exchange after this message.
    pub(crate) is_reusable: bool,
}

/// Checks a final head other than 101.
pub(crate) fn check(parts: &Parts, method: &Method, limits: &HeadLimits) -> Result<Framing, OriginError> {
    let fields = &parts.headers;
    let is_too_large = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        name.as_str().len() + value.len() > limits.field_bytes_max
    };
    if fields.len() > limits.fields_max || fields.iter().any(is_too_large) {
        return Err(OriginError::HeadTooLarge);
    }
    let content_length = content_length(fields)?;
    let coding = transfer_coding(fields)?;
    let has_content = *method != Method::HEAD
        && parts.status != StatusCode::NO_CONTENT
        && parts.status != StatusCode::NOT_MODIFIED;
    match coding {
        Coding::None => {}
        _ if parts.version == Version::HTTP_10 => {
            return Err(OriginError::BadResponse("transfer-encoding on http/1.0"));
        }
        Coding::Chunked => {}
        Coding::Unknown if content_length.is_some() => {
            return Err(OriginError::BadResponse("unknown transfer-encoding with content-length"));
        }
        Coding::Unknown => {}
    }
    // A sender that states two framings is confused or hostile: read by the rule, not trusted further.
    let is_ambiguous = coding != Coding::None && content_length.is_some();
    // hyper answers an HTTP/1.0 peer in HTTP/1.0 from then on, and would drop an upload of unknown length.
    let is_reusable = parts.version == Version::HTTP_11 && !is_ambiguous && coding != Coding::Unknown;
    let content_length = if has_content && coding != Coding::None { None } else { content_length };
    Ok(Framing { content_length, is_reusable })
}

/// The one length that all lines and list members agree on (RFC 9110 8.6).
fn content_length(fields: &HeaderMap) -> Result<Option<u64>, OriginError> {
    let mut length = None;
    for value in fields.get_all(header::CONTENT_LENGTH) {
        for member in value.as_bytes().split(|b| *b == b',') {
            let member = member.trim_ascii();
            let parsed = std::str::from_utf8(member)
                .ok()
                .filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|text| text.parse::<u64>().ok())
                // The largest values are hyper's marks for other framings.
                .filter(|length| *length < u64::MAX - 2)
                .ok_or(OriginError::BadResponse("malformed content-length"))?;
            if length.is_some_and(|other| other != parsed) {
                return Err(OriginError::BadResponse("conflicting content-length"));
            }
            length = Some(parsed);
        }
    }
    Ok(length)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    /// Exactly `chunked`, once.
    Chunked,
    /// Something else; ends with the connection.
    Unknown,
}

fn transfer_coding(fields: &HeaderMap) -> Result<Coding, OriginError> {
    let mut codings = 0_usize;
    let mut chunked = 0_usize;
    for value in fields.get_all(header::TRANSFER_ENCODING) {
        for member in value.as_bytes().split(|b| *b == b',') {
            let member = member.trim_ascii();
            codings += 1;
            if !member.iter().all(u8::is_ascii_graphic) {
                return Err(OriginError::BadResponse("malformed transfer-encoding"));
            }
            chunked += usize::from(member.eq_ignore_ascii_case(b"chunked"));
        }
    }
    match (codings, chunked) {
        (0, _) => Ok(Coding::None),
        (1, 1) => Ok(Coding::Chunked),
        (_, 0) => Ok(Coding::Unknown),
        // `gzip, chunked` was not asked for (no TE was sent), and undoing half of it would corrupt the content.
        _ => Err(OriginError::BadResponse("chunked with other transfer-codings")),
    }
}

/// Takes connection-level fields and the length out.
pub(crate) fn strip(fields: &mut HeaderMap) {
    larder_http::connection::strip(fields);
    fields.remove(header::CONTENT_LENGTH);
}

/// Whether a 101 grants WebSocket (RFC 6455 4.1). The value of Sec-WebSocket-Accept is for the client to verify: it
/// alone knows whether it made the key.
pub(crate) fn grants_websocket(parts: &mut Parts) -> bool {
    let options = larder_http::connection::strip(&mut parts.headers);
    options.upgrade && options.websocket && parts.headers.contains_key("sec-websocket-accept")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn head(version: Version, status: u16, lines: &[(&str, &str)]) -> Parts {
        let mut builder = http::Response::builder().version(version).status(status);
        for (name, value) in lines {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn framing_is_believed_only_where_it_is_unambiguous() {
        let one = Version::HTTP_11;
        let zero = Version::HTTP_10;
        let get = Method::GET;
        type Case<'a> =
            (Version, Method, u16, &'a [(&'a str, &'a str)], Result<(Option<u64>, bool), &'a str>);
        let cases: &[Case<'_>] = &[
            (one, get.clone(), 200, &[], Ok((None, true))),
            (one, get.clone(), 200, &[("content-length", "5")], Ok((Some(5), true))),
            (one, get.clone(), 200, &[("content-length", "5, 5")], Ok((Some(5), true))),
            (one, get.clone(), 200, &[("content-length", "5"), ("content-length", "5")], Ok((Some(5), true))),
            (one, get.clone(), 200, &[("content-length", "5"), ("content-length", "6")], Err("conflicting")),
            (one, get.clone(), 200, &[("content-length", "5,6")], Err("conflicting")),
            (one, get.clone(), 200, &[("content-length", "")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "5,")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "+5")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "-1")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "0x5")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "5 5")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "99999999999999999999")], Err("malformed")),
            (one, get.clone(), 200, &[("content-length", "18446744073709551615")], Err("malformed")),
            (one, Method::HEAD, 200, &[("content-length", "5")], Ok((Some(5), true))),
            (one, Method::HEAD, 200, &[("content-length", "x")], Err("malformed")),
            (one, get.clone(), 304, &[("content-length", "5"), ("content-length", "6")], Err("conflicting")),
            (one, get.clone(), 200, &[("transfer-encoding", "chunked")], Ok((None, true))),
            (one, get.clone(), 200, &[("transfer-encoding", "Chunked")], Ok((None, true))),
            (
                one,
                get.clone(),
                200,
                &[("transfer-encoding", "chunked"), ("content-length", "5")],
                Ok((None, false)),
            ),
            (
                one,
                get.clone(),
                200,
                &[("transfer-encoding", "chunked"), ("content-length", "x")],
                Err("malformed"),
            ),
            (one, get.clone(), 200, &[("transfer-encoding", "foo")], Ok((None, false))),
            (
                one,
                get.clone(),
                200,
                &[("transfer-encoding", "foo"), ("content-length", "5")],
                Err("unknown transfer-encoding with"),
            ),
            (one, get.clone(), 200, &[("transfer-encoding", "gzip, chunked")], Err("other")),
            (one, get.clone(), 200, &[("transfer-encoding", "chunked, identity")], Err("other")),
            (
                one,
                get.clone(),
                200,
                &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
                Err("other"),
            ),
            (one, get.clone(), 200, &[("transfer-encoding", "chunked;q=1")], Ok((None, false))),
            (one, get.clone(), 200, &[("transfer-encoding", "chun\u{e9}ked")], Err("malformed")),
            (zero, get.clone(), 200, &[("transfer-encoding", "chunked")], Err("http/1.0")),
            (zero, Method::HEAD, 200, &[("transfer-encoding", "chunked")], Err("http/1.0")),
            (zero, get.clone(), 200, &[("content-length", "5")], Ok((Some(5), false))),
            (zero, get, 200, &[("connection", "keep-alive")], Ok((None, false))),
        ];
        for (version, method, status, lines, expected) in cases {
            let got = check(&head(*version, *status, lines), method, &HeadLimits::default());
            match (got, expected) {
                (Ok(framing), Ok((content_length, is_reusable))) => {
                    let expected = Framing { content_length: *content_length, is_reusable: *is_reusable };
                    assert_eq!(framing, expected, "{method} {lines:?}");
                }
                (Err(OriginError::BadResponse(why)), Err(part)) => {
                    assert!(why.contains(part), "{method} {lines:?}: {why}");
                }
                (got, expected) => panic!("{method} {lines:?}: {got:?}, expected {expected:?}"),
            }
        }
    }
}
