//! What a rule wants of a field, a cookie or a parameter: to be there, not to be, or to look like a glob.

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};

/// What is wanted of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueMatch {
    /// There, whatever its value (`true`), or not there (`false`).
    Present(bool),
    /// There, with a value that matches this glob as a whole; see [`crate::glob_to_regex`].
    Glob(String),
}

const TEXT: Text = Text {
    noun: "a value pattern",
    examples: r#""dark", "*Mobile*""#,
    about: "Matched against the whole value, case-sensitively; `*` stands for any run of characters. Of several \
            values of one name, one has to match.",
    pattern: None,
};

impl Setting for ValueMatch {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Shape::Boolean])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Boolean(present) => return Some(Self::Present(*present)),
            Value::Text(text) if text.len() <= 4096 && !text.contains(char::is_control) => {
                return Some(Self::Glob(text.clone()));
            }
            Value::Text(_) => Some("at most 4096 bytes, without controls".to_owned()),
            Value::Integer(number) => Some(format!("did you mean \"{number}\"?")),
            _ => None,
        };
        reading.refuse_value(node, at, Self::shape().expected(), hint);
        None
    }
}
