//! Where a server of an origin listens, as the config writes it.
//!
//! In: a text such as `https://app.example:8443`. Out: a checked [`ServerAddress`] that prints in one form, which is
//! also what labels a server in reports. A server's address has no path: an origin is asked for exactly the target
//! that the client named. Deliberately absent: looking anything up.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use larder_http::authority::Authority;

use crate::place::Place;

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
    /// Whatever a DNS service record names at the moment (RFC 2782): targets, ports, priorities and weights.
    Srv {
        /// Whether its targets are spoken to in TLS, each under its own name.
        tls: bool,
        /// The record's full name, such as `_app._tcp.example.com`.
        name: String,
    },
}

impl ServerAddress {
    /// Reads `http://HOST[:PORT]`, `https://HOST[:PORT]`, `unix:/path.sock`, `http+srv://NAME` or `https+srv://NAME`.
    ///
    /// # Errors
    /// A fragment of a sentence for the config's report: another scheme, a path, a query, user information, a host
    /// or a port that is none, a port where the record names it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') && path.len() > 1 && !path.contains('\0') {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err("a unix address needs an absolute path: unix:/path.sock".to_owned()),
            };
        }
        let (scheme, rest) =
            text.split_once("://").ok_or("expected http://HOST:PORT, https://HOST or unix:/path.sock")?;
        let scheme = Scheme::parse(scheme)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("a server has no path: targets are passed on as the client sent them".to_owned());
        }
        if authority.contains('@') {
            return Err("user information is not supported".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let port = port.map(parse_port).transpose()?;
        let host = host.to_ascii_lowercase();
        match scheme {
            Scheme::Http => Ok(Self::Http { host, port: port.unwrap_or(80) }),
            Scheme::Https => Ok(Self::Https { host, port: port.unwrap_or(443) }),
            Scheme::Srv { .. } if port.is_some() => Err("a service record names the port itself".to_owned()),
            Scheme::Srv { .. } if host.parse::<IpAddr>().is_ok() => {
                Err("a service record has a name, not an address".to_owned())
            }
            Scheme::Srv { tls } => Ok(Self::Srv { tls, name: host }),
        }
    }

    /// The name to resolve, where there is one that has addresses of its own.
    pub(crate) fn host_and_port(&self) -> Option<(&str, u16)> {
        match self {
            Self::Http { host, port } | Self::Https { host, port } => Some((host, *port)),
            Self::Unix(_) | Self::Srv { .. } => None,
        }
    }

    /// Whether it is spoken to in TLS.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Https { .. } | Self::Srv { tls: true, .. })
    }

    /// What it is called in the field Host where nothing else says: its host and port; the domain of a service, which is
    /// its name in TLS; a Unix socket is on this machine.
    pub(crate) fn own_name(&self, tls_host: &str) -> Authority {
        use larder_http::message::Scheme;
        let text = match self {
            Self::Http { host, port } | Self::Https { host, port } => match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
            Self::Srv { .. } => tls_host.to_owned(),
            Self::Unix(_) => String::new(),
        };
        // Under its scheme an authority leaves out the usual port.
        let scheme = if self.is_tls() { Scheme::Https } else { Scheme::Http };
        let localhost = || Authority::parse(Bytes::from_static(b"localhost"), scheme);
        Authority::parse(Bytes::from(text), scheme).or_else(|_| localhost()).expect("localhost is a host")
    }

    /// Where it is reached, where that needs no look-up.
    pub(crate) fn fixed_place(&self) -> Option<Place> {
        match self {
            Self::Unix(path) => Some(Place::Unix(Arc::from(path.as_path()))),
            Self::Srv { .. } => None,
            Self::Http { host, port } | Self::Https { host, port } => {
                let ip = host.parse::<IpAddr>().ok()?;
                Some(Place::Tcp(SocketAddr::new(ip, *port)))
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Scheme {
    Http,
    Https,
    Srv { tls: bool },
}

impl Scheme {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            "http+srv" => Ok(Self::Srv { tls: false }),
            "https+srv" => Ok(Self::Srv { tls: true }),
            other => {
                Err(format!("unknown scheme {other:?}, expected http, https, unix, http+srv or https+srv"))
            }
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
            Self::Srv { tls: false, name } => return write!(f, "http+srv://{name}"),
            Self::Srv { tls: true, name } => return write!(f, "https+srv://{name}"),
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
    fn a_server_is_called_by_its_own_name() {
        for (address, expected) in [
            ("http://app.example", "app.example"),
            ("http://app.example:3000", "app.example:3000"),
            ("https://app.example", "app.example"),
            ("https://app.example:80", "app.example:80"),
            ("http://[::1]:3000", "[::1]:3000"),
            ("https+srv://_web._tcp.app.example", "app.example"),
            ("unix:/run/app.sock", "localhost"),
        ] {
            let address = ServerAddress::parse(address).expect("an address");
            assert_eq!(address.own_name("app.example").as_str(), expected);
        }
    }

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
            ("http+srv://_App._tcp.Example.com", Ok("http+srv://_app._tcp.example.com")),
            ("https+srv://_app._tcp.example.com/", Ok("https+srv://_app._tcp.example.com")),
            ("http+srv://_app._tcp.example.com:80", Err("names the port")),
            ("http+srv://127.0.0.1", Err("not an address")),
            ("http+srv://[::1]", Err("not an address")),
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
