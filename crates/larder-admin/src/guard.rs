//! Who may ask: the check of Host, and the bearer token (RFC 6750 2.1).
//!
//! A page on another site can make a browser send requests here, and by changing its own name's address (DNS
//! rebinding) even read the answers; but then Host is that name. Addresses and loopback names cannot be taken over
//! like this, so those are taken, and any name that the configuration lists.

use std::fmt;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::error::AdminError;

/// The secret that a client has to show. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<str>);

impl Token {
    /// Takes `token`.
    ///
    /// # Errors
    /// It is empty, or cannot stand in a field.
    pub fn parse(token: &str) -> Result<Self, AdminError> {
        if token.is_empty() {
            return Err(AdminError::TokenEmpty);
        }
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(AdminError::TokenCharacter);
        }
        Ok(Self(token.into()))
    }

    /// Compares in a time that depends on the length of `shown` only.
    fn is(&self, shown: &[u8]) -> bool {
        let secret = self.0.as_bytes().iter().cycle();
        let differing = shown.iter().zip(secret).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
        (differing == 0) & (shown.len() == self.0.len())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Who is let in.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Host names taken besides addresses and loopback names, in lower case and without port. Default none.
    pub hosts: Vec<String>,
    /// What has to be shown everywhere but at `/healthz`. Default nothing, which is right on loopback only.
    pub token: Option<Token>,
}

impl Guard {
    /// Whether `host`, without port and in lower case, cannot be a name that somebody else controls.
    pub(crate) fn is_trusted_host(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<Ipv4Addr>().is_ok()
            || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
            || self.hosts.iter().any(|known| known == host)
    }

    /// Whether a browser says that a page of another site makes it ask (Fetch Metadata). Such a page cannot read the
    /// answer, but asking alone may do something.
    pub(crate) fn is_foreign_page(fields: &HeaderMap) -> bool {
        let mut sites = fields.get_all("sec-fetch-site").iter();
        !sites.all(|site| matches!(site.as_bytes(), b"none" | b"same-origin"))
    }

    /// Whether the token is shown, where one is asked for: as a bearer token, or in `own`, the field that the clients of an API
    /// have for it. Two fields of one name show nothing.
    pub(crate) fn is_authorized(&self, fields: &HeaderMap, own: Option<&HeaderName>) -> bool {
        let Some(token) = &self.token else { return true };
        let bearer = only(fields, &AUTHORIZATION).and_then(|value| {
            let (scheme, shown) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| shown.trim_ascii())
        });
        let own = own.and_then(|name| only(fields, name));
        [bearer, own].into_iter().flatten().any(|shown| token.is(shown))
    }
}

/// The value of a field that is there once.
fn only<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = fields.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_nobody_can_take_over_are_trusted() {
        let guard = Guard { hosts: vec!["admin.internal".into()], token: None };
        let cases = [
            ("127.0.0.1", true),
            ("192.0.2.7", true),
            ("[::1]", true),
            ("[2001:db8::1]", true),
            ("localhost", true),
            ("localhost.", true),
            ("app.localhost", true),
            ("admin.internal", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("notlocalhost", false),
            ("x.admin.internal", false),
            ("::1", false),
            ("[::1", false),
            ("", false),
            (".", false),
        ];
        for (host, trusted) in cases {
            assert_eq!(guard.is_trusted_host(host), trusted, "{host}");
        }
    }

    #[test]
    fn the_token_has_to_be_shown_exactly() {
        let guard = Guard { hosts: Vec::new(), token: Some(Token::parse("s3cret").unwrap()) };
        let cases: [(&[&str], bool); 14] = [
            (&["Bearer s3cret"], true),
            (&["bearer s3cret"], true),
            (&["Bearer  s3cret"], true),
            (&[], false),
            (&["Bearer s3cre"], false),
            (&["Bearer s3crets"], false),
            (&["Bearer s3crets3cret"], false),
            (&["Bearer S3cret"], false),
            (&["Bearer "], false),
            (&["Bearer"], false),
            (&["Bearers3cret"], false),
            (&["Basic s3cret"], false),
            (&["s3cret"], false),
            (&["Bearer s3cret", "Bearer s3cret"], false),
        ];
        for (values, authorized) in cases {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(guard.is_authorized(&fields, None), authorized, "{values:?}");
            assert!(Guard::default().is_authorized(&fields, None));
        }
    }

    #[test]
    fn an_apis_own_field_counts_for_that_api() {
        let guard = Guard { hosts: Vec::new(), token: Some(Token::parse("s3cret").unwrap()) };
        let key = HeaderName::from_static("fastly-key");
        for (values, authorized) in [
            (&["s3cret"][..], true),
            (&["Bearer s3cret"], false),
            (&["s3cre"], false),
            (&["s3cret", "s3cret"], false),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(&key, value.parse().unwrap());
            }
            assert_eq!(guard.is_authorized(&fields, Some(&key)), authorized, "{values:?}");
            assert!(!guard.is_authorized(&fields, None), "{values:?}");
            fields.insert(AUTHORIZATION, "Bearer s3cret".parse().unwrap());
            assert!(guard.is_authorized(&fields, Some(&key)), "{values:?}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_told_by_what_their_browser_says() {
        for (said, foreign) in [
            (&[][..], false),
            (&["none"], false),
            (&["same-origin"], false),
            (&["same-site"], true),
            (&["cross-site"], true),
            (&["none", "cross-site"], true),
            (&[""], true),
        ] {
            let mut fields = HeaderMap::new();
            for value in said {
                fields.append("sec-fetch-site", value.parse().unwrap());
            }
            assert_eq!(Guard::is_foreign_page(&fields), foreign, "{said:?}");
        }
    }

    #[test]
    fn a_token_is_visible_ascii_and_never_printed() {
        for (token, parsed) in [
            ("", Err(AdminError::TokenEmpty)),
            ("a b", Err(AdminError::TokenCharacter)),
            ("a\r\n", Err(AdminError::TokenCharacter)),
            ("\u{e9}", Err(AdminError::TokenCharacter)),
        ] {
            assert_eq!(Token::parse(token), parsed, "{token:?}");
        }
        assert!(!format!("{:?}", Token::parse("s3cret").unwrap()).contains("s3cret"));
    }
}
