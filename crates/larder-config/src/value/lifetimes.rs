//! Lifetimes that a rule gives: one duration, or one by status.
//!
//! A single duration is for 200, 203, 301 and 308 only; an error page is kept because somebody said so, never because
//! a site's lifetime happened to cover it.

use std::time::Duration;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text, TextSetting};
use crate::value::duration;

/// Lifetimes by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// A single duration: for 200, 203, 301 and 308.
    pub any: Option<Duration>,
    /// One by status, each status once.
    pub by_status: Vec<(u16, Duration)>,
}

/// A status that a lifetime can be given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Status(u16);

impl TextSetting for Status {
    const TEXT: Text = Text {
        noun: "a status",
        examples: "200, 301, 404",
        about: "A final status from 200 to 599, but neither 206 nor 304, which are parts of other responses.",
        pattern: Some("^[2-5][0-9][0-9]$"),
    };

    fn from_text(text: &str) -> Result<Self, Option<String>> {
        if matches!(text, "206" | "304") {
            return Err(Some("it is a part of another response, whose lifetime it has".to_owned()));
        }
        let is_plain = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = text.parse().ok().filter(|status| is_plain && (200..=599).contains(status));
        status.map(Self).ok_or_else(|| Some("statuses are named one by one".to_owned()))
    }
}

impl Setting for Lifetimes {
    fn shape() -> Shape {
        let by_status = Shape::Map(Status::TEXT, Box::new(Duration::shape()));
        Shape::AnyOf(vec![Shape::Text(duration::TEXT), by_status])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::Table(table) if table.entries.is_empty() => {
                let hint = Some("an empty table gives no lifetime to anything".to_owned());
                reading.refuse_value(node, at, r#"a table such as { 200 = "1s", 404 = "10s" }"#, hint);
                None
            }
            Value::Table(_) => {
                let by_status = Vec::<(Status, Duration)>::read(node, at, reading)?;
                let by_status =
                    by_status.into_iter().map(|(Status(status), lifetime)| (status, lifetime)).collect();
                Some(Self { any: None, by_status })
            }
            _ => Duration::read(node, at, reading).map(|any| Self { any: Some(any), by_status: Vec::new() }),
        }
    }
}
