//! What a key is: how its value is read, and how it is described.
//!
//! [`Setting`] is a value that can be read from a node; [`TextSetting`] one that is written as a string; [`Section`] a
//! table of declared keys (made by `section!`). Each says its [`Shape`], from which the JSON Schema, the reference
//! page and the words of an error are made.

pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod page;
pub(crate) mod section;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, declared};

/// Stands, in a list with built-in values, for those.
pub(crate) const DEFAULT: &str = "default";

/// A value of the config.
pub(crate) trait Setting: Sized {
    /// Part of a list: a table in the place of the list gets another hint than a value.
    const IS_SECTION: bool = false;

    fn shape() -> Shape;

    /// `None` where it was refused, which has been noted then.
    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self>;

    /// What stands for an absent key without a default; `None` where there is no such thing.
    fn absent() -> Option<Self> {
        None
    }

    /// Whether this lies between the two, which are part of it.
    fn is_within(&self, _low: &Self, _high: &Self) -> bool {
        true
    }
}

/// A value that is written as a string.
pub(crate) trait TextSetting: Sized {
    const TEXT: Text;

    /// # Errors
    /// A hint, where there is one.
    fn from_text(text: &str) -> Result<Self, Option<String>>;

    /// Whether, where this is the name of a value, that value is not to be shown.
    fn hides_value(&self) -> bool {
        false
    }
}

impl<T: TextSetting> Setting for T {
    fn shape() -> Shape {
        Shape::Text(T::TEXT)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let hint = match &node.value {
            Value::Text(text) => match T::from_text(text) {
                Ok(value) => return Some(value),
                Err(hint) => hint,
            },
            _ => None,
        };
        reading.refuse_value(node, at, T::TEXT.expected(), hint);
        None
    }
}

/// How a kind of string is described.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    /// With its article: `a duration`.
    pub(crate) noun: &'static str,
    /// As in the file, quotes included.
    pub(crate) examples: &'static str,
    /// A sentence or two for the reference.
    pub(crate) about: &'static str,
    /// For the JSON Schema; what it lets through may still be refused.
    pub(crate) pattern: Option<&'static str>,
}

impl Text {
    pub(crate) fn expected(&self) -> String {
        format!("{} such as {}", self.noun, self.examples)
    }
}

/// What a value may look like.
pub(crate) enum Shape {
    Boolean,
    False,
    Integer,
    /// One of a few numbers.
    Numbers(&'static [u16]),
    Text(Text),
    Words(&'static [&'static str]),
    /// Where a list is expected, a single value stands for a list of one.
    List(Box<Shape>),
    /// A table with names of one's own.
    Map(Text, Box<Shape>),
    Section(fn() -> SectionDoc),
    AnyOf(Vec<Shape>),
}

impl Shape {
    /// For `found ..., expected ...`.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::False => "false".to_owned(),
            Self::Integer => "a whole number".to_owned(),
            Self::Numbers(numbers) => numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
            Self::Text(text) => text.expected(),
            Self::Words(words) => {
                words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
            }
            Self::List(item) => format!("{}, or a list of such", item.expected()),
            Self::Map(..) | Self::Section(_) => "a table".to_owned(),
            Self::AnyOf(shapes) => shapes.iter().map(Self::expected).collect::<Vec<_>>().join(", or "),
        }
    }
}

/// What stands for a key that is absent.
#[derive(Clone, Copy)]
pub(crate) enum Fallback {
    /// A default, written in TOML.
    Literal(&'static str),
    /// A default that is worked out elsewhere, in words.
    Described(&'static str),
    /// Nothing: the key is just not set.
    Absent,
    /// There is none.
    Required,
}

impl Fallback {
    pub(crate) fn value<T: Setting>(&self) -> T {
        match self {
            Self::Literal(text) => declared(text),
            _ => T::absent().expect("a key without a default can be absent; a test reads every section"),
        }
    }
}

/// A declared key, as described.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) doc: &'static [&'static str],
    pub(crate) fallback: Fallback,
    pub(crate) why: &'static str,
    pub(crate) bounds: Option<(&'static str, &'static str)>,
}

/// A declared table, as described.
pub(crate) struct SectionDoc {
    /// The struct's name, which is unique.
    pub(crate) name: &'static str,
    /// As its header is written.
    pub(crate) title: &'static str,
    pub(crate) about: &'static [&'static str],
    pub(crate) keys: Vec<Key>,
    /// Keys that this table has besides its own.
    pub(crate) flattened: Vec<fn() -> SectionDoc>,
}

/// A table of declared keys.
pub(crate) trait Section: Sized {
    const NAMES: &'static [&'static str];

    /// Keys that stood here once, each with a hint to where it stands now.
    const MOVED: &'static [(&'static str, &'static str)];

    fn doc() -> SectionDoc;

    /// Every key that may stand there.
    fn names() -> impl Iterator<Item = &'static str>;

    fn knows(name: &str) -> bool {
        Self::names().any(|known| known == name)
    }

    /// Reads the declared keys; others are not looked at.
    fn read_keys(table: &Table, at: &At<'_>, reading: &mut Reading<'_>) -> Self;
}

/// Checks between the keys of one table.
pub(crate) trait Consistent {
    fn check(&self, _table: &Table, _at: &At<'_>, _reading: &mut Reading<'_>) {}
}
