//! Where a server of memcached listens: a host and a port, or a Unix socket.
//!
//! In: `HOST`, `HOST:PORT`, `[IPv6]:PORT` or `unix:/path`. Out: the same in one form. Names are looked up when a connection is made,
//! by whoever makes it.

use std::fmt;
use std::net::IpAddr;

use crate::schema::{Text, TextSetting};

/// memcached's own port.
const DEFAULT_PORT: u16 = 11_211;

/// Where a server listens. Prints with its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteAddress(String);

impl RemoteAddress {
    /// In one form, with its port.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TextSetting for RemoteAddress {
    const TEXT: Text = Text {
        noun: "a server",
        examples: r#""127.0.0.1:11211", "cache.internal", "unix:/run/memcached.sock""#,
        about: "A name or an IP address, with a port where that is not 11211; or `unix:` and an absolute path.",
        pattern: Some("^([^/@ ]+|unix:/.+)$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        let wrong = |why: &str| Err(Some(why.to_owned()));
        if let Some(path) = text.strip_prefix("unix:") {
            // 107 bytes is what a socket's address can hold (unix(7)).
            let fits = path.starts_with('/') && path.len() > 1 && path.len() <= 107 && !path.contains('\0');
            return match fits {
                true => Ok(Self(text.to_owned())),
                false => wrong("a Unix socket needs an absolute path of at most 107 bytes"),
            };
        }
        if text.contains("://") {
            return wrong("a server is written without a scheme");
        }
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => {
                let port = rest.strip_prefix(':');
                if !matches!(host.parse(), Ok(IpAddr::V6(_))) || (port.is_none() && !rest.is_empty()) {
                    return wrong("an IPv6 address stands in brackets: \"[::1]:11211\"");
                }
                (format!("[{host}]"), port)
            }
            None if text.matches(':').count() > 1 => {
                return wrong("an IPv6 address stands in brackets: \"[::1]:11211\"");
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
                None => (text.to_ascii_lowercase(), None),
            },
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.starts_with('[') && !host.bytes().all(is_name) {
            return Err(None);
        }
        let is_number = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => match Some(port).filter(is_number).and_then(|port| port.parse::<u16>().ok()) {
                Some(port) if port != 0 => port,
                _ => return wrong("a port is from 1 to 65535"),
            },
        };
        Ok(Self(format!("{host}:{port}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_host_and_a_port_or_a_path() {
        for (text, printed) in [
            ("127.0.0.1:11211", "127.0.0.1:11211"),
            ("Cache.Internal", "cache.internal:11211"),
            ("cache:1", "cache:1"),
            ("[::1]", "[::1]:11211"),
            ("[::1]:5", "[::1]:5"),
            ("unix:/run/m.sock", "unix:/run/m.sock"),
        ] {
            let read = RemoteAddress::from_text(text).map(|server| server.to_string());
            assert_eq!(read, Ok(printed.to_owned()), "{text}");
        }
        let brackets = "an IPv6 address stands in brackets: \"[::1]:11211\"";
        for (text, hint) in [
            ("", None),
            (":11211", None),
            ("user@cache", None),
            ("a b", None),
            ("cache/x", None),
            ("memcached://cache", Some("a server is written without a scheme")),
            ("cache:", Some("a port is from 1 to 65535")),
            ("cache:0", Some("a port is from 1 to 65535")),
            ("cache:+1", Some("a port is from 1 to 65535")),
            ("cache:65536", Some("a port is from 1 to 65535")),
            ("::1", Some(brackets)),
            ("[cache]:1", Some(brackets)),
            ("[::1]1", Some(brackets)),
            ("unix:m.sock", Some("a Unix socket needs an absolute path of at most 107 bytes")),
        ] {
            assert_eq!(RemoteAddress::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }
}
