//! The crate as its users see it: errors as they are printed, settings as they resolve, pages as they are committed.

#![allow(clippy::unwrap_used)]

mod caching;
mod committed;
mod disks;
mod edge;
mod errors;
mod files;
mod flags;
mod forms;
mod fragments;
mod live;
mod origins;
mod properties;
mod purges;
mod redis;
mod rules;
mod settings;
mod stores;
mod told;
mod values;
mod versions;

use std::path::Path;

use crate::{Checked, parse};

/// The repository's root.
fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A config that has to be right.
fn good(text: &str) -> Checked {
    match parse(text, "larder.toml", &repository().join("examples")) {
        Ok(checked) => checked,
        Err(errors) => panic!("{errors}"),
    }
}

/// What is printed about a config that has to be wrong.
fn printed(text: &str) -> String {
    match parse(text, "larder.toml", &repository().join("examples")) {
        Ok(_) => String::new(),
        Err(errors) => errors.to_string(),
    }
}

const SITE: &str = "[origins.app]\nservers = \"http://127.0.0.1:3000\"\n[[site]]\norigin = \"app\"\n";
