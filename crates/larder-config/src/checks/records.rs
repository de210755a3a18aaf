//! Stores whose responses larders share, and the fleet that they make: it has one server.
//!
//! In: the stores and the fleet. Out: errors where the fleet's server is not said, or could be one of several, and where there are more
//! such stores than one larder takes.

use std::collections::BTreeSet;

use crate::document::Table;
use crate::reading::{At, Reading, tables};
use crate::sections::config::Config;

/// The most stores in Redis: each has connections and a thread of its own.
const STORES_MAX: usize = 8;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let said = |name: &str| table.get(name).map(|node| node.place.clone());
    let servers: BTreeSet<String> =
        config.stores.iter().filter_map(|(_, store)| Some(store.records()?.server.to_string())).collect();
    let has_own = config.fleet.as_ref().is_some_and(|fleet| fleet.redis.is_some());
    if let Some(place) = said("fleet")
        && config.fleet.is_some()
        && config.server_of_fleet().is_none()
        && servers.is_empty()
    {
        let problem = reading.problem(&place, &At::Key(&At::Top, "fleet"), "missing key \"redis\"");
        reading.refuse(problem.hint(
            "no store shares its responses: say where the purges lie: fleet = { redis = \"redis://HOST\" }",
        ));
    }
    let stores_at = At::Key(&At::Top, "stores");
    let of_store = |name: &str| {
        let stores = tables(table, "stores");
        let entry = stores.iter().flat_map(|stores| &stores.entries).find(|entry| entry.name == name);
        entry.map(|entry| entry.node.place.clone())
    };
    let with_records: Vec<&str> = config
        .stores
        .iter()
        .filter(|(_, store)| store.records().is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    if servers.len() > 1
        && !has_own
        && let Some((name, place)) = with_records.last().and_then(|name| Some((*name, of_store(name)?)))
    {
        let at = At::Key(&stores_at, name);
        let said = format!("the stores have {} servers, and the fleet has one", servers.len());
        let problem = reading.problem(&place, &At::Key(&at, "redis"), said);
        let servers: Vec<String> = servers.into_iter().collect();
        let hint = format!("say where its purges lie: [fleet] redis, one of {}", servers.join(", "));
        reading.refuse(problem.hint(hint));
    }
    let in_redis: Vec<&str> = config
        .stores
        .iter()
        .filter(|(_, store)| store.redis.is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    if let Some(name) = in_redis.get(STORES_MAX)
        && let Some(place) = of_store(name)
    {
        let at = At::Key(&stores_at, name);
        let said = format!("there are {} stores in Redis, and {STORES_MAX} at most", in_redis.len());
        let problem = reading.problem(&place, &At::Key(&at, "redis"), said);
        reading.refuse(problem);
    }
}
