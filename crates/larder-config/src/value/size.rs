//! Sizes: `"512MiB"`, or a plain number of bytes.
//!
//! `KiB` and its kind are powers of 1024, `KB` and its kind of 1000; both are common, so both are read and none is
//! guessed: `"512M"` and `"512mb"` are refused with a hint.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

const TEXT: Text = Text {
    noun: "a size",
    examples: r#""512MiB", "64KiB", "2GB""#,
    about: "A whole number with a unit: `B`; `KiB`, `MiB`, `GiB`, `TiB` (1024); `KB`, `MB`, `GB`, `TB` (1000); or a \
            plain number of bytes.",
    pattern: Some("^[0-9]+([KMGT]i?)?B$"),
};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Reads a size with its unit.
    ///
    /// # Errors
    /// A hint, where there is one.
    pub(crate) fn parse(text: &str) -> Result<Self, Option<String>> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let Some((_, unit_bytes)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let guess = unit.trim().to_ascii_lowercase();
            let meant = UNITS.iter().map(|(name, _)| *name).find(|name| {
                let name = name.to_ascii_lowercase();
                name == guess || name.strip_suffix("ib") == Some(&guess)
            });
            let meant = meant.filter(|_| !number.is_empty());
            return Err(meant.map(|unit| format!("did you mean \"{number}{unit}\"?")));
        };
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_bytes));
        bytes.map(Self).ok_or(None)
    }
}

impl fmt::Display for ByteSize {
    /// In the largest unit that leaves a whole number; powers of 1024 first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = UNITS.iter().find(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes));
        let (unit, bytes) = fits.unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

impl Setting for ByteSize {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Shape::Integer])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Integer(bytes) => match u64::try_from(*bytes) {
                Ok(bytes) => return Some(Self(bytes)),
                Err(_) => None,
            },
            Value::Text(text) => match Self::parse(text) {
                Ok(size) => return Some(size),
                Err(hint) => hint,
            },
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
    fn units_are_exact() {
        for (text, bytes) in [("512MiB", 512 << 20), ("1KB", 1000), ("0B", 0), ("3TiB", 3 << 40), ("7B", 7)] {
            assert_eq!(ByteSize::parse(text), Ok(ByteSize(bytes)), "{text}");
        }
        for (text, hint) in [
            ("512M", Some("did you mean \"512MiB\"?")),
            ("512mb", Some("did you mean \"512MB\"?")),
            ("5 GB", Some("did you mean \"5GB\"?")),
            ("MiB", None),
            ("1.5GiB", None),
            ("", None),
            ("99999999999999TiB", None),
            ("-1KiB", None),
        ] {
            assert_eq!(ByteSize::parse(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back(bytes: u64) {
            proptest::prop_assert_eq!(ByteSize::parse(&ByteSize(bytes).to_string()), Ok(ByteSize(bytes)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}|[0-9]{0,24}[a-zA-Z]{0,4}") {
            let _ = ByteSize::parse(&text);
        }
    }
}
