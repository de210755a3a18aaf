//! One store: a layout that its disks can have, and bodies that fit.

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::sections::store::Store;
use crate::value::words::Layout;

/// The most disks of one store: each costs a few threads.
const DISKS_MAX: usize = 64;

pub(crate) fn check(store: &Store, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    disks(store, table, at, reading);
    if let Some(node) = table.get("max_object")
        && let Some(max_object) = store.max_object
    {
        let smallest = store
            .disks
            .iter()
            .filter_map(|disk| disk.known_bytes().map(|bytes| (bytes, disk)))
            .min_by_key(|(bytes, _)| *bytes);
        let (limit, said) = match smallest {
            Some((bytes, disk)) => (bytes, format!("at most the smallest disk, which is {}", disk.size)),
            // A part of a file system, or disks that were refused.
            None if table.get("disks").is_some() => return,
            None => (store.memory.0, format!("at most memory, which is {}", store.memory)),
        };
        if max_object.0 > limit {
            reading.refuse_value(node, &At::Key(at, "max_object"), said, None);
        }
    }
}

/// Whether there are as many disks as the layout needs. Those that were refused count: they are meant to be there.
fn disks(store: &Store, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    let disks_at = At::Key(at, "disks");
    let layout = table.get("layout");
    let (node, count) = match table.get("disks") {
        None => return without_disks(layout, at, reading),
        Some(Node { value: Value::List(disks), .. }) if disks.is_empty() => {
            let hint = "leave `disks` out to keep responses in memory alone".to_owned();
            if let Some(node) = table.get("disks") {
                reading.refuse_value(node, &disks_at, "at least one disk", Some(hint));
            }
            return;
        }
        Some(node @ Node { value: Value::List(disks), .. }) => (node, disks.len()),
        Some(_) => return,
    };
    if count > DISKS_MAX {
        let said = format!("there are {count} disks, and {DISKS_MAX} at most");
        let problem = reading.problem(&node.place, &disks_at, said);
        reading.refuse(problem);
    }
    let layout_at = At::Key(at, "layout");
    match (layout, store.layout) {
        (None, _) if count > 1 => {
            let problem = reading.problem(&node.place, &layout_at, "missing key \"layout\"");
            let hint = "\"mirror\" keeps each response on every disk, \"hash\" each on one of them, \"stripe\" its pieces on all";
            reading.refuse(problem.hint(hint));
        }
        (Some(layout), Some(Layout::Single)) if count > 1 => {
            let expected = "\"mirror\" or \"stripe\" or \"hash\"";
            let hint = format!("\"single\" is for one disk, and there are {count}");
            reading.refuse_value(layout, &layout_at, expected, Some(hint));
        }
        (Some(layout), Some(Layout::Mirror | Layout::Stripe | Layout::Hash)) if count == 1 => {
            let hint = "it needs two disks at least: add one, or leave `layout` out".to_owned();
            reading.refuse_value(layout, &layout_at, "\"single\" for one disk", Some(hint));
        }
        _ => {}
    }
}

fn without_disks(layout: Option<&Node>, at: &At<'_>, reading: &mut Reading<'_>) {
    if let Some(layout) = layout {
        let problem = reading.problem(&layout.place, &At::Key(at, "layout"), "there are no disks");
        reading.refuse(problem.hint("add `disks`, or leave `layout` out"));
    }
}
