//! Versions of the config's rules, put to work.
//!
//! In: what the config says of them. Out: one reader for each server, which lives on over a reload where nothing of its server has changed,
//! and with it what is known.

use std::sync::Arc;

use larder_config::{CacheMode, Config, Resolved};
use larder_observe::Diagnostics;
use larder_proxy::settings::{VersionRule, VersionTemplate};
use larder_remote::versions::{Versions, VersionsSettings};
use larder_remote::{RemoteError, SystemNames};

use super::redis;
use super::values::template;

/// Versions are no values of a store.
const NO_VALUES: u64 = 0;

/// The readers that a config needs: those of `known` that are for the same server, and new ones, which connect if `connects`.
///
/// # Errors
/// There is no thread.
pub(super) fn readers(
    config: &Config,
    known: &[Arc<Versions>],
    (diagnostics, connects): (&Diagnostics, bool),
) -> Result<Vec<Arc<Versions>>, RemoteError> {
    let mut readers: Vec<Arc<Versions>> = Vec::new();
    for site in &config.sites {
        for rule in site.rules.iter().map(|rule| Some(&rule.settings)).chain([None]) {
            let resolved = larder_config::Settings::resolve(rule, &site.settings, &config.defaults.settings);
            let Some(settings) = settings(config, &resolved) else { continue };
            let is_it = |reader: &&Arc<Versions>| *reader.settings() == settings;
            if readers.iter().any(|reader| is_it(&reader)) {
                continue;
            }
            readers.push(match known.iter().find(is_it) {
                Some(reader) => Arc::clone(reader),
                None if !connects => Arc::new(Versions::unread(settings)),
                None => {
                    let names = Arc::new(SystemNames);
                    Arc::new(Versions::start(settings.clone(), names, diagnostics.clone())?)
                }
            });
        }
    }
    Ok(readers)
}

/// The versions of a rule, read by one of `readers`.
pub(super) fn of_rule(
    config: &Config,
    resolved: &Resolved,
    readers: &[Arc<Versions>],
) -> Option<Arc<VersionRule>> {
    let settings = settings(config, resolved)?;
    let versions = resolved.versions.as_ref()?;
    let reader = readers.iter().find(|reader| *reader.settings() == settings)?;
    let name = |place: &larder_config::VersionPlace| VersionTemplate {
        key: template(place.key.parts()),
        field: place.field.as_ref().map(|field| template(field.parts())),
    };
    let names = versions.places.iter().map(name).collect();
    Some(Arc::new(VersionRule::new(Arc::clone(reader), names, versions.write)))
}

/// A checked config has a server for them. A rule that stores nothing reads none.
fn settings(config: &Config, resolved: &Resolved) -> Option<VersionsSettings> {
    let versions = resolved.versions.as_ref().filter(|_| resolved.cache == CacheMode::Auto)?;
    let server = config.server_of_versions(resolved, versions)?;
    Some(VersionsSettings { server: redis::settings(server, versions.timeout, NO_VALUES) })
}
