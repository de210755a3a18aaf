//! Files of the repository that follow from the declarations: the reference page, the JSON Schema, the examples.

use std::fs;

use super::*;
use crate::schema::{Fallback, Section};
use crate::sections::all_sections;
use crate::{Config, json_schema, load, reference_markdown};

#[test]
fn the_reference_is_what_the_declarations_say() {
    let pages = [
        ("docs/reference/config.md", reference_markdown()),
        ("docs/reference/larder.schema.json", json_schema()),
    ];
    for (name, text) in pages {
        let path = repository().join(name);
        if std::env::var_os("LARDER_WRITE_REFERENCE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == text,
            "{name} is stale: LARDER_WRITE_REFERENCE=1 cargo test -p larder-config rewrites it"
        );
    }
}

/// Warnings that examples have on purpose, and whose guides say why: the example and the key.
const WARNED: &[(&str, &str)] =
    &[("dokuwiki.toml", "site[0].rule[3].ignore[0]"), ("mediawiki.toml", "site[0].purge.from[0]")];

#[test]
fn every_example_is_a_good_config_without_warnings_but_those_that_its_guide_explains() {
    let mut count = 0;
    for entry in fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let checked = load(&path).unwrap_or_else(|errors| panic!("{errors}"));
            let name = path.file_name().unwrap().to_string_lossy();
            let warned = checked.warnings.iter().map(|warning| (&*name, warning.key.as_str()));
            let expected = WARNED.iter().copied().filter(|(of, _)| *of == name);
            assert!(warned.eq(expected), "{}: {:?}", path.display(), checked.warnings);
            count += 1;
        }
    }
    assert!(count >= 4, "{count} examples");
}

#[test]
fn the_full_example_has_every_key() {
    let text = fs::read_to_string(repository().join("examples/full.toml")).unwrap();
    for section in all_sections() {
        for key in section.keys {
            let name = key.name;
            let is_there = text.lines().map(|line| line.split('#').next().unwrap_or_default()).any(|line| {
                [format!("{name} "), format!("[{name}"), format!(".{name}"), format!("[[{name}")]
                    .iter()
                    .any(|form| line.contains(form.as_str()))
            });
            assert!(is_there, "{}: {name}", section.name);
        }
    }
}

#[test]
fn every_declared_default_and_bound_can_be_read() {
    // Reading the emptiest config reads every default of a section; the bounds are read where a key is set.
    let full = load(&repository().join("examples/full.toml")).unwrap().config;
    assert_eq!(full.sites.len(), 3);
    assert_eq!(Config::names().count(), Config::doc().keys.len());
    for section in all_sections() {
        for key in section.keys {
            let needs_reason = !key.why.is_empty() && !key.doc.is_empty();
            assert!(needs_reason, "{}.{} has no sentence or reason", section.name, key.name);
            if let Fallback::Literal(text) = key.fallback {
                assert!(
                    serde_json::from_str::<serde_json::Value>(text).is_ok(),
                    "{text} is not JSON as well"
                );
            }
        }
    }
}

#[test]
fn the_schema_is_json_and_knows_every_section() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    for section in all_sections().iter().skip(1) {
        assert!(schema["$defs"][section.name]["properties"].is_object(), "{}", section.name);
    }
    assert!(schema["$defs"]["Site"]["properties"]["ttl"]["description"].is_string());
}
