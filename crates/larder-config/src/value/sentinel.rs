//! Where a Sentinel of Redis listens.

use std::fmt;

use crate::schema::{Text, TextSetting};
use crate::value::redis_url::host_and_port;

/// Sentinel's own port.
const DEFAULT_PORT: u16 = 26_379;

/// Where a Sentinel listens. Prints with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentinelAddress {
    /// A name in lower case or an IP address, an IPv6 address without brackets.
    pub host: String,
    /// 26379 where none was given.
    pub port: u16,
}

impl fmt::Display for SentinelAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl TextSetting for SentinelAddress {
    const TEXT: Text = Text {
        noun: "a Sentinel",
        examples: r#""s1.internal:26379", "10.0.0.7""#,
        about: "A name or an IP address, with a port where that is not 26379.",
        pattern: Some("^[^/@ ]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.contains("://") {
            return Err(Some("a Sentinel is written without a scheme; tls = true is for TLS".to_owned()));
        }
        let (host, port) = host_and_port(text, DEFAULT_PORT).map_err(|_| {
            Some("expected HOST, HOST:PORT or [IPv6]:PORT, with a port from 1 to 65535".to_owned())
        })?;
        Ok(Self { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_have_a_host_and_a_port() {
        let read = |text: &str| SentinelAddress::from_text(text).ok().map(|read| read.to_string());
        assert_eq!(read("S1.Internal").as_deref(), Some("s1.internal:26379"));
        assert_eq!(read("10.0.0.7:5000").as_deref(), Some("10.0.0.7:5000"));
        assert_eq!(read("[::1]").as_deref(), Some("[::1]:26379"));
        for text in ["", "a b", "::1", "a:0", "a:x", "redis://a"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
