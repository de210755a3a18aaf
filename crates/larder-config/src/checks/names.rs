//! Names of origins and stores: every one that is used is declared, and what is declared is used. Names of rules: each once in a site.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::document::{Position, Table};
use crate::reading::{At, Reading, nearest, tables};

use crate::sections::store::DEFAULT_STORE;
use crate::value::name::{Name, RuleName};

/// The most names that a hint lists.
const HINT_NAMES_MAX: usize = 8;

pub(crate) fn check(table: &Table, reading: &mut Reading<'_>) {
    let (origins, stores) = (declared(table, "origins"), declared(table, "stores"));
    let mut used_origins = HashSet::new();
    let mut used_stores = HashSet::new();
    let known_stores: BTreeSet<&str> = stores.iter().copied().chain([DEFAULT_STORE]).collect();
    if let Some(defaults) = tables(table, "defaults").first() {
        let at = At::Key(&At::Top, "defaults");
        used_stores.extend(find_stores(defaults, &at, reading, &known_stores));
    }
    let list = At::Key(&At::Top, "site");
    for (index, site) in tables(table, "site").into_iter().enumerate() {
        let at = At::Item(&list, index);
        used_origins.extend(find(site, &at, reading, "origin", &origins));
        used_stores.extend(find_stores(site, &at, reading, &known_stores));
        let list = At::Key(&at, "rule");
        for (index, rule) in tables(site, "rule").into_iter().enumerate() {
            used_stores.extend(find_stores(rule, &At::Item(&list, index), reading, &known_stores));
        }
    }
    used_stores.insert(DEFAULT_STORE.to_owned());
    for (section, used) in [("origins", used_origins), ("stores", used_stores)] {
        let at = At::Key(&At::Top, section);
        let Some(section) = tables(table, section).first().copied() else {
            continue;
        };
        for entry in section.entries.iter().filter(|entry| !used.contains(&entry.name)) {
            let problem =
                reading.problem(&entry.place, &At::Key(&at, &entry.name), "it is not used by any site");
            reading.warn(problem);
        }
    }
}

/// Refuses a name that an earlier one of these rules has.
pub(crate) fn check_rules(rules: &[&Table], list: &At<'_>, reading: &mut Reading<'_>) {
    let mut seen: HashMap<String, (usize, Position)> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let Some((name, place, _)) = reading.located::<RuleName>(rule, "name").into_iter().next() else {
            continue;
        };
        match seen.entry(name.as_str().to_owned()) {
            Entry::Vacant(free) => {
                free.insert((index, place));
            }
            Entry::Occupied(taken) => {
                let (first, earlier) = taken.get();
                let said =
                    format!("rule[{first}] ({}) is named \"{name}\" already", reading.line_of(earlier));
                let problem = reading.problem(&place, &At::Key(&At::Item(list, index), "name"), said);
                reading.refuse(problem.hint("a name tells a rule from all others of its site"));
            }
        }
    }
}

/// The names under a table of tables.
fn declared<'t>(table: &'t Table, section: &str) -> BTreeSet<&'t str> {
    let sections = tables(table, section);
    sections.iter().flat_map(|section| section.entries.iter().map(|entry| entry.name.as_str())).collect()
}

/// The stores that a table of settings names, for requests and by what is stored.
fn find_stores(
    settings: &Table,
    at: &At<'_>,
    reading: &mut Reading<'_>,
    known: &BTreeSet<&str>,
) -> Vec<String> {
    let mut found = Vec::from_iter(find(settings, at, reading, "store", known));
    let list = At::Key(at, "place");
    for (index, place) in tables(settings, "place").into_iter().enumerate() {
        found.extend(find(place, &At::Item(&list, index), reading, "store", known));
    }
    found
}

/// The name that `table` gives under `key`; refused where it is not among `known`.
fn find(
    table: &Table,
    at: &At<'_>,
    reading: &mut Reading<'_>,
    key: &str,
    known: &BTreeSet<&str>,
) -> Option<String> {
    let (name, place, _) = reading.located::<Name>(table, key).into_iter().next()?;
    if !known.contains(name.as_str()) {
        let hint = match nearest(name.as_str(), known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => format!("declare it: [{key}s.{name}]"),
            None => {
                let some: Vec<_> = known.iter().copied().take(HINT_NAMES_MAX).collect();
                let more = if known.len() > some.len() { ", ..." } else { "" };
                format!("declared are: {}{more}", some.join(", "))
            }
        };
        let problem = reading.problem(&place, &At::Key(at, key), format!("no {key} is named \"{name}\""));
        reading.refuse(problem.hint(hint));
    }
    Some(name.as_str().to_owned())
}
