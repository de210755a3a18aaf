//! Versions of rules: they need a server, a store that has a place for them, and values that are named by them.
//!
//! In: every rule as it will hold. Out: errors where a version would come from nowhere or go nowhere, and a warning where values are used
//! that a new version does not change.

use super::layers::each_rule;
use crate::document::Table;
use crate::reading::Reading;
use crate::sections::config::Config;
use crate::sections::store::Store;
use crate::value::value_key::ValueKeyPart;
use crate::value::words::CacheMode;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    each_rule(config, table, |resolved, layers| {
        if resolved.cache == CacheMode::Off {
            return;
        }
        let stores = || config.stores.iter().filter(|(name, _)| resolved.uses(name)).map(|(_, store)| store);
        let has_version = |store: &Store| store.values().is_some_and(|(_, values)| values.key.has_version());
        let (keys, problem, hint) = match &resolved.versions {
            None if stores().any(has_version) => (
                &["versions", "store"][..],
                "the key of the store's values has {version}, and the rule has no versions",
                "say where they lie: versions = { hash = \"resource_versions\", field = \"{target}\" }",
            ),
            None => return,
            Some(_) if stores().any(|store| store.files.is_some()) => (
                &["versions"][..],
                "plain files have no place for versions",
                "a file answers for a URL, whatever its version: use a store with disks, or with memory alone",
            ),
            Some(versions) if config.server_of_versions(resolved, versions).is_none() => (
                &["versions"][..],
                "the server of the versions is missing",
                "add redis = \"redis://HOST\": neither the rule's store nor [fleet] has one",
            ),
            Some(versions) => {
                let unkeyed = versions.places.iter().flat_map(|place| place.field.iter().chain([&place.key]));
                let unkeyed = unkeyed.flat_map(|key| key.parts()).any(|part| match part {
                    ValueKeyPart::Cookie(name) => !resolved.key.cookies.contains(name),
                    ValueKeyPart::Field(name) => !resolved.key.fields.contains(name),
                    _ => false,
                });
                if unkeyed {
                    layers.at(&["versions"], |place, at| {
                        let said = "a cookie or a field decides about the version, and is not in `key`";
                        let hint = "two visitors whose versions read the same share a response: add it to `key` as well";
                        let problem = reading.problem(place, at, said).hint(hint);
                        if !reading.warnings.contains(&problem) {
                            reading.warn(problem);
                        }
                    });
                }
                let is_unversioned =
                    |store: &Store| store.values().is_some_and(|(_, values)| !values.key.has_version());
                if stores().any(is_unversioned) {
                    layers.at(&["versions"], |place, at| {
                        let said = "a new version leads to the same values of the store";
                        let hint = "add {version} to the key of its values, unless the application writes them anew first";
                        let problem = reading.problem(place, at, said).hint(hint);
                        if !reading.warnings.contains(&problem) {
                            reading.warn(problem);
                        }
                    });
                }
                return;
            }
        };
        layers.at(keys, |place, at| {
            let problem = reading.problem(place, at, problem).hint(hint);
            if !reading.errors.contains(&problem) {
                reading.refuse(problem);
            }
        });
    });
}
