//! The head of a request as HTTP/2 says it (RFC 9113 8.2, 8.3), made from the one that HTTP/1.1 would have got.
//!
//! Host becomes `:authority`; framing and connection-level fields are left out, but for `te: trailers`, the one
//! that HTTP/2 knows. Everything else is the same, so that an origin sees the same request by either protocol.

use http::header::{self, HeaderName};
use http::request::Parts;
use http::uri::{self, Authority, Uri};
use http::{HeaderMap, Request, Version};
use larder_http::message::Scheme;

use crate::error::OriginError;

/// Fields that HTTP/2 has no place for.
const LEFT_OUT: [HeaderName; 6] = [
    header::HOST,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Translates the head `given`.
///
/// # Errors
/// A switch of protocols, and otherwise only where a type's promise is broken.
pub(super) fn translate(given: &Parts, scheme: Scheme) -> Result<Request<()>, OriginError> {
    if given.headers.contains_key(header::UPGRADE) {
        return Err(OriginError::BadRequest("for a switch of protocols, over http/2,"));
    }
    let authority = given
        .headers
        .get(header::HOST)
        .and_then(|host| Authority::try_from(host.as_bytes()).ok())
        .ok_or(OriginError::BadRequest("authority"))?;
    let mut parts = uri::Parts::default();
    parts.scheme = Some(match scheme {
        Scheme::Http => uri::Scheme::HTTP,
        Scheme::Https => uri::Scheme::HTTPS,
    });
    parts.authority = Some(authority);
    parts.path_and_query = given.uri.path_and_query().cloned();
    let uri = Uri::from_parts(parts).map_err(|_| OriginError::BadRequest("target"))?;

    let mut fields = HeaderMap::with_capacity(given.headers.len());
    for (name, value) in &given.headers {
        if !LEFT_OUT.contains(name) && (*name != header::TE || value == "trailers") {
            fields.append(name.clone(), value.clone());
        }
    }
    let mut request = Request::new(());
    *request.method_mut() = given.method.clone();
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = fields;
    Ok(request)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &'static str, lines: &[(&str, &str)], expected: Result<&str, &str>) {
        let mut request = Request::options(target);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let got = translate(&parts, Scheme::Https).map(|request| {
            let uri = request.uri();
            let mut text = format!(
                "{} {} {}",
                uri.scheme_str().unwrap(),
                uri.authority().unwrap(),
                uri.path_and_query().unwrap()
            );
            for (name, value) in request.headers() {
                text.push_str(&format!("|{name}: {}", value.to_str().unwrap()));
            }
            text
        });
        match (got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(OriginError::BadRequest(why)), Err(part)) => assert!(why.contains(part), "{why}"),
            (got, expected) => panic!("{got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn a_head_is_the_same_by_either_protocol() {
        check("/a?b=%2F", &[("host", "a.test:8080")], Ok("https a.test:8080 /a?b=%2F"));
        check("*", &[("host", "a.test")], Ok("https a.test *"));
        check(
            "/",
            &[
                ("host", "a.test"),
                ("x-a", "1"),
                ("transfer-encoding", "chunked"),
                ("te", "trailers"),
                ("te", "gzip"),
                ("keep-alive", "1"),
                ("content-length", "3"),
                ("x-a", "2"),
            ],
            Ok("https a.test /|x-a: 1|x-a: 2|te: trailers|content-length: 3"),
        );
        check("/", &[("host", "[::1]:8080")], Ok("https [::1]:8080 /"));
        check("/", &[], Err("authority"));
        check("/", &[("host", "a.test"), ("connection", "upgrade"), ("upgrade", "websocket")], Err("switch"));
    }
}
