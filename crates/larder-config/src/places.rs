//! Where each key of a config stands, for what is found out after it was read.
//!
//! In: the document, once everything in it is good. Out: from the path of a key, as [`Problem::key`] has it, to line and column, or to
//! the flag that gave it. The binary opens the files that a config names, and points at the line of one that is bad.
//! Deliberately absent: values. Paths have names of keys and positions in lists alone, and so no secret.

use std::collections::HashMap;

use crate::document::{Node, Position, Table, Value};
use crate::problem::Problem;
use crate::reading::{At, Reading};

/// Where each key stands. Paths are those of [`Problem::key`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: String,
    places: HashMap<String, Place>,
}

/// Of a value: in the file, or on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    File { line: usize, column: usize },
    Flag(&'static str),
}

impl Places {
    /// The places of all values of a document. Their number is bounded by its length.
    pub(crate) fn of(document: &Table, reading: &Reading<'_>) -> Self {
        let mut places = Self { file: reading.file().to_owned(), places: HashMap::new() };
        places.add_table(document, &At::Top, reading);
        places
    }

    fn add_table(&mut self, table: &Table, at: &At<'_>, reading: &Reading<'_>) {
        for entry in &table.entries {
            self.add(&entry.node, &At::Key(at, &entry.name), reading);
        }
    }

    fn add(&mut self, node: &Node, at: &At<'_>, reading: &Reading<'_>) {
        let place = match &node.place {
            Position::Text(range) => {
                let (line, column) = reading.position(range.start);
                Place::File { line, column }
            }
            Position::Flag(flag) => Place::Flag(flag),
        };
        self.places.entry(at.to_string()).or_insert(place);
        match &node.value {
            Value::Table(table) => self.add_table(table, at, reading),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(item, &At::Item(at, index), reading);
                }
            }
            Value::Text(_) | Value::Integer(_) | Value::Boolean(_) | Value::Other => {}
        }
    }

    /// Line and column of the value of a key, both from 1. `None` where the file does not say it. The first item of a list is found
    /// also where its value stands alone: `site[0].tls[0].cert` at `site[0].tls.cert`.
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        match self.find(key)? {
            (_, Place::File { line, column }) => Some((line, column)),
            (_, Place::Flag(_)) => None,
        }
    }

    /// A problem with the value of a key, to be completed by [`Problem::expected`] and [`Problem::hint`]. It points at the value,
    /// or at the table around it where the key is left out, and names the flag where the command line gave the value.
    pub fn problem(&self, key: &str, found: impl Into<String>) -> Problem {
        let exact = self.find(key);
        let around =
            || parents(key).find_map(|parent| self.find(parent).map(|(_, place)| (key.to_owned(), place)));
        match exact.or_else(around) {
            Some((key, Place::File { line, column })) => {
                Problem { line, column, key, ..Problem::of_file(&self.file, found) }
            }
            Some((_, Place::Flag(flag))) => Problem { key: flag.to_owned(), ..Problem::of_file("", found) },
            None => Problem { key: key.to_owned(), ..Problem::of_file(&self.file, found) },
        }
    }

    /// The key as the file has it, and its place.
    fn find(&self, key: &str) -> Option<(String, Place)> {
        let get = |key: &str| self.places.get(key).map(|place| (key.to_owned(), *place));
        let alone = || {
            let mut firsts = key.match_indices("[0]");
            firsts.find_map(|(at, first)| {
                let (before, rest) = key.split_at_checked(at)?;
                get(&format!("{before}{}", rest.strip_prefix(first)?))
            })
        };
        get(key).or_else(alone)
    }
}

/// What is around a key, from the inside out.
fn parents(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| key.rfind(['.', '[']).and_then(|end| key.get(..end))).skip(1)
}
