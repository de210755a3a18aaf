//! A field with a secret value, as one line: `X-Purge-Key: 5f2c81d09b7ae346`.
//!
//! No part of a refused text is quoted, because a text without a colon may be the secret alone.

use http::HeaderName;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text, TextSetting};
use crate::told::hidden::MASK;
use crate::value::secret::Secret;

/// A field whose value is a secret. `Debug` hides the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretField {
    /// The field.
    pub name: HeaderName,
    /// Its value, without blanks at its ends.
    pub value: Secret,
}

const TEXT: Text = Text {
    noun: "a field with a secret",
    examples: r#""X-Purge-Key: 5f2c81d09b7ae346""#,
    about: "The field's name, a colon, and a value of 16 to 512 ASCII characters without controls. Blanks at its ends do not \
            count. The value never appears in messages and logs.",
    pattern: Some(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]*[!-~][ -~]{14,510}[!-~][ \t]*$"),
};

/// What is wrong with a text: what was found, and a hint.
type Refused = (String, Option<String>);

fn from_text(text: &str) -> Result<SecretField, Refused> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(("a text without a colon".to_owned(), Some("write \"NAME: VALUE\"".to_owned())));
    };
    if name.is_empty() {
        return Err(("a field without a name".to_owned(), Some("write \"NAME: VALUE\"".to_owned())));
    }
    let name = HeaderName::from_text(name)
        .map_err(|hint| ("a name that no such field can have".to_owned(), hint))?;
    let value = value.trim_matches([' ', '\t']);
    let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if (16..=512).contains(&value.len()) && is_plain {
        return Ok(SecretField { name, value: Secret::of(value) });
    }
    let found = match value.len() {
        0 => "a field without a value".to_owned(),
        1 => "a value of 1 byte".to_owned(),
        bytes => format!("a value of {bytes} bytes"),
    };
    Err((found, Some("16 to 512 ASCII characters without controls".to_owned())))
}

impl Setting for SecretField {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let (found, hint) = match &node.value {
            Value::Text(text) => match from_text(text) {
                Ok(field) => {
                    let shown = format!("{}: {MASK}", field.name);
                    reading.hide(node, shown, vec![field.value.expose().to_owned()]);
                    return Some(field);
                }
                Err(refused) => refused,
            },
            _ => ("something else".to_owned(), None),
        };
        let problem = reading.problem(&node.place, at, found).expected(TEXT.expected());
        reading.refuse(problem.hint_if(hint));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_a_name_and_a_long_value() {
        for (text, name, value) in [
            ("X-Purge-Key: 5f2c81d09b7ae346", "x-purge-key", "5f2c81d09b7ae346"),
            ("x-key:5f2c81d09b7ae346 \t", "x-key", "5f2c81d09b7ae346"),
            ("Authorization: Basic YWRtaW46YWRtaW4=", "authorization", "Basic YWRtaW46YWRtaW4="),
            ("X-Key: 5f2c:81d0:9b7a:e346", "x-key", "5f2c:81d0:9b7a:e346"),
        ] {
            let read = from_text(text).map(|field| (field.name, field.value.expose().to_owned()));
            assert_eq!(read, Ok((HeaderName::from_static(name), value.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_refused_is_not_quoted() {
        let long = format!("X-Key: {}", "a".repeat(513));
        for (text, found) in [
            ("5f2c81d09b7ae346", "a text without a colon"),
            (": 5f2c81d09b7ae346", "a field without a name"),
            ("X-Key:", "a field without a value"),
            ("X-Key:  ", "a field without a value"),
            ("X-Key: a", "a value of 1 byte"),
            ("X-Key: 5f2c81d09b7ae34", "a value of 15 bytes"),
            ("X-Key: 5f2c81d09b7ae34\u{7f}", "a value of 16 bytes"),
            ("X-Key: 5f2c81d09b7ae34é", "a value of 17 bytes"),
            (long.as_str(), "a value of 513 bytes"),
            ("X Key: 5f2c81d09b7ae346", "a name that no such field can have"),
            ("Host: 5f2c81d09b7ae346", "a name that no such field can have"),
        ] {
            let refused = from_text(text).map_err(|(found, _)| found);
            assert_eq!(refused, Err(found.to_owned()), "{text}");
        }
    }
}
