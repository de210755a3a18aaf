//! Trailer fields: which of them may travel, how many, and how they are announced (RFC 9110 6.5, 6.6.2, 10.1.4).
//!
//! In: the fields behind a message's content. Out: those that may be passed on. A trailer never changes what a message
//! is: fields that frame, route, authenticate, control a cache, or describe the content are dropped (RFC 9110 6.5.1), and so
//! is what belongs to one connection or what larder writes itself.
//! Deliberately absent: joining trailers with the fields of the head, which no intermediary may do on its own.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::connection::is_connection_level;

/// Trailers that one message may carry, in bytes of names, colons and values.
pub const BYTES_MAX: usize = 8 * 1024;
/// The same in lines.
pub const LINES_MAX: usize = 100;

/// What a client says about trailers.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// It takes those of the response (`TE: trailers`).
    pub takes: bool,
    /// The names that it announces for its own content.
    pub announced: Option<Box<HeaderValue>>,
}

/// More trailers than a message may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many trailers")]
pub struct TooMany;

/// Those of `fields` that may be passed on; `None` where none is left.
///
/// # Errors
/// More of them, or more bytes, than a message may carry.
pub fn permitted(fields: HeaderMap) -> Result<Option<HeaderMap>, TooMany> {
    let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + 1 + value.len()).sum();
    if fields.len() > LINES_MAX || bytes > BYTES_MAX {
        return Err(TooMany);
    }
    let mut kept = HeaderMap::with_capacity(fields.keys_len());
    let mut last_name = None;
    for (name, value) in fields {
        last_name = name.or(last_name);
        if let Some(name) = last_name.as_ref().filter(|name| is_permitted(name)) {
            kept.append(name.clone(), value);
        }
    }
    Ok((!kept.is_empty()).then_some(kept))
}

/// The names that Trailer announces in `fields`, as far as they may be passed on, in one line.
pub fn announced(fields: &HeaderMap) -> Option<HeaderValue> {
    let lines = fields.get_all(header::TRAILER);
    lines.iter().next()?;
    let names: Vec<String> = names(lines).map(|name| name.to_string()).collect();
    if names.is_empty() { None } else { HeaderValue::try_from(names.join(", ")).ok() }
}

/// The permitted names in lines of Trailer.
pub fn names<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> impl Iterator<Item = HeaderName> {
    let members = lines.into_iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).filter(is_permitted)
}

/// Whether a field of this name may stand behind the content.
pub fn is_permitted(name: &HeaderName) -> bool {
    let text = name.as_str();
    !(is_connection_level(name)
        || ["if-", "x-forwarded-", "sec-", "proxy-"].iter().any(|start| text.starts_with(start))
        || matches!(
            text,
            // Framing and routing.
            "content-length" | "host" | "expect" | "max-forwards" | "range" | "forwarded" | "via"
            | "x-original-url" | "x-rewrite-url" | "x-http-method-override" | "x-host" | "x-real-ip" | "location"
            | "content-location" | "accept" | "accept-encoding" | "accept-language" | "accept-charset" | "accept-ranges"
            // Who asks, and what is handed to it.
            | "authorization" | "authentication-info" | "www-authenticate" | "cookie" | "cookie2" | "set-cookie"
            | "set-cookie2" | "origin" | "referer" | "user-agent" | "from"
            // What a cache decides by.
            | "age" | "cache-control" | "cache-status" | "cdn-cache-control" | "surrogate-control" | "surrogate-key"
            | "surrogate-capability" | "cache-groups" | "cache-group-invalidation" | "cache-tag" | "date" | "expires"
            | "last-modified" | "pragma" | "retry-after" | "vary" | "warning" | "clear-site-data"
            // How the content is read.
            | "content-encoding" | "content-type" | "content-range" | "content-disposition" | "content-language"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn what_says_what_a_message_is_may_not_come_behind_it() {
        for name in [
            "content-length",
            "transfer-encoding",
            "host",
            "te",
            "trailer",
            "connection",
            "authorization",
            "proxy-authorization",
            "cookie",
            "set-cookie",
            "cache-control",
            "vary",
            "content-encoding",
            "content-type",
            "content-range",
            "if-none-match",
            "x-forwarded-for",
            "x-original-url",
            "cache-status",
            "via",
        ] {
            assert!(!is_permitted(&HeaderName::from_static(name)), "{name}");
        }
        for name in [
            "grpc-status",
            "grpc-message",
            "grpc-status-details-bin",
            "x-sum",
            "digest",
            "etag",
            "server-timing",
        ] {
            assert!(is_permitted(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn what_is_not_permitted_is_dropped_and_the_rest_stays_in_order() {
        let fields = map(&[("x-a", "1"), ("host", "evil"), ("x-b", "2"), ("x-a", "3")]);
        let kept = permitted(fields).expect("few").expect("some");
        let lines: Vec<_> = kept.iter().map(|(n, v)| (n.as_str(), v.to_str().expect("text"))).collect();
        assert_eq!(lines, [("x-a", "1"), ("x-a", "3"), ("x-b", "2")]);
        assert_eq!(permitted(map(&[("set-cookie", "a=b")])), Ok(None));
        assert_eq!(permitted(HeaderMap::new()), Ok(None));
    }

    #[test]
    fn trailers_are_bounded_in_bytes_and_lines() {
        let mut many = HeaderMap::new();
        for _ in 0..=LINES_MAX {
            many.append("a", HeaderValue::from_static(""));
        }
        assert_eq!(permitted(many), Err(TooMany));
        let long = "b".repeat(BYTES_MAX);
        let large = HeaderMap::from_iter([(
            HeaderName::from_static("a"),
            HeaderValue::try_from(long).expect("a value"),
        )]);
        assert_eq!(permitted(large), Err(TooMany));
    }

    #[test]
    fn an_announcement_names_what_may_come() {
        let fields = map(&[("trailer", "X-Sum, host"), ("trailer", "grpc-status,, a b")]);
        assert_eq!(announced(&fields), Some(HeaderValue::from_static("x-sum, grpc-status")));
        assert_eq!(announced(&map(&[("trailer", "content-length")])), None);
        assert_eq!(announced(&HeaderMap::new()), None);
    }
}
