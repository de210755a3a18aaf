//! Percentages: a whole number and its sign, `"10%"`.
//!
//! A bare number is refused, as is a fraction: `0.1` could mean a tenth or a thousandth.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};

const TEXT: Text = Text {
    noun: "a percentage",
    examples: r#""10%", "0%""#,
    about: "A whole number from 0 to 100 and its sign.",
    pattern: Some("^([0-9]|[1-9][0-9]|100)%$"),
};

/// A part of a hundred, from 0 to 100. Prints as it is written in the config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// Hundredths, 0 to 100.
    pub const fn hundredths(self) -> u8 {
        self.0
    }

    /// Reads a percentage.
    ///
    /// # Errors
    /// A hint, where there is one.
    pub(crate) fn parse(text: &str) -> Result<Self, Option<String>> {
        let number = |digits: &str| {
            let is_plain =
                (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            let is_plain = is_plain && (digits.len() == 1 || !digits.starts_with('0'));
            digits.parse::<u8>().ok().filter(|number| is_plain && *number <= 100)
        };
        match text.strip_suffix('%') {
            Some(digits) if digits.contains('.') => Err(Some("write a whole number".to_owned())),
            Some(digits) => number(digits).map(Self).ok_or(None),
            None => Err(number(text).map(|number| format!("did you mean \"{number}%\"?"))),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Setting for Percent {
    fn shape() -> Shape {
        Shape::Text(TEXT)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match Self::parse(text) {
                Ok(percent) => return Some(percent),
                Err(hint) => hint,
            },
            Value::Integer(number) if (0..=100).contains(number) => {
                Some(format!("did you mean \"{number}%\"?"))
            }
            _ => None,
        };
        reading.refuse_value(node, at, TEXT.expected(), hint);
        None
    }

    fn is_within(&self, low: &Self, high: &Self) -> bool {
        (low..=high).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_a_whole_number_with_its_sign() {
        for (text, expected) in [
            ("0%", Ok(0)),
            ("9%", Ok(9)),
            ("100%", Ok(100)),
            ("101%", Err(None)),
            ("007%", Err(None)),
            ("+1%", Err(None)),
            ("-1%", Err(None)),
            ("%", Err(None)),
            ("", Err(None)),
            ("1 %", Err(None)),
            ("10", Err(Some("did you mean \"10%\"?"))),
            ("1000", Err(None)),
            ("0.1%", Err(Some("write a whole number"))),
        ] {
            let read = Percent::parse(text).map(Percent::hundredths);
            assert_eq!(read, expected.map_err(|hint: Option<&str>| hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back(number in 0u8..=100) {
            proptest::prop_assert_eq!(Percent::parse(&Percent(number).to_string()), Ok(Percent(number)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,8}|[0-9.%+-]{0,8}") {
            let _ = Percent::parse(&text);
        }
    }
}
