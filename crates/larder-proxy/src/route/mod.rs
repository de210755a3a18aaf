//! Which site and which rule a request falls under.
//!
//! In: a request head. Out: the site and the settings of its first matching rule. Everything is compiled when the
//! config is loaded: hosts to one table, all path patterns of a site to one automaton, so that a request pays for
//! the length of its path and not for the number of rules. Rules see a canonical copy of the path; the key and the
//! origin keep the raw bytes.

mod forwarded;
mod matcher;
mod paths;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use larder_http::hosts::HostTable;
use larder_http::message::RequestHead;
use larder_http::target::{ClimbsAboveRoot, Target};

use crate::settings::{KeySettings, RuleSettings, SiteSettings};
pub(crate) use forwarded::{believe_forwarded, client_of, drop_unkeyed_fields};
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
    /// What each rule decides, and last what holds where none matches.
    decided: Box<[Arc<RuleSettings>]>,
    /// Whether a WebSocket was asked for that this site does not pass on.
    pub(crate) has_refused_upgrade: AtomicBool,
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
            let decided = settings.rules.iter().map(|(_, decided)| decided).chain([&settings.otherwise]);
            let decided = decided.cloned().collect();
            Ok(Arc::new(Site { decided, settings, rules, has_refused_upgrade: AtomicBool::new(false) }))
        });
        Ok(Self { hosts, sites: sites.collect::<Result<_, _>>()? })
    }

    /// The site of a host: exact before the longest wildcard before the site without hosts.
    pub(crate) fn site(&self, host: &str) -> Option<(usize, &Arc<Site>)> {
        let index = self.hosts.find(host)?;
        Some((index, self.sites.get(index)?))
    }

    /// All sites, in the order of their numbers.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Arc<Site>> {
        self.sites.iter()
    }

    /// The site of a number that [`Self::site`] gave.
    pub(crate) fn at(&self, index: usize) -> &Arc<Site> {
        &self.sites[index]
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
        let mut forms = vec![target.clone()];
        for settings in &self.decided {
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
        Ok(self.settings_at(self.rule_for(head)?))
    }

    /// The rule that holds for a request.
    ///
    /// # Errors
    /// The path climbs above the root.
    pub(crate) fn rule_for(&self, head: &RequestHead) -> Result<usize, ClimbsAboveRoot> {
        let path = head.target.canonical_path()?;
        Ok(self.rules.first_match(&path, head).unwrap_or(self.decided.len() - 1))
    }

    /// Whether it may depend on the fields of a request which rule holds for it.
    pub(crate) fn asks_for_fields(&self) -> bool {
        self.rules.asks_for_fields()
    }

    /// What the rule of a number that [`Self::rule_for`] gave decides.
    pub(crate) fn settings_at(&self, rule: usize) -> &Arc<RuleSettings> {
        &self.decided[rule]
    }
}
