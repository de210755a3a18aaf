//! Which part of the query belongs to the key: a word, or the names that do.

use crate::document::{Node, Value};
use crate::reading::{At, Reading, nearest};
use crate::schema::{Setting, Shape, TextSetting};
use crate::value::name::ParameterName;

/// The value of `key.query`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum QueryChoice {
    /// `"all"`: every parameter.
    #[default]
    All,
    /// `"none"`: no parameter.
    None,
    /// `"no-tracking"`: all but those that only follow people around.
    NoTracking,
    /// A list: these parameters and no other.
    Only(Vec<ParameterName>),
}

const WORDS: [&str; 3] = ["all", "none", "no-tracking"];

impl Setting for QueryChoice {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Words(&WORDS), Shape::List(Box::new(Shape::Text(ParameterName::TEXT)))])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(word) => match word.as_str() {
                "all" => return Some(Self::All),
                "none" => return Some(Self::None),
                "no-tracking" => return Some(Self::NoTracking),
                other => Some(match nearest(other, WORDS) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("write a list for a single parameter: [{:?}]", shortened(other)),
                }),
            },
            Value::List(items) if items.is_empty() => Some("write \"none\"".to_owned()),
            Value::List(_) => return Vec::read(node, at, reading).map(Self::Only),
            _ => None,
        };
        reading.refuse_value(
            node,
            at,
            r#""all", "none", "no-tracking" or a list of parameters' names"#,
            hint,
        );
        None
    }
}

fn shortened(text: &str) -> String {
    crate::document::source::shorten(text)
}
