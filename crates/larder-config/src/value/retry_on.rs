//! What a request is tried again for: a word, or a status of the origin's own.
//!
//! Only statuses that say that this server could not answer, 500 to 599: any other is an answer, and another server
//! would give the same.

use std::fmt;

use crate::document::source::shorten;
use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape, Text};

/// A reason to ask another server. Prints as it is written in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryOn {
    /// There is no connection, or it closed before the response's head was complete.
    Error,
    /// No head within the time for it.
    Timeout,
    /// This status, 500 to 599.
    Status(u16),
}

const TEXT: Text = Text {
    noun: "a reason to retry",
    examples: r#""error", "timeout", "503""#,
    about: "`\"error\"`: no connection, or one that closed before the response's head was complete; `\"timeout\"`: no head \
            within `first_byte_timeout`; or a status from 500 to 599, as a text or a number.",
    pattern: Some("^(error|timeout|5[0-9][0-9])$"),
};

impl RetryOn {
    fn of_status(status: i64) -> Option<Self> {
        u16::try_from(status).ok().filter(|status| (500..=599).contains(status)).map(Self::Status)
    }

    /// Reads a word or a status.
    ///
    /// # Errors
    /// A hint, where there is one.
    fn parse(text: &str) -> Result<Self, Option<String>> {
        match text {
            "error" => Ok(Self::Error),
            "timeout" => Ok(Self::Timeout),
            "5xx" => Err(Some("statuses are named one by one".to_owned())),
            _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let status = text.parse().ok().filter(|_| text.len() == 3).and_then(Self::of_status);
                status.ok_or_else(|| Some(ONLY_ERRORS.to_owned()))
            }
            _ => {
                let near = nearest(&shorten(text), ["error", "timeout"]);
                Err(near.map(|word| format!("did you mean \"{word}\"?")))
            }
        }
    }
}

const ONLY_ERRORS: &str = "500 to 599: any other status is an answer";

impl fmt::Display for RetryOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error => f.write_str("error"),
            Self::Timeout => f.write_str("timeout"),
            Self::Status(status) => status.fmt(f),
        }
    }
}

impl Setting for RetryOn {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Shape::Integer])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match Self::parse(text) {
                Ok(reason) => return Some(reason),
                Err(hint) => hint,
            },
            Value::Integer(status) => match Self::of_status(*status) {
                Some(reason) => return Some(reason),
                None => Some(ONLY_ERRORS.to_owned()),
            },
            _ => None,
        };
        reading.refuse_value(node, at, TEXT.expected(), hint);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_word_or_a_status_of_the_server_s_own() {
        for (text, expected) in [
            ("error", Ok(RetryOn::Error)),
            ("timeout", Ok(RetryOn::Timeout)),
            ("503", Ok(RetryOn::Status(503))),
            ("599", Ok(RetryOn::Status(599))),
            ("499", Err(Some(ONLY_ERRORS))),
            ("600", Err(Some(ONLY_ERRORS))),
            ("0503", Err(Some(ONLY_ERRORS))),
            ("99999999999999999999", Err(Some(ONLY_ERRORS))),
            ("5xx", Err(Some("statuses are named one by one"))),
            ("errors", Err(Some("did you mean \"error\"?"))),
            ("timout", Err(Some("did you mean \"timeout\"?"))),
            ("", Err(None)),
            ("-503", Err(None)),
        ] {
            let expected = expected.map_err(|hint| hint.map(str::to_owned));
            assert_eq!(RetryOn::parse(text), expected, "{text}");
        }
    }
}
