//! Which site and which rule a request falls under.
//!
//! In: a request head. Out: the site and the settings of its first matching rule. Everything is compiled when the
//! config is loaded: hosts to one table, all path patterns of a site to one automaton, so that a request pays for
//! the length of its path and not for the number of rules. Rules see a canonical copy of the path; the key and the
//! origin keep the raw bytes.

mod forwarded;
mod hosts;
mod matcher;
mod paths;

use std::sync::Arc;

use larder_http::message::RequestHead;
use larder_http::target::{ClimbsAboveRoot, Target};

use crate::settings::{KeySettings, RuleSettings, SiteSettings};
pub(crate) use forwarded::{believe_forwarded, client_of, drop_unkeyed_fields};
use hosts::HostTable;
use matcher::RuleTable;

/// The compiled sites of one config.
pub(crate) struct Router {
    hosts: HostTable,
    sites: Vec<Arc<Site>>,
}

/// A site with its rules compiled.
pub(crate) struct Site {
    pub(crate) settings: SiteSettings,
    rules: RuleTable,
}

impl Router {
    /// Compiles.
    ///
    /// # Errors
    /// A pattern that does not compile, which the config check has refused before.
    pub(crate) fn new(sites: Vec<SiteSettings>) -> Result<Self, regex::Error> {
        let hosts = HostTable::new(sites.iter().map(|site| site.hosts.as_slice()));
        let sites = sites.into_iter().map(|settings| {
            let rules = RuleTable::new(settings.rules.iter().map(|(rule, _)| rule))?;
            Ok(Arc::new(Site { settings, rules }))
        });
        Ok(Self { hosts, sites: sites.collect::<Result<_, _>>()? })
    }

    /// The site of a host: exact before the longest wildcard before the site without hosts.
    pub(crate) fn site(&self, host: &str) -> Option<(usize, &Arc<Site>)> {
        let index = self.hosts.find(host)?;
        Some((index, self.sites.get(index)?))
    }
}

impl Site {
    /// Every form in which `target` may be keyed here: as it is, and as each rule normalises it. Which rule a request
    /// for it will match is not known: rules may ask for fields and cookies.
    pub(crate) fn forms(
        &self,
        target: &Target,
        normalise: impl Fn(&Target, &KeySettings) -> Option<Target>,
    ) -> Vec<Target> {
        let rules = self.settings.rules.iter().map(|(_, settings)| settings);
        let mut forms = vec![target.clone()];
        for settings in rules.chain([&self.settings.otherwise]) {
            let form = normalise(target, &settings.key);
            forms.extend(form.filter(|form| !forms.contains(form)));
        }
        forms
    }

    /// The settings that hold for a request.
    ///
    /// # Errors
    /// The path climbs above the root.
    pub(crate) fn settings_for(&self, head: &RequestHead) -> Result<&Arc<RuleSettings>, ClimbsAboveRoot> {
        let path = head.target.canonical_path()?;
        let rule = self.rules.first_match(&path, head).and_then(|index| self.settings.rules.get(index));
        Ok(rule.map_or(&self.settings.otherwise, |(_, settings)| settings))
    }
}
