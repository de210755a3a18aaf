//! The head of an HTTP/2 request: checked and typed (RFC 9113 8.2, 8.3).
//!
//! In: what `h2` decoded; it has refused bad pseudo-fields, upper case names and connection-level fields already.
//! Out: the same [`RequestHead`] that HTTP/1 makes, held to the same limits and the same grammar, so that nothing can
//! come in by one protocol that the other would refuse. Fields are counted as they were sent, every crumb of a cookie
//! by itself, and only then are the crumbs joined.
//! A known gap of the layer below: `h2` cuts `:path` at a `#`. What is left is what is keyed and what is sent.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Version};
use larder_http::authority::Authority;
use larder_http::connection;
use larder_http::framing::{FramingError, parse_length};
use larder_http::message::{RequestHead, Scheme};
use larder_http::target::Target;
use larder_http::trailers::{self, Wish};

use crate::error::Refusal;
use crate::settings::Limits;

/// A typed head and what it said about its content.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) head: RequestHead,
    pub(super) length: Option<u64>,
    pub(super) expects_continue: bool,
    pub(super) trailers: Wish,
}

/// Types `parts`.
pub(super) fn parse(parts: Parts, scheme: Scheme, limits: &Limits) -> Result<ParsedRequest, Refusal> {
    let Parts { method, uri, headers: mut fields, .. } = parts;
    check_limits(&fields, limits)?;
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(Refusal::Method);
    }
    if uri.scheme_str().is_some_and(|its| !its.eq_ignore_ascii_case(scheme.as_str())) {
        return Err(Refusal::Scheme);
    }
    // `http` prints an absent path as `/`; RFC 9113 8.3.1 asks for one.
    let path = match uri.path_and_query() {
        Some(path) if path.as_str() != "/" || *path == PathAndQuery::from_static("/") => path.as_str(),
        _ => "",
    };
    if path.len() > limits.target_bytes_max {
        return Err(Refusal::TargetTooLong);
    }
    let target = match path {
        "*" if method == Method::OPTIONS => Target::asterisk(),
        path => Target::parse(Bytes::copy_from_slice(path.as_bytes())).map_err(|_| Refusal::Target)?,
    };
    let authority = authority(uri.authority().map(|authority| authority.as_str()), &mut fields, scheme)?;
    let length = take_length(&mut fields)?;
    let expects_continue = take_expectation(&mut fields)?;
    join_cookies(&mut fields);
    let announced = trailers::announced(&fields).map(Box::new);
    let options = connection::strip(&mut fields);
    let trailers = Wish { takes: options.te_trailers, announced };
    let head = RequestHead { method, scheme, authority, target, version: Version::HTTP_2, fields };
    Ok(ParsedRequest { head, length, expects_continue, trailers })
}

fn check_limits(fields: &HeaderMap, limits: &Limits) -> Result<(), Refusal> {
    if fields.len() > limits.fields_max {
        return Err(Refusal::TooManyFields);
    }
    for (name, value) in fields {
        if name.as_str().len() + value.len() > limits.field_bytes_max {
            return Err(Refusal::FieldTooLarge);
        }
        // RFC 9113 8.2.1: a value that HTTP/1 would have trimmed is malformed.
        let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if is_space(value.as_bytes().first()) || is_space(value.as_bytes().last()) {
            return Err(Refusal::FieldLine);
        }
    }
    Ok(())
}

/// `:authority`, Host, or both where they agree.
fn authority(pseudo: Option<&str>, fields: &mut HeaderMap, scheme: Scheme) -> Result<Authority, Refusal> {
    let parse = |bytes: &[u8]| Authority::parse(Bytes::copy_from_slice(bytes), scheme).map_err(Refusal::Host);
    let pseudo = pseudo.map(|text| parse(text.as_bytes())).transpose()?;
    let mut hosts = fields.get_all(HOST).iter();
    let host = hosts.next().map(|value| parse(value.as_bytes())).transpose()?;
    if hosts.next().is_some() {
        return Err(Refusal::HostCount);
    }
    fields.remove(HOST);
    match (pseudo, host) {
        (Some(pseudo), Some(host)) if pseudo != host => Err(Refusal::HostCount),
        (Some(authority), _) | (None, Some(authority)) => Ok(authority),
        (None, None) => Err(Refusal::HostCount),
    }
}

fn take_length(fields: &mut HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut lengths = fields.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(None);
    };
    let length = parse_length(length.as_bytes()).map_err(Refusal::Framing)?;
    if lengths.next().is_some() {
        return Err(Refusal::Framing(FramingError::ContentLength));
    }
    fields.remove(CONTENT_LENGTH);
    Ok(Some(length))
}

fn take_expectation(fields: &mut HeaderMap) -> Result<bool, Refusal> {
    let mut values = fields.get_all(EXPECT).iter();
    let Some(first) = values.next() else {
        return Ok(false);
    };
    if !first.as_bytes().eq_ignore_ascii_case(b"100-continue") || values.next().is_some() {
        return Err(Refusal::Expectation);
    }
    fields.remove(EXPECT);
    Ok(true)
}

/// Joins the crumbs into which a client may have split its Cookie field (RFC 9113 8.2.3).
fn join_cookies(fields: &mut HeaderMap) {
    let mut crumbs = fields.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let mut joined = first.as_bytes().to_vec();
    for crumb in std::iter::once(second).chain(crumbs) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(crumb.as_bytes());
    }
    if let Ok(joined) = HeaderValue::from_maybe_shared(Bytes::from(joined)) {
        fields.insert(COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use larder_http::authority::AuthorityError;

    use super::*;

    fn parse(method: &str, uri: &str, fields: &[(&str, &str)]) -> Result<ParsedRequest, Refusal> {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        super::parse(parts, Scheme::Http, &Limits::default())
    }

    #[track_caller]
    fn refused(method: &str, uri: &str, fields: &[(&str, &str)], refusal: Refusal) {
        assert_eq!(
            parse(method, uri, fields).map(|p| p.head).err(),
            Some(refusal),
            "{method} {uri} {fields:?}"
        );
    }

    #[test]
    fn authority_and_host_agree_or_the_request_is_refused() {
        for (uri, fields) in [
            ("http://a.test/x", &[][..]),
            ("http://A.test:80/x", &[("host", "a.test")][..]),
            ("/x", &[("host", "A.test.")][..]),
        ] {
            let parsed = parse("GET", uri, fields).expect("served");
            assert_eq!(parsed.head.authority.as_str(), "a.test");
            assert_eq!(parsed.head.target.as_str(), "/x");
            assert!(parsed.head.fields.is_empty());
        }
        refused("GET", "http://a.test/", &[("host", "b.test")], Refusal::HostCount);
        refused("GET", "http://a.test/", &[("host", "a.test"), ("host", "a.test")], Refusal::HostCount);
        refused("GET", "/", &[], Refusal::HostCount);
        refused("GET", "http://a.test/", &[("host", "")], Refusal::Host(AuthorityError::Empty));
        refused("GET", "http://u@a.test/", &[], Refusal::Host(AuthorityError::UserInformation));
    }

    #[test]
    fn what_http1_refuses_is_refused_here_too() {
        let host = ("host", "a");
        refused("TRACE", "/", &[host], Refusal::Method);
        refused("GET", "https://a/", &[], Refusal::Scheme);
        refused("GET", "*", &[host], Refusal::Target);
        let (mut absent, ()) = http::Request::get("/").body(()).expect("a request").into_parts();
        absent.uri = http::Uri::from_parts(http::uri::Parts::default()).expect("nothing at all");
        absent.headers.insert(HOST, HeaderValue::from_static("a"));
        let absent = super::parse(absent, Scheme::Http, &Limits::default());
        assert_eq!(absent.err(), Some(Refusal::Target));
        refused("GET", "/\u{e9}", &[host], Refusal::Target);
        refused("GET", "/", &[host, ("expect", "x")], Refusal::Expectation);
        refused("GET", &format!("/{}", "a".repeat(8192)), &[host], Refusal::TargetTooLong);
        refused("GET", "/", &[host, ("a", &"b".repeat(16_384))], Refusal::FieldTooLarge);
        for length in ["", "+1", "1,1", "1 1", "0x1"] {
            let framing = Refusal::Framing(FramingError::ContentLength);
            refused("GET", "/", &[host, ("content-length", length)], framing);
            refused("GET", "/", &[host, ("content-length", "1"), ("content-length", "1")], framing);
        }
        refused("GET", "/", &[host, ("a", " b")], Refusal::FieldLine);
        refused("GET", "/", &[host, ("a", "b\t")], Refusal::FieldLine);
    }

    #[test]
    fn cookie_crumbs_are_counted_one_by_one_and_then_joined() {
        let mut crumbs = vec![("host", "a")];
        crumbs.extend(std::iter::repeat_n(("cookie", "a"), 99));
        let parsed = parse("GET", "/", &crumbs).expect("at the limit");
        assert_eq!(parsed.head.fields.get_all(COOKIE).iter().count(), 1);
        assert_eq!(parsed.head.fields[COOKIE].len(), 99 + 98 * 2);
        crumbs.push(("cookie", "a"));
        refused("GET", "/", &crumbs, Refusal::TooManyFields);
    }
}
