//! The walk over a document: where it is, what it found wrong.
//!
//! In: tables, and what the sections declare about their keys. Out: values, with a fallback in the place of every bad
//! one, so that the walk goes on and finds the next error too. A config is only handed out when nothing was refused,
//! so no such fallback is ever used.

use std::fmt;
use std::path::Path;

use crate::document::source::{Source, shorten};
use crate::document::{Node, Position, Table, Value};
use crate::problem::Problem;
use crate::schema::{Fallback, Section, Setting};
use crate::told::hidden::{Hidden, MASK};

/// A name this much longer than any key is not compared with them.
const NAME_BYTES_MAX: usize = 64;

/// Where in the document the walk is: a list through the callers' frames.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    Top,
    Key(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Item(list, index) => write!(f, "{list}[{index}]"),
            Self::Key(table, name) => {
                if !matches!(table, Self::Top) {
                    write!(f, "{table}.")?;
                }
                let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                match !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_bare) {
                    true => f.write_str(name),
                    false => write!(f, "\"{}\"", shorten(name)),
                }
            }
        }
    }
}

/// The titles of the sections that have a key of this name.
pub(crate) type PlacesOf = fn(&str) -> &'static [&'static str];

/// The state of one walk.
pub(crate) struct Reading<'a> {
    source: Source<'a>,
    /// What relative paths start from.
    pub(crate) base_dir: &'a Path,
    /// The titles of the sections that have a key of some name, for hints.
    places_of: PlacesOf,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// What holds and may surprise, where nothing is wrong.
    pub(crate) notes: Vec<Problem>,
    /// What of the text is not to be shown.
    pub(crate) hidden: Vec<Hidden>,
    /// Paths with queries, whose secrets are known once the whole config is.
    pub(crate) targets: Vec<(Position, String)>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(source: Source<'a>, base_dir: &'a Path, places_of: PlacesOf) -> Self {
        let (errors, warnings, notes) = (Vec::new(), Vec::new(), Vec::new());
        let (hidden, targets) = (Vec::new(), Vec::new());
        Self { source, base_dir, places_of, errors, warnings, notes, hidden, targets }
    }

    /// A walk whose problems are not shown.
    pub(crate) fn quiet(base_dir: &'a Path) -> Self {
        Self::new(Source::new("", ""), base_dir, |_| &[])
    }

    /// The file as it was named.
    pub(crate) fn file(&self) -> &str {
        self.source.file
    }

    /// Line and column of a byte of the text, from 1.
    pub(crate) fn position(&self, byte: usize) -> (usize, usize) {
        self.source.position(byte)
    }

    /// A problem, to be completed and then refused or warned about.
    pub(crate) fn problem(&self, place: &Position, at: &At<'_>, found: impl Into<String>) -> Problem {
        let (file, (line, column), key) = match place {
            Position::Text(range) => (self.source.file, self.source.position(range.start), at.to_string()),
            Position::Flag(flag) => ("", (0, 0), (*flag).to_owned()),
        };
        Problem { file: file.to_owned(), line, column, key, found: found.into(), expected: None, hint: None }
    }

    /// The value of `node` has a secret: `shown` stands between quotes in its place, and none of `forms` anywhere.
    pub(crate) fn hide(&mut self, node: &Node, shown: String, forms: Vec<String>) {
        self.hidden.extend(Hidden::at(&node.place, shown, forms));
    }

    /// The same for each text in `node`, which has a name that sounds like a secret.
    pub(crate) fn hide_texts(&mut self, node: &Node) {
        match &node.value {
            Value::Text(text) => {
                self.hidden.extend(Hidden::by_sound(&node.place, MASK.to_owned(), vec![text.clone()]));
            }
            Value::List(items) => items.iter().for_each(|item| self.hide_texts(item)),
            Value::Table(table) => table.entries.iter().for_each(|entry| self.hide_texts(&entry.node)),
            Value::Integer(_) | Value::Boolean(_) | Value::Other => {}
        }
    }

    pub(crate) fn refuse(&mut self, problem: Problem) {
        self.errors.push(problem);
    }

    pub(crate) fn warn(&mut self, problem: Problem) {
        self.warnings.push(problem);
    }

    /// Refuses `node`: it is quoted as found.
    pub(crate) fn refuse_value(
        &mut self,
        node: &Node,
        at: &At<'_>,
        expected: impl Into<String>,
        hint: Option<String>,
    ) {
        let problem = self.problem(&node.place, at, self.found(node)).expected(expected).hint_if(hint);
        self.refuse(problem);
    }

    /// The value as it is written.
    pub(crate) fn found(&self, node: &Node) -> String {
        match (&node.value, &node.place) {
            (Value::List(items), _) if items.is_empty() => "an empty list".to_owned(),
            (Value::List(_), _) => "a list".to_owned(),
            (Value::Table(_), _) => "a table".to_owned(),
            (_, Position::Text(range)) => self.source.quote(range.clone()),
            (Value::Text(text), Position::Flag(_)) => shorten(&format!("{text:?}")),
            (Value::Integer(integer), Position::Flag(_)) => integer.to_string(),
            (Value::Boolean(boolean), Position::Flag(_)) => boolean.to_string(),
            (Value::Other, Position::Flag(_)) => "this".to_owned(),
        }
    }

    /// The number of the line of `place`, from 1; `None` for what a flag says.
    pub(crate) fn line(&self, place: &Position) -> Option<usize> {
        match place {
            Position::Text(range) => Some(self.source.position(range.start).0),
            Position::Flag(_) => None,
        }
    }

    /// The line of `place`, for problems that point to a second place.
    pub(crate) fn line_of(&self, place: &Position) -> String {
        match place {
            Position::Text(range) => format!("line {}", self.source.position(range.start).0),
            Position::Flag(flag) => (*flag).to_owned(),
        }
    }

    /// Reads one declared key of `table`; the fallback where it is absent, bad or out of bounds.
    pub(crate) fn key<T: Setting>(
        &mut self,
        table: &Table,
        at: &At<'_>,
        name: &'static str,
        fallback: &Fallback,
        bounds: Option<(&str, &str)>,
    ) -> T {
        let here = At::Key(at, name);
        match table.get(name) {
            Some(node) => {
                let is_empty = matches!(&node.value, Value::List(items) if items.is_empty());
                if is_empty && matches!(fallback, Fallback::Required) {
                    self.refuse_value(node, &here, "at least one", None);
                } else if let Some(value) = T::read(node, &here, self) {
                    match bounds {
                        Some((low, high)) if !value.is_within(&declared(low), &declared(high)) => {
                            self.refuse_value(node, &here, format!("{low} to {high}"), None);
                        }
                        _ => return value,
                    }
                }
            }
            None if matches!(fallback, Fallback::Required) => {
                let problem = self.problem(&table.place, &here, format!("missing key \"{name}\""));
                self.refuse(problem);
            }
            None => {}
        }
        fallback.value()
    }

    /// Refuses every key of `table` that `T` does not declare.
    pub(crate) fn unknown_keys<T: Section>(&mut self, table: &Table, at: &At<'_>) {
        for entry in table.entries.iter().filter(|entry| !T::knows(&entry.name)) {
            let here = At::Key(at, &entry.name);
            if let Some((_, hint)) = T::MOVED.iter().find(|(old, _)| *old == entry.name) {
                let problem = self.problem(&entry.place, &here, "the key has moved");
                self.refuse(problem.hint(*hint));
                continue;
            }
            let quoted = shorten(&format!("{:?}", entry.name));
            let problem = self.problem(&entry.place, &here, format!("unknown key {quoted}"));
            let hint = nearest(&entry.name, T::names())
                .map(|name| format!("did you mean \"{name}\"?"))
                .or_else(|| {
                    let places = (self.places_of)(&entry.name);
                    (!places.is_empty()).then(|| format!("it belongs in {}", places.join(" or ")))
                });
            self.refuse(problem.hint_if(hint));
        }
    }

    /// The good values of a key with their places, read again without a word: for checks across keys. A value that
    /// stands alone is a list of one.
    pub(crate) fn located<T: Setting>(&self, table: &Table, name: &str) -> Vec<(T, Position, Option<usize>)> {
        let Some(node) = table.get(name) else {
            return Vec::new();
        };
        let mut quiet = Reading::quiet(self.base_dir);
        let mut read = |node: &Node, index| {
            T::read(node, &At::Top, &mut quiet).map(|value| (value, node.place.clone(), index))
        };
        match &node.value {
            Value::List(items) => {
                items.iter().enumerate().filter_map(|(index, item)| read(item, Some(index))).collect()
            }
            _ => read(node, None).into_iter().collect(),
        }
    }
}

/// A value that the code itself declares.
pub(crate) fn declared<T: Setting>(text: &str) -> T {
    let mut quiet = Reading::quiet(Path::new("."));
    let node = crate::document::parse_value(text);
    node.and_then(|node| T::read(&node, &At::Top, &mut quiet))
        .expect("declared values are constants; a test reads every one")
}

/// The tables of an array of tables, or of a single table in its place, with their indices.
pub(crate) fn tables<'t>(table: &'t Table, name: &str) -> Vec<&'t Table> {
    match table.get(name).map(|node| &node.value) {
        Some(Value::Table(table)) => vec![table],
        Some(Value::List(items)) => {
            let tables = items.iter().map(|item| match &item.value {
                Value::Table(table) => Some(table),
                _ => None,
            });
            tables.flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// The one of `names` that was probably meant: at most a third of its letters differ.
pub(crate) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    // Enough for every key and for any config that a person wrote; a bound for the rest.
    let distances =
        names.into_iter().take(200).map(|known| (strsim::osa_distance(&name.to_lowercase(), known), known));
    let close = distances.filter(|(distance, known)| *distance <= (known.len() / 3).max(1));
    close.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}
