//! Where larder listens: an address with a port, or `*` for every address of this machine, IPv4 and IPv6.
//!
//! In: a text. Out: a [`ListenAddress`], and whether two of them collide. A bare port is refused: it does not say on which interfaces.
//! Deliberately absent: how the two families are opened, and what happens where a machine has no IPv6. The binary knows.

use std::fmt;
use std::net::SocketAddr;

use crate::schema::{Text, TextSetting};

/// A place to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// One address. Port 0 stands for any that is free.
    Socket(SocketAddr),
    /// This port of every address of the machine, IPv4 and IPv6.
    AnyFamily(u16),
}

impl ListenAddress {
    /// The port; 0 stands for any that is free.
    pub fn port(&self) -> u16 {
        match self {
            Self::Socket(address) => address.port(),
            Self::AnyFamily(port) => *port,
        }
    }

    /// Whether two listeners cannot both have their address. Port 0 is never the same twice.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        if self.port() == 0 || self.port() != other.port() {
            return false;
        }
        match (self, other) {
            (Self::Socket(one), Self::Socket(other)) => {
                let same_ip =
                    one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
                one.is_ipv4() == other.is_ipv4() && same_ip
            }
            (Self::AnyFamily(_), _) | (_, Self::AnyFamily(_)) => true,
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl fmt::Display for ListenAddress {
    /// As it is written in the config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(f),
            Self::AnyFamily(port) => write!(f, "*:{port}"),
        }
    }
}

impl TextSetting for ListenAddress {
    const TEXT: Text = Text {
        noun: "an address to listen on",
        examples: r#""127.0.0.1:8080", "[::1]:8080", "*:80""#,
        about: "An IP address and a port; IPv6 in brackets. `*` in place of the address stands for every address of this machine, IPv4 \
                and IPv6. Port 0 takes any free one.",
        pattern: Some("^([0-9A-Fa-f.:\\[\\]]+|\\*):[0-9]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if let Some(port) = text.strip_prefix("*:") {
            let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
            return match port.parse() {
                Ok(port) if is_digits => Ok(Self::AnyFamily(port)),
                _ => Err(Some("a port is 0 to 65535".to_owned())),
            };
        }
        if text == "*" {
            return Err(Some("add a port: \"*:80\"".to_owned()));
        }
        SocketAddr::from_text(text).map(Self::Socket)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_prints_as_it_is_written() {
        for text in ["127.0.0.1:80", "[::]:443", "*:80", "*:0", "0.0.0.0:65535"] {
            assert_eq!(ListenAddress::from_text(text).unwrap().to_string(), text);
        }
        for bad in
            ["*", "*:", "*:65536", "*:+80", "*:http", "*.80", ":80", "80", "", "localhost:80", "unix:/a"]
        {
            assert!(ListenAddress::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn listeners_collide_where_a_connection_could_be_for_both() {
        for (one, other, expected) in [
            ("*:80", "*:80", true),
            ("*:80", "0.0.0.0:80", true),
            ("*:80", "[::1]:80", true),
            ("*:80", "127.0.0.1:80", true),
            ("*:80", "*:443", false),
            ("*:0", "*:0", false),
            ("0.0.0.0:80", "[::]:80", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.2:80", "127.0.0.1:80", false),
        ] {
            let read = |text| ListenAddress::from_text(text).unwrap();
            assert_eq!(read(one).overlaps(&read(other)), expected, "{one} {other}");
            assert_eq!(read(other).overlaps(&read(one)), expected, "{other} {one}");
        }
    }
}
