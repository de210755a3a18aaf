//! What an unsafe request makes outdated (RFC 9111 4.4).
//!
//! In: a request and the final answer to it. Out: the targets whose stored responses have to go: the request's own,
//! and those that Location and Content-Location name at the same origin, so that nobody can clear another site's
//! cache. An answer that is an error (4xx, 5xx) changed nothing and invalidates nothing.
//! The same resolving says whether an answer is the representation of the request's own target, which makes one to POST
//! good for later GETs (RFC 9110 9.3.3).
//! References are resolved as RFC 3986 5.2 says; those that cannot be a target are left out.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use larder_http::authority::Authority;
use larder_http::message::RequestHead;
use larder_http::target::{Target, absolute_form};

/// What invalidations have left of a stored response. A moment is on the monotonic clock; `None` where it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None of them concerns it.
    Good,
    /// Its lifetime ended at that moment. It may be used as any stale response: behind a refresh, or for an origin that fails.
    Soft {
        /// Not known: no window of stale use is left.
        since: Option<Duration>,
    },
    /// It is used again only after a validation. Until then it may stand in for an origin that fails, as if its lifetime
    /// had ended at that moment.
    Invalid {
        /// Not known: it stands in for nothing.
        since: Option<Duration>,
    },
    /// Whether an invalidation concerns it is not known any more. It is used again only after a validation by its entity
    /// tag, and stands in for nothing.
    Unproven,
    /// It is not used again, not even to be validated.
    Gone,
}

impl Verdict {
    /// What two invalidations leave together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let earlier = |one: Option<Duration>, other: Option<Duration>| {
            one.zip(other).map(|(one, other)| one.min(other))
        };
        match (self, other) {
            (Self::Gone, _) | (_, Self::Gone) => Self::Gone,
            (Self::Unproven, _) | (_, Self::Unproven) => Self::Unproven,
            (Self::Good, other) | (other, Self::Good) => other,
            (Self::Soft { since: one }, Self::Soft { since: other }) => {
                Self::Soft { since: earlier(one, other) }
            }
            (
                Self::Invalid { since: one } | Self::Soft { since: one },
                Self::Invalid { since: other } | Self::Soft { since: other },
            ) => Self::Invalid { since: earlier(one, other) },
        }
    }

    /// Whether a response of which this is left may still be of use: as an answer, or to be validated.
    pub fn is_of_use(self, has_entity_tag: bool) -> bool {
        match self {
            Self::Good | Self::Soft { .. } | Self::Invalid { .. } => true,
            Self::Unproven => has_entity_tag,
            Self::Gone => false,
        }
    }
}

/// Whether a method is known to change nothing: the safe ones of IANA's registry that a client may send. Methods that
/// are not known are not safe.
pub fn is_safe(method: &Method) -> bool {
    matches!(
        method.as_str(),
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PROPFIND" | "REPORT" | "SEARCH" | "QUERY"
    )
}

/// The targets, all of the request's own scheme and authority, whose stored responses are outdated by the answer with
/// `status` and `fields` to `request`. Empty for safe methods and for errors; no target comes twice.
pub fn invalidates(request: &RequestHead, status: StatusCode, fields: &HeaderMap) -> Vec<Target> {
    if is_safe(&request.method) || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut targets = vec![request.target.clone()];
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        let mut lines = fields.get_all(name).iter();
        // Several lines contradict each other; neither field is a list.
        if let (Some(reference), None) = (lines.next(), lines.next()) {
            targets.extend(resolve(request, reference).filter(|target| !targets.contains(target)));
        }
    }
    targets
}

/// Whether Content-Location says that the response with `fields` is a representation of the request's own target
/// (RFC 9110 6.4.2): one line, not empty, that resolves to it.
pub fn names_own_target(request: &RequestHead, fields: &HeaderMap) -> bool {
    let mut lines = fields.get_all(header::CONTENT_LOCATION).iter();
    match (lines.next(), lines.next()) {
        (Some(reference), None) if !reference.is_empty() => {
            resolve(request, reference).is_some_and(|target| target == request.target)
        }
        _ => false,
    }
}

/// The target that `reference` names, if it lies at the request's own origin.
fn resolve(request: &RequestHead, reference: &HeaderValue) -> Option<Target> {
    let reference = reference.as_bytes().trim_ascii();
    let reference = reference.split(|b| *b == b'#').next().unwrap_or_default();
    let raw = match reference {
        _ if has_scheme(reference) => same_origin(request, Bytes::copy_from_slice(reference))?,
        [b'/', b'/', ..] => {
            let absolute = [request.scheme.as_str().as_bytes(), b":", reference].concat();
            same_origin(request, absolute.into())?
        }
        _ => relative(request, reference),
    };
    Target::parse(without_dot_segments(&raw)).ok()
}

/// Whether `reference` begins with a scheme (RFC 3986 3.1).
fn has_scheme(reference: &[u8]) -> bool {
    let end = reference.iter().position(|b| matches!(b, b':' | b'/' | b'?')).unwrap_or(reference.len());
    let (scheme, rest) = reference.split_at(end);
    rest.first() == Some(&b':') && scheme.first().is_some_and(u8::is_ascii_alphabetic)
}

fn same_origin(request: &RequestHead, absolute: Bytes) -> Option<Bytes> {
    let (scheme, authority, target) = absolute_form(&absolute).ok()?;
    let authority = Authority::parse(authority, scheme).ok()?;
    (scheme == request.scheme && authority == request.authority).then_some(target)
}

/// Resolves a path, a query or nothing against the request's target.
fn relative(request: &RequestHead, reference: &[u8]) -> Bytes {
    let (path, target) = (request.target.path().as_bytes(), request.target.as_bytes());
    match reference {
        [] => target.clone(),
        [b'/', ..] => Bytes::copy_from_slice(reference),
        [b'?', ..] => [path, reference].concat().into(),
        _ => {
            let directory = path.iter().rposition(|b| *b == b'/').map_or(0, |slash| slash + 1);
            [path.get(..directory).unwrap_or_default(), reference].concat().into()
        }
    }
}

/// RFC 3986 5.2.4, on the path only. Escapes stay as they are: the key is made of raw bytes.
fn without_dot_segments(target: &[u8]) -> Bytes {
    let path_end = target.iter().position(|b| *b == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(path_end);
    let mut out: Vec<u8> = Vec::with_capacity(target.len());
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|b| *b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." => {}
            b".." => out.truncate(out.iter().rposition(|b| *b == b'/').unwrap_or(0)),
            segment => {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
        }
        if is_last {
            out.push(b'/');
        }
    }
    out.extend_from_slice(query);
    out.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::{fields, request};

    fn check(method: &str, status: u16, said: &[(&str, &str)], expected: &[&str]) {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let found = invalidates(&request(method, &[]), status, &fields(said));
        let found: Vec<&str> = found.iter().map(Target::as_str).collect();
        assert_eq!(found, expected, "{method} {status} {said:?}");
    }

    #[test]
    fn of_two_invalidations_the_harder_one_and_the_earlier_moment_hold() {
        let at = |seconds| Some(Duration::from_secs(seconds));
        let (soft, invalid) = (|since| Verdict::Soft { since }, |since| Verdict::Invalid { since });
        for (one, other, both) in [
            (Verdict::Good, Verdict::Good, Verdict::Good),
            (Verdict::Good, soft(at(3)), soft(at(3))),
            (soft(at(3)), soft(at(2)), soft(at(2))),
            (soft(at(3)), soft(None), soft(None)),
            (soft(at(3)), invalid(at(4)), invalid(at(3))),
            (invalid(at(3)), invalid(at(2)), invalid(at(2))),
            (invalid(at(3)), Verdict::Unproven, Verdict::Unproven),
            (Verdict::Unproven, Verdict::Gone, Verdict::Gone),
            (soft(at(3)), Verdict::Gone, Verdict::Gone),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both), "{one:?} {other:?}");
        }
        assert!(soft(None).is_of_use(false) && Verdict::Unproven.is_of_use(true));
        assert!(!Verdict::Unproven.is_of_use(false) && !Verdict::Gone.is_of_use(true));
    }

    #[test]
    fn unsafe_methods_that_succeeded_invalidate_their_target() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "post", "UNKNOWN"] {
            for status in [200, 201, 204, 303, 304] {
                check(method, status, &[], &["/a/b?q"]);
            }
            for status in [400, 404, 500, 999] {
                check(method, status, &[("location", "/x")], &[]);
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"] {
            check(method, 200, &[("location", "/x")], &[]);
        }
    }

    #[test]
    fn references_to_the_same_origin_are_resolved() {
        for (reference, target) in [
            ("/x", "/x"),
            ("/x/../y?z#f", "/y?z"),
            ("/../..", "/"),
            ("/x/.", "/x/"),
            ("/x/..", "/"),
            ("/x//y", "/x//y"),
            ("c", "/a/c"),
            ("c:d", ""),
            ("./c:d", "/a/c:d"),
            ("../c/?d=../e", "/c/?d=../e"),
            ("..", "/"),
            ("?x", "/a/b?x"),
            ("http://example.org", "/"),
            ("http://EXAMPLE.org:80/x?y", "/x?y"),
            ("http://example.org?y", "/?y"),
            ("HTTP://example.org/%2e%2E/x", "/%2e%2E/x"),
            ("//example.org/x", "/x"),
            ("//example.net/x", ""),
            ("https://example.org/x", ""),
            ("http://example.org:8080/x", ""),
            ("http://user@example.org/x", ""),
            ("http://example.org.evil/x", ""),
            ("mailto:a@b", ""),
            ("/a b", ""),
            ("", ""),
            ("#f", ""),
            ("/a/b?q", ""),
        ] {
            let mut expected = vec!["/a/b?q"];
            expected.extend(Some(target).filter(|target| !target.is_empty()));
            check("POST", 201, &[("location", reference)], &expected);
            check("POST", 201, &[("content-location", reference)], &expected);
        }
        check("PUT", 204, &[("location", "/x"), ("content-location", "/y")], &["/a/b?q", "/x", "/y"]);
        check("PUT", 204, &[("location", "/x"), ("content-location", "/x")], &["/a/b?q", "/x"]);
        check("PUT", 204, &[("location", "/x"), ("location", "/y")], &["/a/b?q"]);
    }

    #[test]
    fn content_location_may_name_the_requests_own_target() {
        for (reference, expected) in [
            ("/a/b?q", true),
            ("b?q", true),
            ("./b?q", true),
            ("?q", true),
            ("http://example.org/a/b?q", true),
            ("//EXAMPLE.org:80/a/b?q#f", true),
            ("", false),
            ("/a/b", false),
            ("/a/B?q", false),
            ("/a/b?q=", false),
            ("https://example.org/a/b?q", false),
            ("http://example.net/a/b?q", false),
            ("mailto:a@b", false),
        ] {
            let said = fields(&[("content-location", reference)]);
            assert_eq!(names_own_target(&request("POST", &[]), &said), expected, "{reference}");
        }
        let twice = fields(&[("content-location", "/a/b?q"), ("content-location", "/a/b?q")]);
        assert!(!names_own_target(&request("POST", &[]), &twice));
        assert!(!names_own_target(&request("POST", &[]), &fields(&[("location", "/a/b?q")])));
    }

    proptest! {
        #[test]
        fn every_target_is_one_that_a_request_could_have(reference in "[a-z./?#:%@ -]{0,24}") {
            for target in invalidates(&request("POST", &[]), StatusCode::OK, &fields(&[("location", &reference)])) {
                prop_assert!(Target::parse(target.as_bytes().clone()).is_ok());
                prop_assert!(!target.path().split('/').any(|segment| matches!(segment, "." | "..")));
            }
        }
    }
}
