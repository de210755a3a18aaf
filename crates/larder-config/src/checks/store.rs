//! One store: disks or plain files, a layout that the disks can have, and bodies that fit.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::sections::store::Store;
use crate::value::words::Layout;

/// The most disks of one store: each costs a few threads.
const DISKS_MAX: usize = 64;

impl Consistent for Store {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let mut values = VALUES.into_iter().filter(|(name, _)| table.get(name).is_some());
        match (table.get("files"), values.next()) {
            (Some(_), _) => with_files(table, at, reading),
            (None, Some(first)) => {
                with_values(first, values.next(), (table, at), reading);
                if self.records().is_some() {
                    with_records((table, at), reading);
                }
            }
            (None, None) => disks(self, table, at, reading),
        }
        if let Some(node) = table.get("max_object")
            && let Some(max_object) = self.max_object
            && let Some((limit_bytes, limit)) = limit(self, table)
            && max_object.0 > limit_bytes
        {
            reading.refuse_value(node, &At::Key(at, "max_object"), format!("at most {limit}"), None);
        }
    }
}

/// The keys of values of an application, and where these lie.
const VALUES: [(&str, &str); 2] = [("memcached", "memcached"), ("redis", "Redis")];

/// What no body may exceed, in bytes and in words; `None` where that is not known.
fn limit(store: &Store, table: &Table) -> Option<(u64, String)> {
    if table.get("files").is_some() {
        return store
            .files
            .as_ref()
            .map(|files| (files.size.0, format!("files.size, which is {}", files.size)));
    }
    let sizes = store.disks.iter().filter_map(|disk| Some((disk.known_bytes()?, disk.size)));
    match sizes.min_by_key(|(bytes, _)| *bytes) {
        Some((bytes, size)) => Some((bytes, format!("the smallest disk, which is {size}"))),
        // Parts of a file system, or disks that were refused.
        None if table.get("disks").is_some() => None,
        None => Some((store.memory.0, format!("memory, which is {}", store.memory))),
    }
}

/// Disks of larders that share purges are none of what they share.
fn with_records((table, at): (&Table, &At<'_>), reading: &mut Reading<'_>) {
    if let Some(node) = table.get("idle") {
        let problem = reading.problem(&node.place, &At::Key(at, "idle"), "it is not used");
        reading.warn(problem.hint("shared responses stay for as long as they may be of use"));
    }
}

/// A store with values of an application, or with responses that larders share, has neither disks nor what goes with them, nor values in a second place.
fn with_values(
    (key, place): (&str, &str),
    second: Option<(&str, &str)>,
    (table, at): (&Table, &At<'_>),
    reading: &mut Reading<'_>,
) {
    let beside = |name: &str, or: &str, reading: &mut Reading<'_>| {
        if let Some(node) = table.get(name) {
            let said = format!("it has no meaning beside `{key}`");
            let problem = reading.problem(&node.place, &At::Key(at, name), said);
            let hint = format!("a store has {or}: take two stores for both");
            reading.refuse(problem.hint(match key {
                "redis" => hint + ", or let larders with disks share their purges: [fleet] redis",
                _ => hint,
            }));
        }
    };
    for name in ["disks", "layout"] {
        beside(name, &format!("disks, or lies in {place}"), reading);
    }
    if let Some((second, second_place)) = second {
        beside(second, &format!("a part in {place}, or in {second_place}"), reading);
    }
}

/// A store of plain files has neither disks nor what goes with them, nor values elsewhere.
fn with_files(table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    for (name, place) in VALUES {
        if let Some(node) = table.get(name) {
            let problem =
                reading.problem(&node.place, &At::Key(at, name), "it has no meaning beside `files`");
            let hint = format!("a store keeps plain files, or lies in {place}: take two stores for both");
            reading.refuse(problem.hint(hint));
        }
    }
    for name in ["disks", "layout"] {
        if let Some(node) = table.get(name) {
            let said = "it has no meaning beside `files`";
            let problem = reading.problem(&node.place, &At::Key(at, name), said);
            reading.refuse(problem.hint("a store has disks, or keeps plain files: take two stores for both"));
        }
    }
    if let Some(node) = table.get("idle") {
        let problem = reading.problem(&node.place, &At::Key(at, "idle"), "it is not used");
        reading.warn(problem.hint("files stay until they are removed, or their room is needed"));
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
        (Some(layout), Some(Layout::Mirror)) if count == store.disks.len() => {
            if let Some((first, second)) = on_one_file_system(store) {
                let said = format!("disks[{first}] and disks[{second}] are on one file system");
                let problem = reading.problem(&layout.place, &layout_at, said);
                reading.warn(problem.hint("what takes one takes the other: is a disk not mounted?"));
            }
        }
        _ => {}
    }
}

/// The first two disks that lie on one file system, where there are such.
fn on_one_file_system(store: &Store) -> Option<(usize, usize)> {
    let mut known = HashMap::new();
    store.disks.iter().enumerate().find_map(|(index, disk)| {
        let first = known.insert(device(&disk.path)?, index)?;
        Some((first, index))
    })
}

/// The file system of a directory, or of the one above it where it is not there yet.
fn device(path: &Path) -> Option<u64> {
    let above = || path.parent().and_then(|above| fs::metadata(above).ok());
    fs::metadata(path).ok().or_else(above).map(|found| found.dev())
}

fn without_disks(layout: Option<&Node>, at: &At<'_>, reading: &mut Reading<'_>) {
    if let Some(layout) = layout {
        let problem = reading.problem(&layout.place, &At::Key(at, "layout"), "there are no disks");
        reading.refuse(problem.hint("add `disks`, or leave `layout` out"));
    }
}
