//! How much of a file system a store may take: a size, or a part of the whole.

use std::fmt;

use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, Text};
use crate::value::percent::Percent;
use crate::value::size::ByteSize;

/// How much of a disk a store may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSize {
    /// So many bytes.
    Bytes(ByteSize),
    /// So much of the file system, as large as that is, whatever else lies on it; 1 to 100.
    Part(Percent),
    /// Everything but so many bytes, which stay free for others.
    Leave(ByteSize),
}

/// What `size` can say: [`DiskSize`] without what `leave` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeOrPart {
    Bytes(ByteSize),
    Part(Percent),
}

const TEXT: Text = Text {
    noun: "a size or a part of the file system",
    examples: r#""40GiB", "80%""#,
    about: "A size, as above, or a percentage from 1 to 100: so much of the file system, as large as that is, whatever else \
            lies on it.",
    pattern: Some("^([0-9]+([KMGT]i?)?B|([1-9][0-9]?|100)%)$"),
};

impl fmt::Display for DiskSize {
    /// As it is written in the config.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Part(part) => part.fmt(f),
            Self::Leave(size) => write!(f, "all but {size}"),
        }
    }
}

impl Setting for SizeOrPart {
    fn shape() -> Shape {
        Shape::AnyOf(vec![Shape::Text(TEXT), Shape::Integer])
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) if text.contains('%') => match Percent::parse(text) {
                Ok(part) if part.hundredths() > 0 => return Some(Self::Part(part)),
                Ok(_) => None,
                Err(hint) => hint,
            },
            Value::Text(text) => match ByteSize::parse(text) {
                Ok(size) => return Some(Self::Bytes(size)),
                Err(hint) => hint,
            },
            Value::Integer(bytes) => match u64::try_from(*bytes) {
                Ok(bytes) => return Some(Self::Bytes(ByteSize(bytes))),
                Err(_) => None,
            },
            _ => None,
        };
        reading.refuse_value(node, at, TEXT.expected(), hint);
        None
    }

    /// The bounds are sizes; what a part comes to is not known here.
    fn is_within(&self, low: &Self, high: &Self) -> bool {
        match (self, low, high) {
            (Self::Bytes(size), Self::Bytes(low), Self::Bytes(high)) => (low..=high).contains(&size),
            _ => true,
        }
    }
}
