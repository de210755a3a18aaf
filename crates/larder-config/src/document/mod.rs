//! A TOML document as nodes that know their place.
//!
//! In: text. Out: a [`Table`] whose entries stand in the order of the file, or every syntax error. The nodes are our
//! own and not the parser's, so that a flag of the command line can stand in for a key. It is set into the document
//! before anything is checked, and an error about it names the flag.
//! The parser bounds nesting (80 levels); the caller bounds the length.

pub(crate) mod source;

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Where a node comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Bytes of the file.
    Text(Range<usize>),
    /// A flag of the command line.
    Flag(&'static str),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Position,
    pub(crate) value: Value,
}

/// What a config can be made of.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    /// Floats, dates and integers beyond 64 bits: no key takes them.
    Other,
}

/// Entries in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) place: Position,
    pub(crate) entries: Vec<Entry>,
}

/// One key of a table.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) place: Position,
    pub(crate) node: Node,
}

/// A syntax error: where, and the parser's words.
pub(crate) struct SyntaxError {
    pub(crate) place: Position,
    pub(crate) message: String,
}

impl Table {
    pub(crate) fn empty(place: Position) -> Self {
        Self { place, entries: Vec::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// Sets `path` to a value that `flag` gave, over whatever the file says. A table in between that the file
    /// declares as something else is left alone: it is an error of its own.
    pub(crate) fn set(&mut self, path: &[&str], flag: &'static str, value: Value) {
        let place = Position::Flag(flag);
        let Some((name, rest)) = path.split_first() else {
            return;
        };
        let index = self.entries.iter().position(|entry| entry.name == *name).unwrap_or_else(|| {
            let node = Node { place: place.clone(), value: Value::Table(Self::empty(place.clone())) };
            self.entries.push(Entry { name: (*name).to_owned(), place: place.clone(), node });
            self.entries.len() - 1
        });
        let Some(entry) = self.entries.get_mut(index) else {
            return;
        };
        if rest.is_empty() {
            entry.node = Node { place: place.clone(), value };
            entry.place = place;
        } else if let Value::Table(table) = &mut entry.node.value {
            table.set(rest, flag, value);
        }
    }
}

/// Reads `text` as far as it is TOML.
///
/// # Errors
/// Every syntax error, in the order of the file.
pub(crate) fn parse(text: &str) -> Result<Table, Vec<SyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(own_table(table.get_ref(), 0..0));
    }
    let errors = errors.into_iter().map(|error| SyntaxError {
        place: Position::Text(error.span().unwrap_or(0..0)),
        message: error.message().to_owned(),
    });
    Err(errors.collect())
}

/// Reads a single value, for the defaults that are declared as TOML. `None` where it is none.
pub(crate) fn parse_value(text: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(own_value(value.get_ref(), value.span()))
}

fn own_table(table: &DeTable<'_>, span: Range<usize>) -> Table {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let entries = entries.into_iter().map(|(name, value)| Entry {
        name: name.get_ref().to_string(),
        place: Position::Text(name.span()),
        node: own_value(value.get_ref(), value.span()),
    });
    Table { place: Position::Text(span), entries: entries.collect() }
}

fn own_value(value: &DeValue<'_>, span: Range<usize>) -> Node {
    let owned = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::Other, Value::Integer)
        }
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| own_value(item.get_ref(), item.span())).collect())
        }
        DeValue::Table(table) => Value::Table(own_table(table, span.clone())),
        DeValue::Float(_) | DeValue::Datetime(_) => Value::Other,
    };
    Node { place: Position::Text(span), value: owned }
}
