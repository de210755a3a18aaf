//! What holds other values: nothing or one, many, and names of one's own.
//!
//! In: a node and how its parts are read. Out: the good parts; every bad one is noted and left out.

use std::collections::HashMap;
use std::hash::Hash;

use crate::document::source::shorten;
use crate::document::{Node, Value};
use crate::reading::{At, Reading};
use crate::schema::{Setting, Shape, TextSetting};

impl<T: Setting> Setting for Option<T> {
    const IS_SECTION: bool = T::IS_SECTION;

    fn shape() -> Shape {
        T::shape()
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        T::read(node, at, reading).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn is_within(&self, low: &Self, high: &Self) -> bool {
        match (self, low, high) {
            (Some(value), Some(low), Some(high)) => value.is_within(low, high),
            _ => true,
        }
    }
}

/// A single value stands for a list of one; a single table does not, because `[site]` for `[[site]]` would make the
/// next one a duplicate.
impl<T: Setting> Setting for Vec<T> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        match &node.value {
            Value::List(items) => {
                let items = items.iter().enumerate();
                Some(items.filter_map(|(index, item)| T::read(item, &At::Item(at, index), reading)).collect())
            }
            Value::Table(_) if T::IS_SECTION => {
                let hint = format!("write [[{}]]: there may be several", header(at));
                reading.refuse_value(node, at, "a list of tables", Some(hint));
                None
            }
            Value::Text(_) | Value::Integer(_) | Value::Boolean(_) | Value::Table(_) | Value::Other => {
                T::read(node, at, reading).map(|value| vec![value])
            }
        }
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}

/// What stands in the header of a table there: names without the positions in lists.
fn header(at: &At<'_>) -> String {
    match at {
        At::Top => String::new(),
        At::Item(list, _) => header(list),
        At::Key(table, name) => match header(table) {
            table if table.is_empty() => At::Key(&At::Top, name).to_string(),
            table => format!("{table}.{}", At::Key(&At::Top, name)),
        },
    }
}

impl<K: TextSetting + Clone + Eq + Hash, V: Setting> Setting for Vec<(K, V)> {
    fn shape() -> Shape {
        Shape::Map(K::TEXT, Box::new(V::shape()))
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let Value::Table(table) = &node.value else {
            reading.refuse_value(node, at, "a table", None);
            return None;
        };
        let mut places = HashMap::new();
        let mut pairs = Vec::new();
        for entry in &table.entries {
            let here = At::Key(at, &entry.name);
            let value = V::read(&entry.node, &here, reading);
            let quoted = shorten(&format!("{:?}", entry.name));
            match K::from_text(&entry.name) {
                Err(hint) => {
                    let problem = reading.problem(&entry.place, &here, quoted);
                    reading.refuse(problem.expected(K::TEXT.expected()).hint_if(hint));
                }
                Ok(key) => {
                    if let Some(first) = places.insert(key.clone(), entry.place.clone()) {
                        let said = format!("{quoted} is already there, on {}", reading.line_of(&first));
                        let problem = reading.problem(&entry.place, &here, said);
                        reading.refuse(problem);
                    } else if let Some(value) = value {
                        if key.hides_value() {
                            reading.hide_texts(&entry.node);
                        }
                        pairs.push((key, value));
                    }
                }
            }
        }
        Some(pairs)
    }

    fn absent() -> Option<Self> {
        Some(Vec::new())
    }
}
