//! Every table of the config and every key, each declared once, and the list of those tables.

pub(crate) mod acme;
pub(crate) mod admin;
pub(crate) mod assemble;
pub(crate) mod config;
pub(crate) mod defaults;
pub(crate) mod disk;
pub(crate) mod edits;
pub(crate) mod ejection;
pub(crate) mod files;
pub(crate) mod fleet;
pub(crate) mod fragments;
pub(crate) mod health;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod memcached;
pub(crate) mod origin;
pub(crate) mod place;
pub(crate) mod purge;
pub(crate) mod purging;
pub(crate) mod redis;
pub(crate) mod redis_server;
pub(crate) mod retry;
pub(crate) mod rule;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod site;
pub(crate) mod site_tls;
pub(crate) mod store;
pub(crate) mod tags;
pub(crate) mod tls;
pub(crate) mod values;
pub(crate) mod versions;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::schema::{Section as _, SectionDoc, Shape};
use crate::sections::config::Config;

/// Every section of the config, each once, in the order of the reference: a table before those in it.
pub(crate) fn all_sections() -> Vec<SectionDoc> {
    let mut sections = Vec::new();
    add_section(Config::doc(), &mut sections);
    sections
}

fn add_section(section: SectionDoc, sections: &mut Vec<SectionDoc>) {
    if sections.iter().any(|known| known.name == section.name) {
        return;
    }
    let mut below: Vec<_> = section.keys.iter().filter_map(|key| section_of(&key.shape)).collect();
    below.extend(&section.flattened);
    sections.push(section);
    for doc in below {
        add_section(doc(), sections);
    }
}

fn section_of(shape: &Shape) -> Option<fn() -> SectionDoc> {
    match shape {
        Shape::Section(doc) => Some(*doc),
        Shape::List(item) => section_of(item),
        Shape::Map(_, value) => section_of(value),
        Shape::AnyOf(shapes) => shapes.iter().find_map(section_of),
        _ => None,
    }
}

/// The titles of the sections that have a key of this name, for hints.
pub(crate) fn places_of(name: &str) -> &'static [&'static str] {
    // Kept, because a file may hold any number of unknown keys.
    static PLACES: OnceLock<HashMap<&str, Vec<&str>>> = OnceLock::new();
    let places = PLACES.get_or_init(|| {
        let mut places: HashMap<&str, Vec<&str>> = HashMap::new();
        for section in all_sections() {
            for key in section.keys {
                places.entry(key.name).or_default().push(section.title);
            }
        }
        places
    });
    places.get(name).map(Vec::as_slice).unwrap_or_default()
}
