//! What an origin is: its servers, limits and TLS.
//!
//! In: values that the binary takes from the config. Out: checked settings with their defaults and the reasons for
//! them. A server's address has no path: an origin is asked for exactly the target that the client named.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::SetupError;

/// The longest limit of time.
const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// One configured origin.
#[derive(Clone, Debug)]
pub struct OriginSettings {
    /// As in the config; labels logs and metrics.
    pub name: String,
    /// At least one; used in rotation.
    pub servers: Vec<ServerAddress>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How long an unused connection is kept. 4 s: below the 5 s after which common app servers (Node among them)
    /// close theirs, so that we close first and never race with them.
    pub idle: Duration,
    /// Unused connections kept per worker and server. 32.
    pub max_idle: usize,
    /// Connections open at once in the whole process, tunnels and unused ones included. 8192: far above what an
    /// origin serves, and below common descriptor limits.
    pub max_connections: usize,
    /// Bounds of a response's head.
    pub head: HeadLimits,
    /// For `https` servers.
    pub tls: TlsSettings,
}

impl OriginSettings {
    /// `servers` with the default limits.
    pub fn new(name: impl Into<String>, servers: Vec<ServerAddress>) -> Self {
        Self {
            name: name.into(),
            servers,
            timeouts: Timeouts::default(),
            idle: Duration::from_secs(4),
            max_idle: 32,
            max_connections: 8192,
            head: HeadLimits::default(),
            tls: TlsSettings::default(),
        }
    }
}

impl OriginSettings {
    /// Times are added to readings of a clock, which must not overflow.
    pub(crate) fn check_times(&self) -> Result<(), SetupError> {
        let Timeouts { connect, first_byte, between_bytes, event_stream } = self.timeouts;
        let longest = [connect, first_byte, between_bytes, event_stream, self.idle].into_iter().max();
        match longest {
            Some(longest) if longest > TIME_MAX => Err(SetupError::Time(longest)),
            _ => Ok(()),
        }
    }
}

/// Limits of time towards an origin; none may be longer than a year.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// DNS, TCP and TLS together, per server tried. 3 s.
    pub connect: Duration,
    /// From the last byte of the request that was written to the end of the final response head. 60 s.
    pub first_byte: Duration,
    /// Between two reads of a response body. 30 s.
    pub between_bytes: Duration,
    /// The same for `text/event-stream`, which is silent by nature. 1 h.
    pub event_stream: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(60),
            between_bytes: Duration::from_secs(30),
            event_stream: Duration::from_secs(3600),
        }
    }
}

/// Bounds of a response head; interim responses count one by one.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// The whole head, in bytes. 128 KiB; at least 8 KiB.
    pub bytes_max: usize,
    /// Field lines. 256.
    pub fields_max: usize,
    /// Name and value of one field, in bytes. 64 KiB.
    pub field_bytes_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { bytes_max: 128 * 1024, fields_max: 256, field_bytes_max: 64 * 1024 }
    }
}

/// How `https` servers are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// Trust these authorities (PEM) in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// Check the certificate and its name. On by default; off gives away what TLS is for, and is meant for
    /// self-signed test servers.
    pub verify: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self { ca_file: None, verify: true }
    }
}

/// Where a server of an origin listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// Clear text over TCP.
    Http {
        /// A name or an IP address, an IPv6 address without brackets.
        host: String,
        /// 80 where none was given.
        port: u16,
    },
    /// TLS over TCP.
    Https {
        /// As in `Http`; also the name that is asked for (SNI) and checked.
        host: String,
        /// 443 where none was given.
        port: u16,
    },
    /// Clear text over a Unix socket.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads `http://HOST[:PORT]`, `https://HOST[:PORT]` or `unix:/path.sock`.
    ///
    /// # Errors
    /// A fragment of a sentence for the config's report: another scheme, a path, a query, user information, a host
    /// or a port that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') && path.len() > 1 && !path.contains('\0') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err("a unix address needs an absolute path: unix:/path.sock".to_owned()),
            };
        }
        let (scheme, rest) =
            text.split_once("://").ok_or("expected http://HOST:PORT, https://HOST or unix:/path.sock")?;
        let default_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            other => return Err(format!("unknown scheme {other:?}, expected http, https or unix")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("a server has no path: targets are passed on as the client sent them".to_owned());
        }
        if authority.contains('@') {
            return Err("user information is not supported".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None => default_port,
            Some(port) => parse_port(port)?,
        };
        let host = host.to_ascii_lowercase();
        Ok(match default_port {
            443 => Self::Https { host, port },
            _ => Self::Http { host, port },
        })
    }

    /// The name to resolve, where there is one.
    pub(crate) fn host_and_port(&self) -> Option<(&str, u16)> {
        match self {
            Self::Http { host, port } | Self::Https { host, port } => Some((host, *port)),
            Self::Unix(_) => None,
        }
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("an IPv6 address needs its closing bracket")?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(format!("{host:?} is not an IPv6 address"));
        }
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("expected :PORT after the bracket".to_owned()),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_host = !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    if is_host { Ok((host, port)) } else { Err(format!("{host:?} is not a host name")) }
}

fn parse_port(text: &str) -> Result<u16, String> {
    // `u16::from_str` takes a sign, an address does not.
    let port = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u16>().ok()).flatten();
    port.filter(|port| *port > 0).ok_or_else(|| format!("{text:?} is not a port"))
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Self::Http { host, port } => ("http", host, port),
            Self::Https { host, port } => ("https", host, port),
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
        };
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}"),
            false => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly_and_print_in_one_form() {
        let cases: &[(&str, Result<&str, &str>)] = &[
            ("http://127.0.0.1:3000", Ok("http://127.0.0.1:3000")),
            ("http://127.0.0.1:3000/", Ok("http://127.0.0.1:3000")),
            ("HTTP://App.Example", Ok("http://app.example:80")),
            ("https://app.example", Ok("https://app.example:443")),
            ("https://app_1.example:8443", Ok("https://app_1.example:8443")),
            ("http://[::1]:8080", Ok("http://[::1]:8080")),
            ("http://[::1]", Ok("http://[::1]:80")),
            ("unix:/run/app.sock", Ok("unix:/run/app.sock")),
            ("unix:app.sock", Err("absolute path")),
            ("unix:/", Err("absolute path")),
            ("127.0.0.1:3000", Err("expected http://")),
            ("ftp://a", Err("unknown scheme")),
            ("http://a/b", Err("no path")),
            ("http://a?b", Err("no path")),
            ("http://a#b", Err("no path")),
            ("http://u@a", Err("user information")),
            ("http://", Err("not a host name")),
            ("http://a b", Err("not a host name")),
            ("http://a:", Err("not a port")),
            ("http://a:0", Err("not a port")),
            ("http://a:+80", Err("not a port")),
            ("http://a:65536", Err("not a port")),
            ("http://::1", Err("not a host name")),
            ("http://[::1", Err("closing bracket")),
            ("http://[::1]80", Err("expected :PORT")),
            ("http://[nonsense]:80", Err("not an IPv6 address")),
        ];
        for (text, expected) in cases {
            match (ServerAddress::parse(text), expected) {
                (Ok(address), Ok(printed)) => assert_eq!(address.to_string(), *printed, "{text}"),
                (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
                (got, _) => panic!("{text}: {got:?}, expected {expected:?}"),
            }
        }
    }
}
