//! Name servers (DNS): an IP address, and a port where it is not 53. A name would need one to be looked up by.

use std::net::{IpAddr, SocketAddr};

use crate::schema::{Text, TextSetting};

/// Where names are looked up when nothing else is said.
const PORT: u16 = 53;

/// A name server's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameServer(pub SocketAddr);

impl TextSetting for NameServer {
    const TEXT: Text = Text {
        noun: "a name server's address",
        examples: r#""127.0.0.1:53", "192.0.2.1", "[::1]:5353""#,
        about: "An IP address, and a port where it is not 53; with a port, IPv6 stands in brackets.",
        pattern: Some("^[0-9A-Fa-f.:\\[\\]]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(SocketAddr::new(address, PORT)));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            let named = text.strip_prefix("localhost").map(|rest| format!("127.0.0.1{rest}"))?;
            Self::from_text(&named).is_ok().then(|| format!("did you mean \"{named}\"?"))
        })?;
        if address.port() == 0 {
            return Err(Some("a port from 1 to 65535".to_owned()));
        }
        Ok(Self(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_server_is_an_ip_address_and_53_is_its_port() {
        for (text, expected) in [
            ("127.0.0.1:53", Ok("127.0.0.1:53")),
            ("192.0.2.1", Ok("192.0.2.1:53")),
            ("192.0.2.1:5353", Ok("192.0.2.1:5353")),
            ("::1", Ok("[::1]:53")),
            ("[::1]:5353", Ok("[::1]:5353")),
            ("localhost", Err(Some("did you mean \"127.0.0.1\"?"))),
            ("localhost:53", Err(Some("did you mean \"127.0.0.1:53\"?"))),
            ("ns.example", Err(None)),
            ("127.0.0.1:0", Err(Some("a port from 1 to 65535"))),
            ("127.0.0.1:65536", Err(None)),
            (":53", Err(None)),
            ("", Err(None)),
        ] {
            let read = NameServer::from_text(text).map(|NameServer(address)| address.to_string());
            let expected = expected.map(str::to_owned).map_err(|hint: Option<&str>| hint.map(str::to_owned));
            assert_eq!(read, expected, "{text}");
        }
    }
}
