//! A server of an origin: scheme, host and port, a Unix socket, or a name whose SRV records (RFC 2782) say hosts and
//! ports. Never a path: targets go on as the client sent them.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;

use crate::schema::{Text, TextSetting};

/// Where a server of an origin listens. Prints as it is written in the config, with its port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    /// Over TCP.
    Tcp {
        /// Clear text or TLS.
        scheme: Scheme,
        /// A name or an IP address, in lower case; an IPv6 address without brackets.
        host: String,
        /// The scheme's own where none was given.
        port: u16,
    },
    /// Clear text over a Unix socket, by its absolute path.
    Unix(PathBuf),
    /// Whatever the SRV records of a name say at the time.
    Srv {
        /// Clear text or TLS.
        scheme: Scheme,
        /// The records' full name, in lower case.
        name: String,
    },
}

impl Server {
    /// Whether connections to it are TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tcp { scheme: Scheme::Https, .. } | Self::Srv { scheme: Scheme::Https, .. })
    }

    /// Whether a name has to be looked up, which may then stand for any number of addresses.
    pub fn has_name(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => host.parse::<IpAddr>().is_err(),
            Self::Unix(_) => false,
            Self::Srv { .. } => true,
        }
    }
}

impl TextSetting for Server {
    const TEXT: Text = Text {
        noun: "a server",
        examples: r#""http://127.0.0.1:3000", "https://app.example", "unix:/run/app.sock""#,
        about: "Scheme, host and port, without a path: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:/PATH` for a \
                Unix socket. The port defaults to the scheme's. `http+srv://NAME` and `https+srv://NAME` stand for the \
                servers in the SRV records of that name, such as `http+srv://_app._tcp.example.com`; without a port, \
                which the records say.",
        pattern: Some("^(https?(\\+srv)?://[^/?#@]+/?|unix:/.+)$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if let Some(path) = text.strip_prefix("unix:") {
            // 107 bytes is what a socket's address can hold (unix(7)).
            let fits = path.starts_with('/') && path.len() > 1 && path.len() <= 107 && !path.contains('\0');
            return match fits {
                true => Ok(Self::Unix(path.into())),
                false => Err(Some("a Unix socket needs an absolute path of at most 107 bytes".to_owned())),
            };
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            let hint = format!("http://{text}");
            return Err(Self::from_text(&hint).is_ok().then(|| format!("did you mean \"{hint}\"?")));
        };
        let (scheme, is_srv) = match scheme {
            "http" => (Scheme::Http, false),
            "https" => (Scheme::Https, false),
            "http+srv" => (Scheme::Http, true),
            "https+srv" => (Scheme::Https, true),
            "srv" => return Err(Some("\"http+srv://NAME\", or \"https+srv://NAME\" for TLS".to_owned())),
            _ => return Err(None),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(Some(
                "a server has no path: targets are passed on as the client sent them".to_owned(),
            ));
        }
        let parsed = Authority::parse(Bytes::copy_from_slice(authority.as_bytes()), scheme);
        let parsed = parsed.map_err(|error| Some(error.to_string()))?;
        if is_srv {
            return Self::srv(scheme, authority, parsed.host());
        }
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = parsed.port().unwrap_or(scheme.default_port());
        Ok(Self::Tcp { scheme, host, port })
    }
}

impl Server {
    fn srv(scheme: Scheme, written: &str, host: &str) -> Result<Self, Option<String>> {
        if host.starts_with('[') || host.parse::<IpAddr>().is_ok() {
            return Err(Some("an address has no SRV records: write a name".to_owned()));
        }
        if written.contains(':') {
            return Err(Some("the SRV records say the port".to_owned()));
        }
        Ok(Self::Srv { scheme, name: host.to_owned() })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Srv { scheme, name } => write!(f, "{}+srv://{name}", scheme.as_str()),
            Self::Tcp { scheme, host, port } if host.contains(':') => {
                write!(f, "{}://[{host}]:{port}", scheme.as_str())
            }
            Self::Tcp { scheme, host, port } => write!(f, "{}://{host}:{port}", scheme.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_scheme_and_no_path() {
        for (text, printed) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://App.Example/", "http://app.example:80"),
            ("https://app.example", "https://app.example:443"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("http+srv://_app._tcp.Example.com", "http+srv://_app._tcp.example.com"),
            ("https+srv://app.service.internal./", "https+srv://app.service.internal"),
        ] {
            assert_eq!(
                Server::from_text(text).map(|server| server.to_string()),
                Ok(printed.to_owned()),
                "{text}"
            );
        }
        for (text, hint) in [
            ("127.0.0.1:3000", Some("did you mean \"http://127.0.0.1:3000\"?")),
            ("http://a/b", Some("a server has no path: targets are passed on as the client sent them")),
            ("http://u@a", Some("user information in the authority")),
            ("http://a:0", Some("malformed port")),
            ("http://", Some("empty host")),
            ("ftp://a", None),
            ("srv://_app._tcp.a", Some("\"http+srv://NAME\", or \"https+srv://NAME\" for TLS")),
            ("http+srv://_app._tcp.a:80", Some("the SRV records say the port")),
            ("http+srv://127.0.0.1", Some("an address has no SRV records: write a name")),
            ("http+srv://[::1]", Some("an address has no SRV records: write a name")),
            ("http+srv://", Some("empty host")),
            ("unix:app.sock", Some("a Unix socket needs an absolute path of at most 107 bytes")),
        ] {
            assert_eq!(Server::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn names_and_tls_are_told_apart_from_addresses_and_clear_text() {
        for (text, has_name, is_tls) in [
            ("http://127.0.0.1", false, false),
            ("https://[::1]", false, true),
            ("http://localhost", true, false),
            ("https://app.example", true, true),
            ("unix:/run/app.sock", false, false),
            ("http+srv://_app._tcp.a", true, false),
            ("https+srv://_app._tcp.a", true, true),
        ] {
            let server = Server::from_text(text).map(|server| (server.has_name(), server.is_tls()));
            assert_eq!(server, Ok((has_name, is_tls)), "{text}");
        }
    }
}
