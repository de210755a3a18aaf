//! A server of an origin: scheme, host and port, or a Unix socket. Never a path: targets go on as the client sent them.

use std::fmt;
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
}

impl TextSetting for Server {
    const TEXT: Text = Text {
        noun: "a server",
        examples: r#""http://127.0.0.1:3000", "https://app.example", "unix:/run/app.sock""#,
        about: "Scheme, host and port, without a path: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:/PATH` for a \
                Unix socket. The port defaults to the scheme's.",
        pattern: Some("^(https?://[^/?#@]+/?|unix:/.+)$"),
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
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
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
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = parsed.port().unwrap_or(scheme.default_port());
        Ok(Self::Tcp { scheme, host, port })
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
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
            ("unix:app.sock", Some("a Unix socket needs an absolute path of at most 107 bytes")),
        ] {
            assert_eq!(Server::from_text(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }
}
