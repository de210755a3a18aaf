//! Where one of several servers of Redis listens: a Sentinel, or a node of a cluster.

use std::fmt;

use crate::schema::{Text, TextSetting};
use crate::value::redis_url::host_and_port;

macro_rules! node {
    ($(#[doc = $about:expr])+ $name:ident, $port:literal, $text:expr) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            /// A name in lower case or an IP address, an IPv6 address without brackets.
            pub host: String,
            /// Its port.
            pub port: u16,
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.host.contains(':') {
                    true => write!(f, "[{}]:{}", self.host, self.port),
                    false => write!(f, "{}:{}", self.host, self.port),
                }
            }
        }

        impl TextSetting for $name {
            const TEXT: Text = $text;

            fn from_text(text: &str) -> Result<Self, Option<String>> {
                let (host, port) = read(text, $port)?;
                Ok(Self { host, port })
            }
        }
    };
}

node! {
    /// Where a Sentinel listens; at port 26379 where none was given. Prints with its port.
    SentinelAddress,
    26_379,
    Text {
        noun: "a Sentinel",
        examples: r#""s1.internal:26379", "10.0.0.7""#,
        about: "A name or an IP address, with a port where that is not 26379.",
        pattern: Some("^[^/@ ]+$"),
    }
}

node! {
    /// Where a node of a cluster listens; at port 6379 where none was given. Prints with its port.
    RedisNode,
    6379,
    Text {
        noun: "a node of a cluster",
        examples: r#""n1.internal:6379", "10.0.0.7""#,
        about: "A name or an IP address, with a port where that is not 6379.",
        pattern: Some("^[^/@ ]+$"),
    }
}

fn read(text: &str, port: u16) -> Result<(String, u16), Option<String>> {
    if text.contains("://") {
        return Err(Some("it is written without a scheme; tls = true is for TLS".to_owned()));
    }
    let expected = "expected HOST, HOST:PORT or [IPv6]:PORT, with a port from 1 to 65535";
    host_and_port(text, port).map_err(|_| Some(expected.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_a_host_and_a_port() {
        let read = |text: &str| SentinelAddress::from_text(text).ok().map(|read| read.to_string());
        assert_eq!(read("S1.Internal").as_deref(), Some("s1.internal:26379"));
        assert_eq!(read("10.0.0.7:5000").as_deref(), Some("10.0.0.7:5000"));
        assert_eq!(read("[::1]").as_deref(), Some("[::1]:26379"));
        let node = RedisNode::from_text("n1").map(|node| node.to_string());
        assert_eq!(node.as_deref(), Ok("n1:6379"));
        for text in ["", "a b", "::1", "a:0", "a:x", "redis://a"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
