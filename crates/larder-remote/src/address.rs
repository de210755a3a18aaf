//! Where a server listens, and how its name becomes addresses.
//!
//! In: `HOST`, `HOST:PORT` or `unix:/path`. Out: an [`Address`], which prints in one form: that is its label in metrics and messages.
//! Names are looked up each time a connection is made, by whatever is handed in ([`Resolve`]), and all their addresses are tried at
//! once.
//! Deliberately absent: TLS, and user names.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;

use crate::error::RemoteError;

/// memcached's own port.
pub(crate) const DEFAULT_PORT: u16 = 11211;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP.
    Tcp {
        /// A name or an IP address, an IPv6 address without brackets.
        host: String,
        /// 11211 where none was given.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `[IPv6]:PORT` or `unix:/path`.
    ///
    /// # Errors
    /// [`RemoteError::Address`] with what was expected.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let wrong = |why| RemoteError::Address { text: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') && path.len() > 1 && !path.contains('\0') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err(wrong("a unix address needs an absolute path: unix:/path.sock")),
            };
        }
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => {
                if !matches!(host.parse(), Ok(IpAddr::V6(_))) {
                    return Err(wrong("expected an IPv6 address in the brackets"));
                }
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(wrong("expected [IPv6]:PORT"));
                }
                (host, port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.contains(':') && !host.bytes().all(is_name) {
            return Err(wrong("expected HOST:PORT or unix:/path.sock"));
        }
        let digits = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => match Some(port).filter(digits).and_then(|port| port.parse().ok()) {
                Some(port) if port != 0 => port,
                _ => return Err(wrong("expected a port from 1 to 65535")),
            },
        };
        Ok(Self::Tcp { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// What a look-up of a name will bring.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Looks up names of servers.
pub trait Resolve: Send + Sync {
    /// The addresses of `host`. Whoever waits for it has a time limit, and drops it then.
    fn addresses<'a>(&'a self, host: &'a str, port: u16) -> Addresses<'a>;
}

/// The system's own resolver, which answers on a thread for what may wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl Resolve for SystemNames {
    fn addresses<'a>(&'a self, host: &'a str, port: u16) -> Addresses<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, printed: Result<&str, &str>) {
        match (Address::parse(text), printed) {
            (Ok(address), Ok(printed)) => {
                assert_eq!(address.to_string(), printed, "{text}");
                assert_eq!(Address::parse(printed).ok(), Some(address), "{printed}");
            }
            (Err(RemoteError::Address { why, .. }), Err(part)) => {
                assert!(why.contains(part), "{text}: {why}")
            }
            (read, _) => panic!("{text}: {read:?}"),
        }
    }

    #[test]
    fn addresses_are_read_and_printed_in_one_form() {
        check("127.0.0.1:11211", Ok("127.0.0.1:11211"));
        check("Cache.Example", Ok("cache.example:11211"));
        check("cache:1", Ok("cache:1"));
        check("[::1]:11212", Ok("[::1]:11212"));
        check("[::1]", Ok("[::1]:11211"));
        check("unix:/run/m.sock", Ok("unix:/run/m.sock"));
        check("unix:m.sock", Err("absolute"));
        check("", Err("HOST:PORT"));
        check(":11211", Err("HOST:PORT"));
        check("user@cache:1", Err("HOST:PORT"));
        check("cache/x", Err("HOST:PORT"));
        check("cache:", Err("port"));
        check("cache:0", Err("port"));
        check("cache:+1", Err("port"));
        check("cache:65536", Err("port"));
        check("::1", Err("HOST:PORT"));
        check("[cache]:1", Err("IPv6"));
        check("[::1]1", Err("[IPv6]:PORT"));
    }
}
