//! Which store a response goes to by what it is: its type, its size, its status.
//!
//! Rules see requests only, so this is decided when the response is there. In: a table for each store that takes
//! something else than the rule's own. Out: conditions and a name. Which entry decides, and what a response without a
//! type or a length is compared by, is `larder-proxy`'s.

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, tables};
use crate::schema::section::section;
use crate::schema::{Consistent, Section, Setting, Shape};
use crate::value::media::MediaPattern;
use crate::value::name::Name;
use crate::value::size::ByteSize;
use crate::value::statuses::StatusRange;

section! {
    /// Which store a response goes to by what it is, in place of `store`. It is decided when the origin's answer is there
    /// and can be stored: by the first entry of which everything matches that it names. What matches none goes to `store`.
    pub(crate) struct PlaceTable in "`place`" {
        /// Media types. A response without Content-Type matches none.
        types as "type": Vec<MediaPattern> = ("any type"), why "What is large, and seldom asked for again, is mostly told by its type.";
        /// How long its body is at least. A body of unknown length is not known to be that long.
        min_size: Option<ByteSize> = ("any size"), in "1B" ..= "1024TiB", why "A large body takes the room of many small ones.";
        /// Statuses.
        status: Vec<StatusRange> = ("any status"), why "Errors are stored too, where they have a lifetime.";
        /// The name of the store.
        store: Option<Name> = required, why "There is nothing to guess from.";
    }
}

impl Consistent for PlaceTable {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        for name in ["type", "status"] {
            if let Some(node) = table.get(name)
                && matches!(&node.value, Value::List(items) if items.is_empty())
            {
                let hint = Some(format!("leave `{name}` out to match any"));
                reading.refuse_value(node, &At::Key(at, name), "something to match", hint);
            }
        }
    }
}

/// A store for some responses. What is empty or absent matches every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRule {
    /// One of these media types.
    pub types: Vec<MediaPattern>,
    /// A body that is announced to be at least this long.
    pub min_size: Option<ByteSize>,
    /// One of these statuses.
    pub statuses: Vec<StatusRange>,
    /// The store. It is declared in a checked config.
    pub store: Name,
}

impl StoreRule {
    /// Whether no response can pass it by.
    pub fn matches_all(&self) -> bool {
        self.types.is_empty() && self.min_size.is_none() && self.statuses.is_empty()
    }
}

impl Setting for StoreRule {
    const IS_SECTION: bool = true;

    fn shape() -> Shape {
        Shape::Section(PlaceTable::doc)
    }

    fn read(node: &Node, at: &At<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        let PlaceTable { types, min_size, status, store } = PlaceTable::read(node, at, reading)?;
        Some(Self { types, min_size, statuses: status, store: store? })
    }
}

/// Warns about entries that nothing reaches, in the `place` of a table of settings.
pub(crate) fn check_order(places: &[StoreRule], table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    let place_tables = tables(table, "place");
    let Some(all) = places.iter().position(StoreRule::matches_all) else {
        return;
    };
    // Where one was refused, the positions say nothing.
    if places.len() != place_tables.len() {
        return;
    }
    let list = At::Key(at, "place");
    for (index, entry) in place_tables.iter().enumerate().skip(all + 1) {
        let said = format!("this entry is never reached: place[{all}] takes every response");
        let problem = reading.problem(&entry.place, &At::Item(&list, index), said);
        reading.warn(problem.hint("the first entry that matches decides: put the general ones last"));
    }
}
