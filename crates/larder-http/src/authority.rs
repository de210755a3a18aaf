//! Who is asked: host and port, as the key and the origin will see them (RFC 9110 7.2, RFC 3986 3.2).
//!
//! In: the value of Host, `:authority`, or the authority of an absolute-form target. Out: one canonical form, lower
//! case, without the scheme's default port and without the root's dot, so that the same site never has two keys.
//! Names are held to the characters that a name on the network can have (RFC 3986's unreserved ones): escapes and
//! sub-delimiters, which its `reg-name` would also allow, are refused, because two parsers may well disagree on them.
//! Deliberately absent: user information (`user@host` is refused), zone identifiers, and names in Unicode.

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use crate::scheme::Scheme;

/// The longest host that is accepted, in bytes: what DNS can carry.
const HOST_BYTES_MAX: usize = 255;

/// Why an authority was refused. All are the client's fault and answered by 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// No host at all.
    #[error("empty host")]
    Empty,
    /// A byte, label or address that no host may have.
    #[error("malformed host")]
    Host,
    /// Not a decimal number from 1 to 65535.
    #[error("malformed port")]
    Port,
    /// Something before an `@`.
    #[error("user information in the authority")]
    UserInformation,
    /// More than a name can have.
    #[error("host too long")]
    TooLong,
}

/// A canonical authority. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    text: ByteString,
    host_len: usize,
    port: Option<u16>,
}

impl Authority {
    /// Checks `value` and brings it to its canonical form. Where it is canonical already its bytes are kept, not
    /// copied. An empty port (`host:`) means none; leading zeros in a port are dropped.
    ///
    /// # Errors
    /// Whatever the grammar does not allow; see [`AuthorityError`].
    pub fn parse(value: Bytes, scheme: Scheme) -> Result<Self, AuthorityError> {
        if value.contains(&b'@') {
            return Err(AuthorityError::UserInformation);
        }
        let bracketed = value.first() == Some(&b'[');
        let host_end = if bracketed {
            value.iter().position(|b| *b == b']').ok_or(AuthorityError::Host)? + 1
        } else {
            value.iter().position(|b| *b == b':').unwrap_or(value.len())
        };
        let (host, rest) = value.split_at(host_end);
        let port = match rest {
            [] => None,
            [b':', digits @ ..] => parse_port(digits)?.filter(|port| *port != scheme.default_port()),
            _ => return Err(AuthorityError::Host),
        };
        if bracketed {
            return Self::ipv6(host, port);
        }
        let host = host.strip_suffix(b".").unwrap_or(host);
        check_name(host)?;
        let host_len = host.len();
        let is_lower = !host.iter().any(u8::is_ascii_uppercase);
        if is_lower && port.is_none() {
            return Self::checked(value.slice(..host_len), host_len, port);
        }
        let written = port.map_or(host_len, |port| host_len + 1 + digits_of(port));
        if is_lower && written == value.len() {
            return Self::checked(value, host_len, port);
        }
        let mut text = host.to_ascii_lowercase();
        write_port(&mut text, port);
        Self::checked(text.into(), host_len, port)
    }

    fn checked(text: Bytes, host_len: usize, port: Option<u16>) -> Result<Self, AuthorityError> {
        let text = ByteString::try_from(text).map_err(|_| AuthorityError::Host)?;
        Ok(Self { text, host_len, port })
    }

    fn ipv6(host: &[u8], port: Option<u16>) -> Result<Self, AuthorityError> {
        let inner = host.strip_prefix(b"[").and_then(|h| h.strip_suffix(b"]")).ok_or(AuthorityError::Host)?;
        let inner = std::str::from_utf8(inner).map_err(|_| AuthorityError::Host)?;
        let address: Ipv6Addr = inner.parse().map_err(|_| AuthorityError::Host)?;
        let mut text = format!("[{address}]").into_bytes();
        let host_len = text.len();
        write_port(&mut text, port);
        Self::checked(text.into(), host_len, port)
    }

    /// Host and, where it is not the scheme's default, port.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same as bytes, for hashing and comparing.
    pub fn as_bytes(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// The host alone; an IPv6 address stands in brackets.
    pub fn host(&self) -> &str {
        let (host, _) = self.as_str().split_at_checked(self.host_len).unwrap_or_default();
        host
    }

    /// The port, where it is not the scheme's default.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({})", self.as_str())
    }
}

fn parse_port(digits: &[u8]) -> Result<Option<u16>, AuthorityError> {
    const LENGTH: Range<usize> = 1..6;
    if digits.is_empty() {
        return Ok(None);
    }
    if !LENGTH.contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(AuthorityError::Port);
    }
    let number = digits.iter().fold(0_u32, |n, d| n * 10 + u32::from(d - b'0'));
    match u16::try_from(number) {
        Ok(port) if port != 0 => Ok(Some(port)),
        _ => Err(AuthorityError::Port),
    }
}

fn check_name(host: &[u8]) -> Result<(), AuthorityError> {
    if host.is_empty() {
        return Err(AuthorityError::Empty);
    }
    if host.len() > HOST_BYTES_MAX {
        return Err(AuthorityError::TooLong);
    }
    let mut label_is_empty = true;
    for byte in host {
        match byte {
            b'.' if label_is_empty => return Err(AuthorityError::Host),
            b'.' => label_is_empty = true,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => label_is_empty = false,
            _ => return Err(AuthorityError::Host),
        }
    }
    if label_is_empty { Err(AuthorityError::Host) } else { Ok(()) }
}

fn digits_of(port: u16) -> usize {
    port.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn write_port(text: &mut Vec<u8>, port: Option<u16>) {
    if let Some(port) = port {
        text.push(b':');
        text.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: Result<(&str, &str, Option<u16>), AuthorityError>) {
        let parsed = Authority::parse(Bytes::copy_from_slice(value.as_bytes()), Scheme::Http);
        let found = parsed.as_ref().map(|a| (a.as_str(), a.host(), a.port())).map_err(|e| *e);
        assert_eq!(found, expected, "{value:?}");
    }

    #[test]
    fn one_site_has_one_form() {
        check("example.com", Ok(("example.com", "example.com", None)));
        check("Example.COM", Ok(("example.com", "example.com", None)));
        check("example.com.", Ok(("example.com", "example.com", None)));
        check("example.com:80", Ok(("example.com", "example.com", None)));
        check("example.com:", Ok(("example.com", "example.com", None)));
        check("example.com.:8080", Ok(("example.com:8080", "example.com", Some(8080))));
        check("example.com:8080", Ok(("example.com:8080", "example.com", Some(8080))));
        check("EXAMPLE.com:08080", Ok(("example.com:8080", "example.com", Some(8080))));
        check("example.com:0443", Ok(("example.com:443", "example.com", Some(443))));
        check("127.0.0.1:3000", Ok(("127.0.0.1:3000", "127.0.0.1", Some(3000))));
        check("under_score-1.local", Ok(("under_score-1.local", "under_score-1.local", None)));
        check("[::1]:80", Ok(("[::1]", "[::1]", None)));
        check("[2001:DB8:0::1]:81", Ok(("[2001:db8::1]:81", "[2001:db8::1]", Some(81))));
    }

    #[test]
    fn what_the_grammar_does_not_allow_is_refused() {
        use AuthorityError::{Empty, Host, Port, TooLong, UserInformation};
        for (value, error) in [
            ("", Empty),
            (".", Empty),
            (":80", Empty),
            ("a..b", Host),
            (".a", Host),
            ("a..", Host),
            ("a b", Host),
            (" a", Host),
            ("a\0.b", Host),
            ("a\tb", Host),
            ("a,b", Host),
            ("a/b", Host),
            ("a?b", Host),
            ("a#b", Host),
            ("a\\b", Host),
            ("a%62c", Host),
            ("a;b", Host),
            ("a\u{e9}", Host),
            ("user@a", UserInformation),
            ("user:pass@a:80", UserInformation),
            ("a:80:80", Port),
            ("a:0", Port),
            ("a:+80", Port),
            ("a: 80", Port),
            ("a:65536", Port),
            ("a:000080", Port),
            ("a:80a", Port),
            ("::1", Port),
            ("[::1", Host),
            ("[::1]x", Host),
            ("[::1]80", Host),
            ("[fe80::1%25eth0]", Host),
            ("[v1.x]", Host),
            ("[]", Host),
            ("[127.0.0.1]", Host),
        ] {
            check(value, Err(error));
        }
        check(&"a".repeat(255), Ok((&"a".repeat(255), &"a".repeat(255), None)));
        check(&"a".repeat(256), Err(TooLong));
        check(&"a".repeat(70_000), Err(TooLong));
    }

    #[test]
    fn the_default_port_is_the_schemes_own() {
        let parsed = Authority::parse(Bytes::from_static(b"a:443"), Scheme::Https);
        assert_eq!(parsed.map(|a| a.to_string()), Ok("a".to_owned()));
        let parsed = Authority::parse(Bytes::from_static(b"a:80"), Scheme::Https);
        assert_eq!(parsed.map(|a| a.to_string()), Ok("a:80".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn a_canonical_form_is_its_own_canonical_form(value in proptest::collection::vec(proptest::num::u8::ANY, 0..40)) {
            if let Ok(first) = Authority::parse(value.into(), Scheme::Http) {
                let again = Authority::parse(first.as_bytes().clone(), Scheme::Http);
                proptest::prop_assert_eq!(again, Ok(first));
            }
        }

        #[test]
        fn likely_values_never_panic_and_stay_canonical(value in "[\\[\\]a-zA-Z0-9:.%@-]{0,20}") {
            if let Ok(first) = Authority::parse(value.into(), Scheme::Http) {
                let again = Authority::parse(first.as_bytes().clone(), Scheme::Http);
                proptest::prop_assert_eq!(again, Ok(first));
            }
        }
    }
}
