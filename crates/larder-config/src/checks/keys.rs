//! Keys: what a rule tells apart by fields or cookies, and sends to the origin in other words, the cache tells apart.
//!
//! A rule that matches on a field and changes the request makes the origin answer differently by that field. Where the
//! field is not in the key, nor what it was changed to, one client's answer is stored for all others. A warning and not
//! an error: the change may be one that the origin ignores.

use crate::document::Table;
use crate::reading::{At, Reading, tables};
use crate::sections::config::Config;
use crate::sections::settings::Settings;
use crate::value::words::CacheMode;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let list = At::Key(&At::Top, "site");
    let site_tables = tables(table, "site");
    for (site_index, (site, site_table)) in config.sites.iter().zip(&site_tables).enumerate() {
        let site_at = At::Item(&list, site_index);
        let list = At::Key(&site_at, "rule");
        for (index, (rule, rule_table)) in site.rules.iter().zip(tables(site_table, "rule")).enumerate() {
            let Some(node) = rule_table.get("request") else {
                continue;
            };
            let settings = Settings::resolve(Some(&rule.settings), &site.settings, &config.defaults.settings);
            if settings.cache == CacheMode::Off || settings.request.is_empty() {
                continue;
            }
            let key = &settings.key;
            let edits = &settings.request;
            let mut edited = edits.set.iter().map(|(name, _)| name).chain(&edits.remove);
            if edited.all(|name| key.fields.contains(name)) {
                continue;
            }
            let fields = rule.header.iter().filter(|(name, _)| !key.fields.contains(name));
            let cookies = rule.cookie.iter().filter(|(name, _)| !key.cookies.contains(name));
            let fields = fields.map(|(name, _)| format!("the field \"{name}\""));
            let missing: Vec<_> =
                fields.chain(cookies.map(|(name, _)| format!("the cookie \"{name}\""))).collect();
            if !missing.is_empty() {
                let said = format!("it depends on {}, which the key does not hold", missing.join(" and "));
                let at = At::Item(&list, index);
                let problem = reading.problem(&node.place, &At::Key(&at, "request"), said);
                reading.warn(
                    problem.hint("answers to changed and unchanged requests share one place: extend `key`"),
                );
            }
        }
    }
}
