//! Hosts: those that a site answers to, exact, or `*.` and a domain for everything below it, and single names.
//!
//! In: a host as people write it. Out: the canonical form that requests are compared in (larder-http's authority).

use std::fmt;

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;

use crate::schema::{Text, TextSetting};

/// A host in lower case, or `*.` and a domain, which covers one or more labels before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern(String);

impl HostPattern {
    /// Canonical, with its `*.` where it has one.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether some host is one of both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let below = |host: &str, pattern: &str| {
            let domain = pattern.strip_prefix('*');
            domain.is_some_and(|domain| host.len() > domain.len() && host.ends_with(domain))
        };
        // Of two wildcards, one lies below the other, or its name is the other's.
        self == other || below(&self.0, &other.0) || below(&other.0, &self.0)
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TextSetting for HostPattern {
    const TEXT: Text = Text {
        noun: "a host",
        examples: r#""example.com", "*.example.com""#,
        about: "A host name or IP address without a port. `*.example.com` covers everything below `example.com`, but \
                not `example.com`. Letter case does not matter.",
        pattern: Some("^(\\*\\.)?[^*:/@ ]+$|^\\[[0-9A-Fa-f:.]+\\]$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text == "*" {
            return Err(Some("leave `hosts` out: the site takes every host then".to_owned()));
        }
        if text.contains("://") {
            return Err(Some("a host is written without a scheme".to_owned()));
        }
        if !text.is_ascii() {
            return Err(Some("write the ASCII form, which begins with \"xn--\"".to_owned()));
        }
        let (wildcard, name) = match text.strip_prefix("*.") {
            Some(name) => ("*.", name),
            None => ("", text),
        };
        if name.contains('*') {
            return Err(Some("a wildcard is the whole first label: \"*.example.com\"".to_owned()));
        }
        let is_address = name.starts_with('[');
        if !is_address && name.contains(':') {
            return Err(Some(
                "a host is written without its port: a site answers on every listener".to_owned(),
            ));
        }
        let authority = Authority::parse(Bytes::copy_from_slice(name.as_bytes()), Scheme::Http);
        let authority = authority.map_err(|error| Some(error.to_string()))?;
        if is_address && (!wildcard.is_empty() || !name.ends_with(']')) {
            return Err(Some("an IPv6 address stands alone, in brackets and without a port".to_owned()));
        }
        Ok(Self(format!("{wildcard}{}", authority.host())))
    }
}

/// One host, in lower case: no wildcard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    /// Canonical.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for HostName {
    const TEXT: Text = Text {
        noun: "a host name",
        examples: r#""cache1.internal""#,
        about: "A host name without a port. Letter case does not matter.",
        pattern: Some("^[^*:/@ ]+$|^\\[[0-9A-Fa-f:.]+\\]$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.contains('*') {
            return Err(Some("each host is named by itself".to_owned()));
        }
        HostPattern::from_text(text).map(|pattern| Self(pattern.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_overlap_where_a_host_is_of_both() {
        for (one, other, expected) in [
            ("a.example", "a.example", true),
            ("a.example", "b.example", false),
            ("*.example", "*.example", true),
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", true),
            ("*.example", "example", false),
            ("*.example", "aexample", false),
            ("*.a.example", "*.example", true),
            ("*.a.example", "*.b.example", false),
            ("*.a.example", "a.example", false),
        ] {
            let [one, other] = [one, other].map(|text| HostPattern::from_text(text).unwrap());
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn hosts_are_canonical_and_wildcards_lead() {
        for (text, host) in [
            ("Example.COM", "example.com"),
            ("*.Example.com", "*.example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("[0:0::1]", "[::1]"),
            ("example.com.", "example.com"),
        ] {
            assert_eq!(HostPattern::from_text(text), Ok(HostPattern(host.to_owned())), "{text}");
        }
        for bad in [
            "",
            "*",
            "a.*.com",
            "*a.com",
            "a:80",
            "http://a",
            "[::1]:80",
            "[::1",
            "*.[::1]",
            "a b",
            "*.",
            "m\u{fc}.de",
        ] {
            assert!(HostPattern::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_name_is_one_host() {
        assert_eq!(HostName::from_text("Cache1.Internal."), Ok(HostName("cache1.internal".to_owned())));
        for bad in ["*", "*.internal", "a:80", "http://a", ""] {
            assert!(HostName::from_text(bad).is_err(), "{bad}");
        }
    }
}
