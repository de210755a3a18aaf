//! Who may ask: the check of Host, and the bearer tokens (RFC 6750 2.1).
//!
//! In: host and fields of a request. Out: whether the name can be trusted, and what the token that it shows permits.
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
    /// What a client shows that may do everything. Default nothing, which is right on loopback only: every client may then.
    pub token: Option<Token>,
    /// What a client shows that may look and explain. Counts beside `token` only.
    pub view_token: Option<Token>,
}

/// What the token of a request permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// It shows none.
    Nothing,
    /// It is not the one.
    Wrong,
    /// To look and to explain.
    Look,
    /// Everything.
    Everything,
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

    /// What a request may do by the token that it shows: as a bearer token, or in `own`, the field that the clients of an API
    /// have for it. Two fields of one name show nothing.
    pub(crate) fn permit(&self, fields: &HeaderMap, own: Option<&HeaderName>) -> Permit {
        let Some(token) = &self.token else { return Permit::Everything };
        let bearer = only(fields, &AUTHORIZATION).and_then(|value| {
            let (scheme, shown) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| shown.trim_ascii())
        });
        let own = own.and_then(|name| only(fields, name));
        let (mut is_shown, mut may_all, mut may_look) = (false, false, false);
        for shown in [bearer, own].into_iter().flatten() {
            is_shown = true;
            // Both are compared always, so that the time says nothing about which it was.
            may_all |= token.is(shown);
            may_look |= self.view_token.as_ref().is_some_and(|view| view.is(shown));
        }
        match (is_shown, may_all, may_look) {
            (false, ..) => Permit::Nothing,
            (true, true, _) => Permit::Everything,
            (true, false, true) => Permit::Look,
            (true, false, false) => Permit::Wrong,
        }
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
        let guard = Guard { hosts: vec!["admin.internal".into()], ..Guard::default() };
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

    fn guard() -> Guard {
        let token = |text| Some(Token::parse(text).unwrap());
        Guard { hosts: Vec::new(), token: token("s3cret"), view_token: token("l00k") }
    }

    #[test]
    fn the_token_has_to_be_shown_exactly() {
        let guard = guard();
        let cases: [(&[&str], Permit); 17] = [
            (&["Bearer s3cret"], Permit::Everything),
            (&["bearer s3cret"], Permit::Everything),
            (&["Bearer  s3cret"], Permit::Everything),
            (&["Bearer l00k"], Permit::Look),
            (&["bearer l00k"], Permit::Look),
            (&["Bearer l00"], Permit::Wrong),
            (&[], Permit::Nothing),
            (&["Bearer s3cre"], Permit::Wrong),
            (&["Bearer s3crets"], Permit::Wrong),
            (&["Bearer s3crets3cret"], Permit::Wrong),
            (&["Bearer S3cret"], Permit::Wrong),
            (&["Bearer "], Permit::Wrong),
            (&["Bearer"], Permit::Nothing),
            (&["Bearers3cret"], Permit::Nothing),
            (&["Basic s3cret"], Permit::Nothing),
            (&["s3cret"], Permit::Nothing),
            (&["Bearer s3cret", "Bearer s3cret"], Permit::Nothing),
        ];
        for (values, permit) in cases {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(guard.permit(&fields, None), permit, "{values:?}");
            assert_eq!(Guard::default().permit(&fields, None), Permit::Everything);
        }
    }

    #[test]
    fn an_apis_own_field_counts_for_that_api() {
        let guard = guard();
        let key = HeaderName::from_static("fastly-key");
        for (values, permit) in [
            (&["s3cret"][..], Permit::Everything),
            (&["l00k"], Permit::Look),
            (&["Bearer s3cret"], Permit::Wrong),
            (&["s3cre"], Permit::Wrong),
            (&["s3cret", "s3cret"], Permit::Nothing),
        ] {
            let mut fields = HeaderMap::new();
            for value in values {
                fields.append(&key, value.parse().unwrap());
            }
            assert_eq!(guard.permit(&fields, Some(&key)), permit, "{values:?}");
            assert_eq!(guard.permit(&fields, None), Permit::Nothing, "{values:?}");
            fields.insert(AUTHORIZATION, "Bearer s3cret".parse().unwrap());
            assert_eq!(guard.permit(&fields, Some(&key)), Permit::Everything, "{values:?}");
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
