//! References in a document (RFC 3986 4.2, 5.2): from what is written to what is asked for.
//!
//! In: the URI of the document, and the reference as it is written in it. Out: a target, and the site where it is not
//! the document's own; or the reason why it names nothing. Bytes that no target can hold are escaped, as browsers do it.
//! A reference that climbs above the root is refused, whether its dots are escaped or plain: a server may read either.
//! Deliberately absent: which sites may be named at all. That is for the caller.

use bytes::Bytes;

use super::{Target, is_path_byte, is_query_byte};
use crate::authority::Authority;
use crate::scheme::Scheme;

/// The URI of the document in which a reference is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentUri {
    /// How it was asked for.
    pub scheme: Scheme,
    /// Where.
    pub authority: Authority,
    /// What its origin was asked for.
    pub target: Target,
}

/// What a reference names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// `None` for the site of the document itself, whatever scheme is written.
    pub site: Option<(Scheme, Authority)>,
    /// Path and query; the fragment identifier is gone.
    pub target: Target,
}

/// Why a reference names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Another scheme than `http` and `https`, user information, or a host that no site can have.
    #[error("no site that could be asked")]
    Host,
    /// `..` leads above the root.
    #[error("the path climbs above the root")]
    Climbing,
    /// Nothing, a control character, or more than a target can hold.
    #[error("no reference")]
    Malformed,
}

/// Resolves a reference that may name another site: `http://host/path`, `//host/path`, `/path`, `path`, `?query`.
///
/// # Errors
/// See [`ReferenceError`].
pub fn resolve(document: &DocumentUri, text: &[u8]) -> Result<Reference, ReferenceError> {
    let text = trimmed(text)?;
    let (scheme, rest) = match written_scheme(text) {
        None => (document.scheme, text),
        Some((name, rest)) if rest.starts_with(b"//") => (known_scheme(name)?, rest),
        Some(_) => return Err(ReferenceError::Host),
    };
    let Some(rest) = rest.strip_prefix(b"//") else {
        return Ok(Reference { site: None, target: resolve_path(document, rest)? });
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let authority =
        Authority::parse(Bytes::copy_from_slice(authority), scheme).map_err(|_| ReferenceError::Host)?;
    let (path, query) = split(rest);
    let target = target(&without_dots(path)?, query)?;
    let site = (authority != document.authority).then_some((scheme, authority));
    Ok(Reference { site, target })
}

/// Resolves a reference that is a path, with a query or without: `/path`, `path`, `?query`. It stays on the site of the
/// document: `//host` is a path here.
///
/// # Errors
/// See [`ReferenceError`]; [`ReferenceError::Host`] where a scheme is written.
pub fn resolve_path(document: &DocumentUri, text: &[u8]) -> Result<Target, ReferenceError> {
    let text = trimmed(text)?;
    if written_scheme(text).is_some() {
        return Err(ReferenceError::Host);
    }
    let (path, query) = split(text);
    let base = document.target.path().as_bytes();
    match path {
        [] => target(base, query),
        [b'/', ..] => target(&without_dots(path)?, query),
        relative => {
            let folder = base.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            let merged = [base.get(..folder).unwrap_or_default(), relative].concat();
            target(&without_dots(&merged)?, query)
        }
    }
}

/// Without blanks around it and without its fragment identifier.
fn trimmed(text: &[u8]) -> Result<&[u8], ReferenceError> {
    let text = text.trim_ascii();
    let end = text.iter().position(|byte| *byte == b'#').unwrap_or(text.len());
    match text.get(..end) {
        None | Some([]) => Err(ReferenceError::Malformed),
        Some(text) => Ok(text),
    }
}

/// The scheme and what follows its colon; `None` where the reference begins with an authority, a path or a query.
fn written_scheme(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'))?;
    let (name, rest) = text.split_at(end);
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let rest = rest.strip_prefix(b":").filter(|_| is_name)?;
    Some((name, rest))
}

fn known_scheme(name: &[u8]) -> Result<Scheme, ReferenceError> {
    if name.eq_ignore_ascii_case(b"http") {
        Ok(Scheme::Http)
    } else if name.eq_ignore_ascii_case(b"https") {
        Ok(Scheme::Https)
    } else {
        Err(ReferenceError::Host)
    }
}

/// Path and query. The first `?` ends the path, so a slash in a query means nothing.
fn split(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == b'?') {
        None => (text, None),
        Some(end) => (text.get(..end).unwrap_or_default(), text.get(end + 1..)),
    }
}

/// 1 for `.`, 2 for `..`, escaped or not, and 0 for every other segment.
pub fn dots(segment: &[u8]) -> usize {
    let mut rest = segment;
    for found in 0..3 {
        rest = match rest {
            [] => return found,
            [b'.', after @ ..] | [b'%', b'2', b'e' | b'E', after @ ..] => after,
            _ => return 0,
        };
    }
    0
}

/// RFC 3986 5.2.4, but that an escaped dot is one and climbing above the root is an error.
fn without_dots(path: &[u8]) -> Result<Vec<u8>, ReferenceError> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let mut out = Vec::with_capacity(path.len() + 1);
    let mut ends_open = false;
    for segment in path.split(|byte| *byte == b'/') {
        let dots = dots(segment);
        ends_open = dots != 0;
        match dots {
            1 => {}
            2 => {
                let parent = out.iter().rposition(|byte| *byte == b'/').ok_or(ReferenceError::Climbing)?;
                out.truncate(parent);
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    if ends_open {
        out.push(b'/');
    }
    Ok(out)
}

fn target(path: &[u8], query: Option<&[u8]>) -> Result<Target, ReferenceError> {
    let mut raw = Vec::with_capacity(path.len() + query.map_or(0, |query| query.len() + 1));
    escape(path, is_path_byte, &mut raw)?;
    if let Some(query) = query {
        raw.push(b'?');
        escape(query, is_query_byte, &mut raw)?;
    }
    let target = Target::parse(raw.into()).map_err(|_| ReferenceError::Malformed)?;
    match target.canonical_path() {
        Ok(_) => Ok(target),
        Err(_) => Err(ReferenceError::Climbing),
    }
}

fn escape(text: &[u8], stays: fn(u8) -> bool, into: &mut Vec<u8>) -> Result<(), ReferenceError> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.iter().copied() {
        match byte {
            _ if stays(byte) => into.push(byte),
            0..=0x1f | 0x7f => return Err(ReferenceError::Malformed),
            _ => into.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn document(target: &str) -> DocumentUri {
        DocumentUri {
            scheme: Scheme::Http,
            authority: Authority::parse(Bytes::from_static(b"own.example"), Scheme::Http).unwrap(),
            target: Target::parse(Bytes::copy_from_slice(target.as_bytes())).unwrap(),
        }
    }

    fn written(reference: &Reference) -> String {
        let site =
            reference.site.as_ref().map(|(scheme, authority)| format!("{}://{authority}", scheme.as_str()));
        format!("{}{}", site.unwrap_or_default(), reference.target)
    }

    #[track_caller]
    fn check(base: &str, text: &str, expected: Result<&str, ReferenceError>) {
        let found = resolve(&document(base), text.as_bytes()).map(|reference| written(&reference));
        assert_eq!(found.as_deref().map_err(|error| *error), expected, "{text:?} in {base}");
    }

    #[test]
    fn the_examples_of_rfc_3986_on_one_site() {
        // RFC 3986 5.4.1, with the path of its base.
        for (text, expected) in [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            ("g#s", "/b/c/g"),
            ("g?y#s", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x?y", "/b/c/g;x?y"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../", "/"),
            ("../../g", "/g"),
            // 5.4.2
            ("/./g", "/g"),
            ("g.", "/b/c/g."),
            ("..g", "/b/c/..g"),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/../y", "/b/c/y"),
            ("g?y/../x", "/b/c/g?y/../x"),
            ("g#s/../x", "/b/c/g"),
            ("//own.example/g", "/g"),
            ("https://OWN.example./g", "/g"),
            ("//g", "http://g/"),
            ("//g?y", "http://g/?y"),
            ("https://g:444/x", "https://g:444/x"),
            ("HTTP://g:80/x/../y", "http://g/y"),
        ] {
            check("/b/c/d;p?q", text, Ok(expected));
        }
    }

    #[test]
    fn nothing_climbs_above_the_root() {
        for text in ["../../../g", "/../g", "/a/../../g", "/%2e%2e/g", "/a/%2E./../g", "//own.example/.."] {
            check("/b/c/d", text, Err(ReferenceError::Climbing));
        }
        check("/", "..", Err(ReferenceError::Climbing));
        check("/", "/a/%2e%2E/b/.%2e/%2e/c", Ok("/c"));
        check("/", "/a/.../..b/%2e%2e%2e", Ok("/a/.../..b/%2e%2e%2e"));
        check("/", "?x=/../../y", Ok("/?x=/../../y"));
        check("/a/b?x=/c/d", "g", Ok("/a/g"));
    }

    #[test]
    fn what_names_no_site_is_refused() {
        for text in [
            "ftp://h/",
            "file:///etc/passwd",
            "gopher://h",
            "http:g",
            "http:/g",
            "javascript:x",
            "a:b",
            "http://user@own.example/",
            "//user:pass@h/",
            "//h:0/",
            "//h h/",
            "http:///x",
            "///x",
            "//%31/",
        ] {
            check("/b", text, Err(ReferenceError::Host));
        }
        for text in ["", " ", "#x", "/a\nb", "/\0", "/?\tx"] {
            check("/b", text, Err(ReferenceError::Malformed));
        }
        check("/b", &format!("/{}", "a".repeat(70_000)), Err(ReferenceError::Malformed));
    }

    #[test]
    fn what_a_target_cannot_hold_is_escaped() {
        check("/", " /a b ", Ok("/a%20b"));
        check("/", "/\u{e9}?\u{e9}=a b", Ok("/%C3%A9?%C3%A9=a%20b"));
        check("/", "/<\">?\"<`>", Ok("/%3C\"%3E?%22%3C`%3E"));
        check("/", "/%41%zz\\x", Ok("/%41%zz\\x"));
    }

    #[test]
    fn paths_alone_name_no_site() {
        let resolved =
            |text: &str| resolve_path(&document("/b/c"), text.as_bytes()).map(|target| target.to_string());
        assert_eq!(resolved("//h/x"), Ok("//h/x".to_owned()));
        assert_eq!(resolved("x?y"), Ok("/b/x?y".to_owned()));
        assert_eq!(resolved("http://own.example/x"), Err(ReferenceError::Host));
        assert_eq!(resolved("../../x"), Err(ReferenceError::Climbing));
    }

    proptest! {
        #[test]
        fn what_is_resolved_resolves_to_itself(text in "[a-c./?#:%2e@ -]{0,20}") {
            let base = document("/b/c/d;p?q");
            if let Ok(first) = resolve(&base, text.as_bytes()) {
                prop_assert!(!first.target.path().split('/').any(|segment| matches!(segment, "." | "..")));
                let again = match &first.site {
                    Some((scheme, authority)) => format!("{}://{authority}{}", scheme.as_str(), first.target),
                    None => format!("//own.example{}", first.target),
                };
                prop_assert_eq!(resolve(&base, again.as_bytes()), Ok(first));
            }
        }

        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = resolve(&document("/b"), &text);
        }
    }
}
