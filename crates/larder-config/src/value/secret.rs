//! A secret: never printed, never quoted in an error.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};
use crate::told::hidden::MASK;

/// A secret of the config. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret that has been checked.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The secret itself; to be compared in constant time.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

const TEXT: Text = Text {
    noun: "a secret",
    examples: "the output of `openssl rand -hex 24`",
    about: "16 to 512 visible ASCII characters. It never appears in messages and logs.",
    pattern: Some("^[!-~]{16,512}$"),
};

impl Setting for Secret {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let found = match &node.value {
            Value::Text(text) => {
                let fits =
                    (16..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
                if fits {
                    reading.hide(node, MASK.to_owned(), vec![text.clone()]);
                    return Some(Self(text.clone()));
                }
                match text.len() {
                    1 => "a text of 1 byte".to_owned(),
                    bytes => format!("a text of {bytes} bytes"),
                }
            }
            _ => "something else".to_owned(),
        };
        let problem = reading.problem(&node.place, at, found).expected(TEXT.expected());
        reading.refuse(problem.hint("16 to 512 visible ASCII characters"));
        None
    }
}
