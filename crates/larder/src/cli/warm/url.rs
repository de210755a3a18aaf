//! The URLs to warm.
//!
//! In: text as it stands in a list or in a sitemap. Out: scheme, Host and target as a browser would send them, so that larder makes
//! the key that it makes for visitors. A fragment is cut off, and what no target contains is escaped. Deliberately absent: names in
//! Unicode, which a browser translates (IDNA); they are refused.

use std::fmt::{self, Write as _};

use bytes::Bytes;
use http::uri::PathAndQuery;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::{Target, absolute_form};

/// A URL to warm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cli) struct WarmUrl {
    /// The one that visitors use.
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    pub(super) target: PathAndQuery,
}

impl WarmUrl {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().split('#').next().unwrap_or_default();
        let raw = Bytes::copy_from_slice(text.as_bytes());
        let (scheme, authority, target) =
            absolute_form(&raw).map_err(|_| "expected http://HOST/PATH or https://HOST/PATH".to_owned())?;
        let authority = Authority::parse(authority, scheme).map_err(|error| error.to_string())?;
        let target = Target::parse(escaped(&target)).map_err(|error| error.to_string())?;
        let target = PathAndQuery::from_maybe_shared(target.as_bytes().clone())
            .map_err(|_| "malformed path".to_owned())?;
        Ok(Self { scheme, authority, target })
    }
}

impl fmt::Display for WarmUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority.as_str(), self.target)
    }
}

/// The target with those bytes escaped that a browser escapes in a path and no target may contain.
fn escaped(target: &Bytes) -> Bytes {
    let is_escaped = |byte: &u8| !byte.is_ascii() || b" \"<>`{}".contains(byte);
    if !target.iter().any(is_escaped) {
        return target.clone();
    }
    let mut text = String::with_capacity(target.len() * 3);
    for byte in target {
        match byte {
            byte if is_escaped(byte) => {
                // A string takes everything.
                let _ = write!(text, "%{byte:02X}");
            }
            byte => text.push(char::from(*byte)),
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_as_a_browser_sends_it() {
        for (text, expected) in [
            ("http://a", "http://a/"),
            (" https://A.example:443/x?y=1#z ", "https://a.example/x?y=1"),
            ("http://a:8080?q", "http://a:8080/?q"),
            ("https://a:80/", "https://a:80/"),
            ("HTTP://[::1]/a%20b", "http://[::1]/a%20b"),
            ("http://a/über uns?q=\"ä\"", "http://a/%C3%BCber%20uns?q=%22%C3%A4%22"),
        ] {
            assert_eq!(WarmUrl::parse(text).map(|url| url.to_string()).as_deref(), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("", "expected http://HOST/PATH"),
            ("a.example/x", "expected http://HOST/PATH"),
            ("ftp://a/", "expected http://HOST/PATH"),
            ("http:///x", "empty host"),
            ("http://bücher.example/", "malformed host"),
            ("http://user@a/", "user information"),
            ("http://a:port/", "malformed port"),
            ("http://a/\u{1}", "has to be escaped"),
        ] {
            let said = WarmUrl::parse(text).expect_err(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
