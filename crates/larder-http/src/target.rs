//! What is asked: the request target (RFC 9112 3.2), kept byte for byte.
//!
//! In: the target of a request line or `:path`. Out: a [`Target`] whose raw bytes are the ones that are keyed and
//! sent to the origin, and a canonical copy of the path for matching rules and files only. What is accepted is what
//! `http::uri::PathAndQuery` accepts, less `#` and bytes above 0x7f, so that handing a target to a client library
//! can never fail.
//! Deliberately absent: authority-form (CONNECT is not served), and any change to what the origin receives.

pub mod reference;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;

use crate::scheme::Scheme;

/// The longest target that can be represented, in bytes; listeners limit it further.
const TARGET_BYTES_MAX: usize = 65_534;

/// Why a target was refused. All are the client's fault and answered by 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing there.
    #[error("empty target")]
    Empty,
    /// Neither a path nor an absolute URI of a scheme that is served.
    #[error("not a form that is served")]
    Form,
    /// `#`, a space, a control, or a byte that has to be escaped.
    #[error("a byte that has to be escaped")]
    Byte,
    /// More than can be represented.
    #[error("target too long")]
    TooLong,
}

/// A path that would leave the root (`/../x`). Answered by 400 wherever paths are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path climbs above the root")]
pub struct ClimbsAboveRoot;

/// Raw path and query. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    raw: ByteString,
    path_len: usize,
    /// Whether the path holds nothing that another spelling of it could hold otherwise.
    is_canonical: bool,
}

impl Target {
    /// Checks a target in origin-form: a path that starts with `/`, and perhaps a query.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn parse(raw: Bytes) -> Result<Self, TargetError> {
        match raw.first() {
            None => return Err(TargetError::Empty),
            Some(b'/') => {}
            Some(_) => return Err(TargetError::Form),
        }
        if raw.len() > TARGET_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        let (mut path_len, mut before, mut is_canonical) = (0, 0, true);
        for byte in raw.iter().copied().take_while(|byte| PATH_BYTES[usize::from(*byte)]) {
            is_canonical &= !matches!((before, byte), (b'/', b'.' | b'/') | (_, b'%'));
            before = byte;
            path_len += 1;
        }
        match raw.get(path_len..).unwrap_or_default() {
            [] => {}
            [b'?', query @ ..] if query.iter().all(|byte| is_query_byte(*byte)) => {}
            _ => return Err(TargetError::Byte),
        }
        // All of it is ASCII.
        let raw = ByteString::try_from(raw).map_err(|_| TargetError::Byte)?;
        Ok(Self { raw, path_len, is_canonical })
    }

    /// The target `*` of a server-wide OPTIONS.
    pub fn asterisk() -> Self {
        Self { raw: ByteString::from_static("*"), path_len: 1, is_canonical: true }
    }

    /// Whether this is `*`.
    pub fn is_asterisk(&self) -> bool {
        &*self.raw == "*"
    }

    /// Path and query as they came.
    pub fn as_str(&self) -> &str {
        &self.raw
    }

    /// The same as bytes, for hashing, comparing and handing on.
    pub fn as_bytes(&self) -> &Bytes {
        self.raw.as_bytes()
    }

    /// The path as it came.
    pub fn path(&self) -> &str {
        let (path, _) = self.as_str().split_at_checked(self.path_len).unwrap_or_default();
        path
    }

    /// What follows the first `?`, which may be empty; `None` where there is none.
    pub fn query(&self) -> Option<&str> {
        self.as_str().get(self.path_len + 1..)
    }

    /// The path as rules and files see it: escapes of unreserved characters decoded and all others in upper case
    /// (RFC 3986 6.2.2), dot segments resolved whether plain or escaped, empty segments merged. For matching only.
    ///
    /// # Errors
    /// The path would leave the root.
    pub fn canonical_path(&self) -> Result<Cow<'_, str>, ClimbsAboveRoot> {
        let path = self.path();
        if self.is_canonical {
            return Ok(Cow::Borrowed(path));
        }
        let canonical = resolve_segments(&decode_unreserved(path))?;
        Ok(if canonical == path { Cow::Borrowed(path) } else { Cow::Owned(canonical) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.as_str())
    }
}

/// Splits a target in absolute-form into its scheme, the raw authority, and the raw origin-form target, both still
/// to be parsed. An empty path becomes `/`.
///
/// # Errors
/// [`TargetError::Form`] where it is not `http://` or `https://` followed by something.
pub fn absolute_form(raw: &Bytes) -> Result<(Scheme, Bytes, Bytes), TargetError> {
    let starts_with =
        |prefix: &[u8]| raw.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let (scheme, authority_start) = if starts_with(b"http://") {
        (Scheme::Http, 7)
    } else if starts_with(b"https://") {
        (Scheme::Https, 8)
    } else {
        return Err(TargetError::Form);
    };
    let rest = raw.slice(authority_start..);
    let authority_len = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let authority = rest.slice(..authority_len);
    let target = rest.slice(authority_len..);
    let target = match target.first() {
        None => Bytes::from_static(b"/"),
        Some(b'/') => target,
        Some(_) => [b"/", target.as_ref()].concat().into(),
    };
    Ok((scheme, authority, target))
}

const PATH_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_path_byte(byte as u8);
        byte += 1;
    }
    table
};

/// What may stand in a path unescaped: RFC 3986's characters and those that browsers are known to send as they are.
const fn is_path_byte(byte: u8) -> bool {
    matches!(byte, b'!' | b'"' | 0x24..=0x3b | b'=' | 0x40..=0x5f | 0x61..=0x7e)
}

/// The same for a query.
const fn is_query_byte(byte: u8) -> bool {
    matches!(byte, b'!' | 0x24..=0x3b | b'=' | 0x3f..=0x7e)
}

fn decode_unreserved(path: &str) -> String {
    let hex = |byte: u8| (byte as char).to_digit(16);
    let mut out = String::with_capacity(path.len());
    let mut rest = path.as_bytes();
    loop {
        rest = match rest {
            [] => return out,
            [b'%', high, low, after @ ..] => {
                match (hex(*high), hex(*low)) {
                    (Some(h), Some(l)) => match char::from_u32(h * 16 + l) {
                        Some(c) if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') => {
                            out.push(c)
                        }
                        _ => {
                            out.push('%');
                            out.push(high.to_ascii_uppercase() as char);
                            out.push(low.to_ascii_uppercase() as char);
                        }
                    },
                    // Not an escape at all: kept as it is, and looked at again from its second byte on.
                    _ => {
                        out.push('%');
                        rest = rest.get(1..).unwrap_or_default();
                        continue;
                    }
                }
                after
            }
            [byte, after @ ..] => {
                out.push(*byte as char);
                after
            }
        };
    }
}

fn resolve_segments(path: &str) -> Result<String, ClimbsAboveRoot> {
    let mut out = String::with_capacity(path.len());
    let mut ends_open = false;
    for segment in path.split('/').skip(1) {
        ends_open = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                let parent = out.rfind('/').ok_or(ClimbsAboveRoot)?;
                out.truncate(parent);
            }
            _ => {
                out.push('/');
                out.push_str(segment);
            }
        }
    }
    if ends_open || out.is_empty() {
        out.push('/');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(raw: &str) -> Result<Target, TargetError> {
        Target::parse(Bytes::copy_from_slice(raw.as_bytes()))
    }

    #[track_caller]
    fn check(raw: &str, expected: Result<(&str, Option<&str>), TargetError>) {
        let parsed = parse(raw);
        assert_eq!(parsed.as_ref().map(|t| (t.path(), t.query())).map_err(|e| *e), expected, "{raw:?}");
    }

    #[test]
    fn path_and_query_stay_as_they_came() {
        check("/", Ok(("/", None)));
        check("/a?", Ok(("/a", Some(""))));
        check("/a?b=c?d/e", Ok(("/a", Some("b=c?d/e"))));
        check("//x/../%2e%zz", Ok(("//x/../%2e%zz", None)));
        check("/a\"{|}~", Ok(("/a\"{|}~", None)));
        check("/?`'", Ok(("/", Some("`'"))));
    }

    #[test]
    fn what_has_to_be_escaped_is_refused() {
        check("", Err(TargetError::Empty));
        for raw in ["*", "a", "?a", "http://a/", "host:443", "#"] {
            check(raw, Err(TargetError::Form));
        }
        for raw in [
            "/a b", "/a#b", "/a?b#c", "/a\0", "/a\r", "/a\n", "/a\t", "/\u{7f}", "/\u{e9}", "/<", "/?<",
            "/?\"",
        ] {
            check(raw, Err(TargetError::Byte));
        }
        check(&format!("/{}", "a".repeat(65_533)), Ok((&format!("/{}", "a".repeat(65_533)), None)));
        check(&format!("/{}", "a".repeat(65_534)), Err(TargetError::TooLong));
    }

    #[test]
    fn the_canonical_path_has_one_form() {
        for (raw, expected) in [
            ("/", Ok("/")),
            ("/a/b", Ok("/a/b")),
            ("//a///b//", Ok("/a/b/")),
            ("/a/./b", Ok("/a/b")),
            ("/a/../b", Ok("/b")),
            ("/a/..", Ok("/")),
            ("/a/b/..", Ok("/a/")),
            ("/a/.", Ok("/a/")),
            ("/%61%2D%2e%7E", Ok("/a-.~")),
            ("/a/%2e%2E/b", Ok("/b")),
            ("/a/.%2e/b", Ok("/b")),
            ("/a%2fb%3f", Ok("/a%2Fb%3F")),
            ("/%", Ok("/%")),
            ("/%4", Ok("/%4")),
            ("/%%41", Ok("/%A")),
            ("/%zz", Ok("/%zz")),
            ("/...", Ok("/...")),
            ("/.well-known/x", Ok("/.well-known/x")),
            ("/..", Err(ClimbsAboveRoot)),
            ("/a/../../b", Err(ClimbsAboveRoot)),
            ("/%2e%2e/b", Err(ClimbsAboveRoot)),
            ("//../a", Err(ClimbsAboveRoot)),
        ] {
            let target = parse(raw).expect("the table holds targets only");
            assert_eq!(target.canonical_path().as_deref(), expected.as_deref(), "{raw:?}");
        }
        let target = parse("/.well-known/%2F").expect("a target");
        assert!(matches!(target.canonical_path(), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn absolute_form_is_split() {
        let split = |raw: &str| {
            absolute_form(&Bytes::copy_from_slice(raw.as_bytes())).map(|(scheme, authority, target)| {
                let text = |b: Bytes| String::from_utf8_lossy(&b).into_owned();
                (scheme, text(authority), text(target))
            })
        };
        let expect = |s, a: &str, t: &str| Ok((s, a.to_owned(), t.to_owned()));
        assert_eq!(split("http://host"), expect(Scheme::Http, "host", "/"));
        assert_eq!(split("HTTP://host?x"), expect(Scheme::Http, "host", "/?x"));
        assert_eq!(split("https://host:1/a?b"), expect(Scheme::Https, "host:1", "/a?b"));
        assert_eq!(split("http:///a"), expect(Scheme::Http, "", "/a"));
        assert_eq!(split("http://h#f"), expect(Scheme::Http, "h", "/#f"));
        assert_eq!(split("ftp://host/"), Err(TargetError::Form));
        assert_eq!(split("http:/host/"), Err(TargetError::Form));
        assert_eq!(split("/a"), Err(TargetError::Form));
    }

    proptest! {
        #[test]
        fn every_target_is_one_for_the_client_library_too(raw in proptest::collection::vec(0x20_u8..0x80, 0..30)) {
            let raw = Bytes::from([b"/", raw.as_slice()].concat());
            let theirs = http::uri::PathAndQuery::from_maybe_shared(raw.clone());
            match Target::parse(raw.clone()) {
                Ok(target) => {
                    let theirs = theirs.expect("what we accept they accept");
                    prop_assert_eq!(theirs.as_str(), target.as_str());
                    prop_assert_eq!(theirs.path(), target.path());
                    prop_assert_eq!(theirs.query(), target.query());
                }
                Err(_) => prop_assert!(theirs.is_err() || raw.contains(&b'#')),
            }
        }

        #[test]
        fn the_canonical_path_is_its_own(raw in "/[a./%2eE]{0,24}") {
            if let Ok(first) = parse(&raw).expect("a path").canonical_path() {
                prop_assert!(first.starts_with('/') && !first.contains("//"));
                prop_assert!(!first.split('/').any(|s| s == ".."));
            }
        }
    }
}
