//! Addresses to listen on: an IP address and a port.
//!
//! A bare port is refused: it does not say on which interfaces, and the wrong guess opens a port to the world. Names are refused
//! because they may mean several addresses.

use std::net::SocketAddr;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text, TextSetting};

impl TextSetting for SocketAddr {
    const TEXT: Text = Text {
        noun: "an address",
        examples: r#""127.0.0.1:8080", "[::1]:8080", "0.0.0.0:80""#,
        about: "An IP address and a port; IPv6 in brackets. Port 0 takes any free one.",
        pattern: Some("^[0-9A-Fa-f.:\\[\\]]+:[0-9]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        text.parse().map_err(|_| {
            let port = text.strip_prefix(':').unwrap_or(text);
            if port.parse::<u16>().is_ok() {
                return Some(format!(
                    "\"127.0.0.1:{port}\" for this machine only, \"0.0.0.0:{port}\" for every IPv4 address of it, \
                     \"[::]:{port}\" for IPv4 and IPv6"
                ));
            }
            let port = text.strip_prefix("localhost:")?.parse::<u16>().ok()?;
            Some(format!("did you mean \"127.0.0.1:{port}\"?"))
        })
    }
}

/// Where the admin address is; `None` where it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdminAddress(pub(crate) Option<SocketAddr>);

impl Setting for AdminAddress {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(SocketAddr::TEXT), Shape::False])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Boolean(false) => Some(Self(None)),
            Value::Text(text) if matches!(text.as_str(), "off" | "false") => {
                let hint = Some("write false, without quotes".to_owned());
                reading.refuse_value(node, at, Self::shape().expected(), hint);
                None
            }
            Value::Boolean(true) => {
                reading.refuse_value(node, at, Self::shape().expected(), None);
                None
            }
            _ => SocketAddr::read(node, at, reading).map(|address| Self(Some(address))),
        }
    }
}
