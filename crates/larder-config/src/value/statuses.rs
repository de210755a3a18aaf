//! Statuses that mean one thing, for a health check or a place: one, or a range with both ends.

use std::fmt;
use std::ops::RangeInclusive;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};

/// What a final status can be.
const FINAL: RangeInclusive<u16> = 200..=599;

/// Final statuses from one to another, both included. Prints as it is written in the config.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusRange(RangeInclusive<u16>);

const TEXT: Text = Text {
    noun: "a status or a range of them",
    examples: r#""200-399", "204""#,
    about: "Final statuses, 200 to 599: one, as a text or a number, or a range with both its ends.",
    pattern: Some("^[2-5][0-9][0-9](-[2-5][0-9][0-9])?$"),
};

impl StatusRange {
    /// The range; never empty.
    pub fn range(&self) -> RangeInclusive<u16> {
        self.0.clone()
    }

    /// Reads a status or a range.
    ///
    /// # Errors
    /// A hint, where there is one.
    fn parse(text: &str) -> Result<Self, Option<String>> {
        let status = |text: &str| {
            let is_plain = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|status| is_plain && FINAL.contains(status))
        };
        if let [kind @ b'2'..=b'5', b'x' | b'X', b'x' | b'X'] = text.as_bytes() {
            let kind = char::from(*kind);
            return Err(Some(format!("did you mean \"{kind}00-{kind}99\"?")));
        }
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        match (status(low), status(high)) {
            (Some(low), Some(high)) if low <= high => Ok(Self(low..=high)),
            (Some(low), Some(high)) => Err(Some(format!("did you mean \"{high}-{low}\"?"))),
            _ => Err(None),
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.start(), self.0.end()) {
            (low, high) if low == high => low.fmt(f),
            (low, high) => write!(f, "{low}-{high}"),
        }
    }
}

impl Setting for StatusRange {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Shape::Integer])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match Self::parse(text) {
                Ok(range) => return Some(range),
                Err(hint) => hint,
            },
            Value::Integer(status) => {
                match u16::try_from(*status).ok().filter(|status| FINAL.contains(status)) {
                    Some(status) => return Some(Self(status..=status)),
                    None => None,
                }
            }
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
    fn a_range_has_two_final_statuses_in_order() {
        for (text, expected) in [
            ("200-399", Ok(200..=399)),
            ("204", Ok(204..=204)),
            ("599-599", Ok(599..=599)),
            ("399-200", Err(Some("did you mean \"200-399\"?"))),
            ("2xx", Err(Some("did you mean \"200-299\"?"))),
            ("1xx", Err(None)),
            ("101", Err(None)),
            ("200-600", Err(None)),
            ("200-", Err(None)),
            ("-200", Err(None)),
            ("200-300-400", Err(None)),
            ("+20", Err(None)),
            ("", Err(None)),
        ] {
            let read = StatusRange::parse(text).map(|range| range.range());
            assert_eq!(read, expected.map_err(|hint: Option<&str>| hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back(low in 200u16..=599, more in 0u16..=399) {
            let range = StatusRange(low..=(low + more).min(599));
            proptest::prop_assert_eq!(StatusRange::parse(&range.to_string()), Ok(range));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,8}|[0-9x-]{0,8}") {
            let _ = StatusRange::parse(&text);
        }
    }
}
