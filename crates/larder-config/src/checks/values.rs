//! Keys of values in memcached and Redis: they have to tell apart what the cache tells apart.
//!
//! In: each store with values, and every rule that uses it. Out: errors where a stranger could choose what others get, and warnings where
//! values are shared or not looked up. A value that larder writes has to belong to one host: a name in the key, or one exact host for
//! the whole store. What only applications write is theirs to name, and is warned about.

use std::collections::BTreeSet;

use super::layers::each_rule;
use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, tables};
use crate::sections::config::Config;
use crate::sections::settings::Resolved;
use crate::sections::site::Site;
use crate::sections::values::ValueSettings;
use crate::value::name::Name;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let stores_at = At::Key(&At::Top, "stores");
    for entry in tables(table, "stores").into_iter().flat_map(|stores| &stores.entries) {
        let named = config.stores.iter().find(|(name, _)| name.as_str() == entry.name);
        let (Some((name, store)), Value::Table(store_table)) = (named, &entry.node.value) else { continue };
        let Some((table_key, values)) = store.values() else { continue };
        let Some(node) = store_table.get(table_key) else { continue };
        let store_at = At::Key(&stores_at, &entry.name);
        of_store((name, values), (node, &At::Key(&store_at, table_key)), config, reading);
        of_rules((name, table_key, values), config, table, reading);
    }
}

/// Whether the hosts that share a store have keys of their own where they need them.
fn of_store(
    (name, values): (&Name, &ValueSettings),
    (node, at): (&Node, &At<'_>),
    config: &Config,
    reading: &mut Reading<'_>,
) {
    let said = |key: &str| match &node.value {
        Value::Table(table) => table.get(key).unwrap_or(node).place.clone(),
        _ => node.place.clone(),
    };
    let has_parts = values.key.cookies().next().is_some() || values.key.fields().next().is_some();
    if values.write && has_parts {
        let problem = reading.problem(
            &said("key"),
            &At::Key(at, "key"),
            "larder cannot write under a key with cookies or fields",
        );
        let hint = "no invalidation of a URL could name its values: leave them out, or let the application write alone";
        reading.refuse(problem.hint(hint));
    }
    if values.key.has_host() {
        return;
    }
    let users: Vec<&Site> = config.sites.iter().filter(|site| config.site_uses(site, name)).collect();
    let is_open = users
        .iter()
        .any(|site| site.hosts.is_empty() || site.hosts.iter().any(|host| host.as_str().starts_with("*.")));
    let hosts: BTreeSet<&str> = users.iter().flat_map(|site| &site.hosts).map(|host| host.as_str()).collect();
    let problem = match (values.write, is_open, hosts.len()) {
        (true, true, _) => {
            "larder writes here for every host that a client names, and the key does not hold the host"
        }
        (_, _, 2..) => "several hosts share the values, and the key does not hold the host",
        _ => return,
    };
    let problem = reading.problem(&said("key"), &At::Key(at, "key"), problem);
    let hint = "add {host}: what one host wrote would be given to visitors of another";
    match values.write {
        true => reading.refuse(problem.hint(hint)),
        false => reading.warn(problem.hint(hint)),
    }
}

/// Warns where a rule's key has not the same cookies and fields, at whatever says its key.
fn of_rules(
    (name, table_key, values): (&Name, &'static str, &ValueSettings),
    config: &Config,
    table: &Table,
    reading: &mut Reading<'_>,
) {
    each_rule(config, table, |resolved, layers| {
        if !resolved.uses(name) || is_same(resolved, values) {
            return;
        }
        // What says the key, or else what uses the store.
        layers.at(&["key", "store"], |place, at| {
            let said = format!("values of the store \"{name}\" are not looked up here");
            let problem = reading.problem(place, at, said);
            let problem = problem.hint(format!(
                "the cookies and fields of `key` and those of the store's {table_key}.key have to be the same"
            ));
            if !reading.warnings.contains(&problem) {
                reading.warn(problem);
            }
        });
    });
}

fn is_same(resolved: &Resolved, values: &ValueSettings) -> bool {
    let (key, own) = (&resolved.key, &values.key);
    let cookies = own.cookies().all(|name| key.cookies.contains(name));
    let fields = own.fields().all(|name| key.fields.contains(name));
    cookies
        && fields
        && key.cookies.iter().all(|keyed| own.cookies().any(|name| name == keyed))
        && key.fields.iter().all(|keyed| own.fields().any(|name| name == keyed))
}
