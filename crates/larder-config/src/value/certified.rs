//! The name that a server's certificate has to be for, and that it is asked for by (SNI, RFC 6066 3).

use std::net::IpAddr;

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;

use crate::schema::{Text, TextSetting};

/// A host name in lower case, or an IP address without brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertifiedName(String);

impl CertifiedName {
    /// The name or address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TextSetting for CertifiedName {
    const TEXT: Text = Text {
        noun: "a name in a certificate",
        examples: r#""app.example", "192.0.2.7""#,
        about: "A host name or an IP address, without a port.",
        pattern: Some("^[0-9A-Za-z._:-]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        if text.contains("://") {
            return Err(Some("a name is written without a scheme".to_owned()));
        }
        if text.contains('*') {
            return Err(Some(
                "the one name that is asked for; a certificate may cover it by a wildcard".to_owned(),
            ));
        }
        if text.starts_with('[') {
            return Err(Some("an address is written without brackets".to_owned()));
        }
        if text.contains(':') {
            return Err(Some("a name is written without its port".to_owned()));
        }
        let parsed = Authority::parse(Bytes::copy_from_slice(text.as_bytes()), Scheme::Https);
        parsed.map(|name| Self(name.host().to_owned())).map_err(|error| Some(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certified_name_is_a_host_alone() {
        for (text, expected) in [
            ("App.Example", Ok("app.example")),
            ("app.example.", Ok("app.example")),
            ("192.0.2.7", Ok("192.0.2.7")),
            ("0::1", Ok("::1")),
            ("", Err("empty host")),
            ("app.example:443", Err("a name is written without its port")),
            ("[::1]", Err("an address is written without brackets")),
            ("https://app.example", Err("a name is written without a scheme")),
            (
                "*.app.example",
                Err("the one name that is asked for; a certificate may cover it by a wildcard"),
            ),
            ("a b", Err("malformed host")),
        ] {
            let read = CertifiedName::from_text(text).map(|name| name.as_str().to_owned());
            let expected = expected.map(str::to_owned).map_err(|hint| Some(hint.to_owned()));
            assert_eq!(read, expected, "{text}");
        }
    }
}
