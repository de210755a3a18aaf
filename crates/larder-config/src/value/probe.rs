//! What a health check asks for: a target, and the Host that it names.

use bytes::Bytes;
use larder_http::authority::Authority;
use larder_http::message::Scheme;
use larder_http::target::Target;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text, TextSetting};

/// Path and query of a health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTarget(pub Target);

const TARGET: Text = Text {
    noun: "a path to ask for",
    examples: r#""/healthz", "/status?deep=1""#,
    about: "As it stands in a request: it begins with `/` and may have a query; other bytes than visible ASCII are \
            escaped.",
    pattern: Some("^/[!-\"$-~]*$"),
};

impl ProbeTarget {
    /// # Errors
    /// A hint, where there is one.
    fn parse(text: &str) -> Result<Self, Option<String>> {
        if let Some((scheme, rest)) = text.split_once("://")
            && matches!(scheme, "http" | "https")
        {
            let path = rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or("/");
            let path = crate::document::source::shorten(path);
            return Err(Some(format!("a path alone, each server is asked for it: \"{path}\"")));
        }
        let parsed = Target::parse(Bytes::copy_from_slice(text.as_bytes()));
        parsed.map(Self).map_err(|error| {
            Some(match text.starts_with('/') {
                true => error.to_string(),
                false => "it begins with \"/\"".to_owned(),
            })
        })
    }
}

impl Setting for ProbeTarget {
    fn shape() -> Shape {
        Shape::Text(TARGET)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match Self::parse(text) {
                Ok(target) => {
                    reading.targets.push((node.place.clone(), text.clone()));
                    return Some(target);
                }
                Err(hint) => hint,
            },
            _ => None,
        };
        reading.refuse_value(node, at, TARGET.expected(), hint);
        None
    }

    /// Stands where the required one is missing, so that the walk goes on; such a config is never handed out.
    fn absent() -> Option<Self> {
        Target::parse(Bytes::from_static(b"/")).ok().map(Self)
    }
}

/// The Host of a health check: a host, and a port where one belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHost(pub Authority);

impl TextSetting for ProbeHost {
    const TEXT: Text = Text {
        noun: "a host to ask for",
        examples: r#""app.example", "app.example:8080""#,
        about: "A host name or IP address, IPv6 in brackets, and a port where one belongs into the field Host.",
        pattern: Some("^[^*/@ ]+$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if text.contains("://") {
            return Err(Some("a host is written without a scheme".to_owned()));
        }
        let parsed = Authority::parse(Bytes::copy_from_slice(text.as_bytes()), Scheme::Http);
        parsed.map(Self).map_err(|error| Some(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_asks_for_a_path() {
        for (text, expected) in [
            ("/", Ok("/")),
            ("/healthz", Ok("/healthz")),
            ("/status?deep=1&x", Ok("/status?deep=1&x")),
            ("healthz", Err("it begins with \"/\"")),
            ("", Err("it begins with \"/\"")),
            ("*", Err("it begins with \"/\"")),
            ("/a b", Err("a byte that has to be escaped")),
            ("/a#b", Err("a byte that has to be escaped")),
            ("/\u{e9}", Err("a byte that has to be escaped")),
            ("http://app.example/up", Err("a path alone, each server is asked for it: \"/up\"")),
            ("https://app.example", Err("a path alone, each server is asked for it: \"/\"")),
        ] {
            let read = ProbeTarget::parse(text).map(|ProbeTarget(target)| target.to_string());
            let expected = expected.map(str::to_owned).map_err(|hint| Some(hint.to_owned()));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_probe_names_a_host() {
        for (text, expected) in [
            ("App.Example", Ok("app.example")),
            ("app.example:8080", Ok("app.example:8080")),
            ("app.example:443", Ok("app.example:443")),
            ("[::1]:8080", Ok("[::1]:8080")),
            (" a", Err("malformed host")),
            ("http://app.example", Err("a host is written without a scheme")),
            ("a b", Err("malformed host")),
            ("", Err("empty host")),
        ] {
            let read = ProbeHost::from_text(text).map(|ProbeHost(host)| host.to_string());
            let expected = expected.map(str::to_owned).map_err(|hint| Some(hint.to_owned()));
            assert_eq!(read, expected, "{text}");
        }
    }
}
