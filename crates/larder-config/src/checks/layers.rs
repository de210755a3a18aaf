//! Every rule as it will hold, and who has said what of it.
//!
//! In: a config and its document. Out: for each rule, and for what holds where none matches, its settings, and the places of their keys: in
//! the rule, in its site, or in `[defaults]`.

use crate::document::{Position, Table};
use crate::reading::{At, tables};
use crate::sections::config::Config;
use crate::sections::settings::{Resolved, Settings};

/// The tables that a rule's settings come from, the nearest first.
pub(super) struct Layers<'a> {
    tables: [Option<(&'a Table, At<'a>)>; 3],
    site: (&'a Table, At<'a>),
}

impl Layers<'_> {
    /// Hands the place of the first of `keys` that is said anywhere to `tell`; else that of the site.
    pub(super) fn at<T>(&self, keys: &[&'static str], tell: impl FnOnce(&Position, &At<'_>) -> T) -> T {
        let said = keys.iter().find_map(|key| {
            self.tables.iter().flatten().find_map(|(table, at)| Some((&table.get(key)?.place, *key, *at)))
        });
        match said {
            Some((place, key, at)) => tell(place, &At::Key(&at, key)),
            None => tell(&self.site.0.place, &self.site.1),
        }
    }
}

/// Visits all rules of all sites.
pub(super) fn each_rule(config: &Config, table: &Table, mut visit: impl FnMut(&Resolved, &Layers<'_>)) {
    let top = At::Top;
    let defaults_at = At::Key(&top, "defaults");
    let defaults = tables(table, "defaults").into_iter().next();
    let list = At::Key(&top, "site");
    for (index, (site, site_table)) in config.sites.iter().zip(tables(table, "site")).enumerate() {
        let site_at = At::Item(&list, index);
        let rules_at = At::Key(&site_at, "rule");
        let rules = site.rules.iter().zip(tables(site_table, "rule")).enumerate();
        let rules = rules
            .map(|(index, (rule, table))| (Some(&rule.settings), Some((table, At::Item(&rules_at, index)))));
        for (settings, own) in rules.chain([(None, None)]) {
            let resolved = Settings::resolve(settings, &site.settings, &config.defaults.settings);
            let tables = [own, Some((site_table, site_at)), defaults.map(|table| (table, defaults_at))];
            visit(&resolved, &Layers { tables, site: (site_table, site_at) });
        }
    }
}
