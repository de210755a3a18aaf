//! The fields in which the application of one site speaks to larder, and those that a rule changes.
//!
//! In: the settings of a site. Out: which fields carry tags, purges and directives, which of them end here, and what its origin is told.
//! Deliberately absent: what the fields say.

use http::{HeaderName, HeaderValue};
use larder_cache::purge::tags::TagFields;
use larder_config::{Config, PurgeSetting};
use larder_http::fields::larder_purge::LARDER_PURGE;
use larder_http::fields::litespeed;
use larder_proxy::settings::FieldEdits;

/// The fields of one site that larder reads and no client is sent.
pub(super) struct SiteFields {
    pub(super) tags: TagFields,
    pub(super) ending: Vec<HeaderName>,
    litespeed: bool,
    /// Whether requests may say which certificate a client has shown: larder says it, or a trusted peer may.
    pub(super) client_certificates: bool,
}

impl SiteFields {
    pub(super) fn by(config: &Config, site: &larder_config::Site) -> Self {
        let larder_config::TagFields { fields: mut names, pass } = config.tags(site);
        let mut ending = Vec::new();
        if matches!(config.purge(site), PurgeSetting::Open(rules) if rules.responses) {
            ending.push(LARDER_PURGE);
        }
        if site.litespeed {
            names.push(litespeed::TAG);
            ending.extend([litespeed::CACHE_CONTROL, litespeed::PURGE, litespeed::VARY]);
        }
        Self {
            tags: TagFields::new(names, pass),
            ending,
            litespeed: site.litespeed,
            client_certificates: site.forward_client_cert || !config.trusted.is_empty(),
        }
    }

    /// Fields with directives for this cache, the most specific first.
    pub(super) fn targets(&self, configured: impl Iterator<Item = HeaderName>) -> Vec<HeaderName> {
        self.litespeed.then_some(litespeed::CACHE_CONTROL).into_iter().chain(configured).collect()
    }

    /// Plugins for LiteSpeed send their fields only to an origin's server that says so.
    pub(super) fn edits(&self, configured: larder_config::FieldEdits) -> FieldEdits {
        let mut all = edits(configured);
        if self.litespeed {
            all.set.push((litespeed::LSCACHE, HeaderValue::from_static("1")));
        }
        all
    }
}

/// The changes that a rule makes to fields.
pub(super) fn edits(edits: larder_config::FieldEdits) -> FieldEdits {
    FieldEdits { remove: edits.remove, set: edits.set }
}
