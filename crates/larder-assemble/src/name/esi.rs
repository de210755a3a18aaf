//! Variables of ESI: `$(NAME)`, `$(NAME{key})`, `$(NAME{key}|default)`.
//!
//! In: text that may begin with a variable. Out: the variable and its length. Names are upper case where the request knows
//! them (W3C 4.1); all others are what the template assigns. Keys are case-sensitive.

use bytes::Bytes;
use http::HeaderName;

use super::field::field;
use crate::facts::is_secret;

/// A longer one is text.
pub(crate) const VARIABLE_BYTES_MAX: usize = 1024;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EsiName {
    /// What it stands for.
    pub(crate) known: EsiKnown,
    /// Stands where there is no value or an empty one.
    pub(crate) default: Option<Bytes>,
}

/// What a request, a document or the template knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EsiKnown {
    /// The first cookie of that name.
    Cookie(Box<[u8]>),
    /// The whole query.
    Query,
    /// One argument, decoded.
    Argument(Box<[u8]>),
    Host,
    /// Whether the client takes a language, in lower case.
    Language(Box<[u8]>),
    Browser,
    BrowserVersion,
    System,
    Method,
    Path,
    Client,
    Field(HeaderName),
    /// What the template assigned.
    Assigned(Box<[u8]>),
    /// Fields with passwords, and keys that mean nothing.
    Nothing,
}

/// What stands at the start of some text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A variable of so many bytes.
    Variable(EsiName, usize),
    /// It is none.
    Text,
    /// More bytes have to be seen.
    Cut,
}

impl EsiName {
    /// Reads what begins with `$(`.
    pub(crate) fn read(text: &[u8]) -> Found {
        let text = text.get(..VARIABLE_BYTES_MAX).unwrap_or(text);
        let cut = if text.len() == VARIABLE_BYTES_MAX { Found::Text } else { Found::Cut };
        let mut rest = match text {
            [b'$', b'(', rest @ ..] => rest,
            [] | [b'$'] => return Found::Cut,
            _ => return Found::Text,
        };
        let name_len = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let (name, after) = rest.split_at(name_len);
        rest = after;
        let mut key = None;
        if let [b'{', after @ ..] = rest {
            let Some(end) = after.iter().position(|byte| *byte == b'}') else { return cut };
            key = after.get(..end);
            rest = after.get(end + 1..).unwrap_or_default();
        }
        let mut default = None;
        if let [b'|', after @ ..] = rest {
            let (text, end) = match after {
                [b'\'', quoted @ ..] => {
                    let Some(end) = quoted.iter().position(|byte| *byte == b'\'') else { return cut };
                    (quoted.get(..end), end + 2)
                }
                bare => {
                    let Some(end) = bare.iter().position(|byte| *byte == b')') else { return cut };
                    (bare.get(..end), end)
                }
            };
            default = text.map(Bytes::copy_from_slice);
            rest = after.get(end..).unwrap_or_default();
        }
        match rest {
            [b')', rest @ ..] if !name.is_empty() => {
                Found::Variable(Self { known: known(name, key), default }, text.len() - rest.len())
            }
            [] => cut,
            _ => Found::Text,
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn known(name: &[u8], key: Option<&[u8]>) -> EsiKnown {
    match (name, key) {
        (b"HTTP_COOKIE", Some(key)) => EsiKnown::Cookie(key.into()),
        (b"QUERY_STRING", None) => EsiKnown::Query,
        (b"QUERY_STRING", Some(key)) => EsiKnown::Argument(key.into()),
        (b"HTTP_HOST", None) => EsiKnown::Host,
        (b"HTTP_ACCEPT_LANGUAGE", Some(key)) => EsiKnown::Language(key.to_ascii_lowercase().into()),
        (b"HTTP_USER_AGENT", Some(b"browser")) => EsiKnown::Browser,
        (b"HTTP_USER_AGENT", Some(b"version")) => EsiKnown::BrowserVersion,
        (b"HTTP_USER_AGENT", Some(b"os")) => EsiKnown::System,
        (b"REQUEST_METHOD", None) => EsiKnown::Method,
        (b"REQUEST_PATH", None) => EsiKnown::Path,
        (b"REMOTE_ADDR", None) => EsiKnown::Client,
        (name, None) => match name.strip_prefix(b"HTTP_") {
            Some(rest) => match field(rest) {
                Some(field) if !is_secret(&field) => EsiKnown::Field(field),
                _ => EsiKnown::Nothing,
            },
            None => EsiKnown::Assigned(name.into()),
        },
        (_, Some(_)) => EsiKnown::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(EsiKnown, Option<&str>, usize)>) {
        let expected = expected.map_or(Found::Text, |(known, default, length)| {
            Found::Variable(
                EsiName { known, default: default.map(|text| Bytes::copy_from_slice(text.as_bytes())) },
                length,
            )
        });
        assert_eq!(EsiName::read(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn variables_with_keys_and_defaults() {
        let cookie = |name: &str| EsiKnown::Cookie(name.as_bytes().into());
        check("$(HTTP_HOST)x", Some((EsiKnown::Host, None, 12)));
        check("$(HTTP_COOKIE{a b})", Some((cookie("a b"), None, 19)));
        check("$(HTTP_COOKIE{id}|none)", Some((cookie("id"), Some("none"), 23)));
        check("$(HTTP_COOKIE{id}|'no (one)')", Some((cookie("id"), Some("no (one)"), 29)));
        check("$(HTTP_COOKIE{id}|)", Some((cookie("id"), Some(""), 19)));
        check("$(QUERY_STRING{q})", Some((EsiKnown::Argument(b"q"[..].into()), None, 18)));
        check("$(HTTP_ACCEPT_LANGUAGE{EN-us})", Some((EsiKnown::Language(b"en-us"[..].into()), None, 30)));
        check("$(HTTP_REFERER)", Some((EsiKnown::Field(HeaderName::from_static("referer")), None, 15)));
        check("$(own)", Some((EsiKnown::Assigned(b"own"[..].into()), None, 6)));
        check("$(HTTP_USER_AGENT{engine})", Some((EsiKnown::Nothing, None, 26)));
    }

    #[test]
    fn passwords_are_no_variables() {
        check("$(HTTP_AUTHORIZATION)", Some((EsiKnown::Nothing, None, 21)));
        check("$(HTTP_PROXY_AUTHORIZATION)", Some((EsiKnown::Nothing, None, 27)));
    }

    #[test]
    fn what_is_no_variable_is_text() {
        for text in ["$()", "$(a b)", "$(<", "$x", "$(a{b}c)", "$(a|'b'c)"] {
            check(text, None);
        }
        check(&format!("$({})", "a".repeat(2000)), None);
        for text in ["", "$", "$(", "$(A", "$(A{b", "$(A{b}", "$(A|", "$(A|'x", "$(A|'x'"] {
            assert_eq!(EsiName::read(text.as_bytes()), Found::Cut, "{text}");
        }
    }
}
