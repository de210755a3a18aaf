//! Hosts of fragments: a fragment comes from a site of the config, whatever its host is called.
//!
//! A host without a site is a warning and not an error: the site may be in the config of another machine, with the same
//! templates. Until it is here, each include of that host fails.

use crate::document::{Table, Value};
use crate::reading::{At, Reading, tables};
use crate::sections::origin::item;
use crate::value::host::HostPattern;

pub(crate) fn check(table: &Table, reading: &mut Reading<'_>) {
    let sites = tables(table, "site");
    let Some(hosts) = hosts_of(&sites, reading) else { return };
    if let Some(defaults) = tables(table, "defaults").first() {
        check_settings(defaults, &At::Key(&At::Top, "defaults"), &hosts, reading);
    }
    let list = At::Key(&At::Top, "site");
    for (index, site) in sites.into_iter().enumerate() {
        let at = At::Item(&list, index);
        check_settings(site, &at, &hosts, reading);
        let list = At::Key(&at, "rule");
        for (index, rule) in tables(site, "rule").into_iter().enumerate() {
            check_settings(rule, &At::Item(&list, index), &hosts, reading);
        }
    }
}

/// The hosts of all sites; `None` where one of them takes every host.
fn hosts_of(sites: &[&Table], reading: &Reading<'_>) -> Option<Vec<HostPattern>> {
    let mut hosts = Vec::new();
    for site in sites {
        site.get("hosts")?;
        hosts.extend(reading.located::<HostPattern>(site, "hosts").into_iter().map(|(host, ..)| host));
    }
    Some(hosts)
}

fn check_settings(settings: &Table, at: &At<'_>, hosts: &[HostPattern], reading: &mut Reading<'_>) {
    let Some(Value::Table(fragments)) = settings.get("fragments").map(|node| &node.value) else { return };
    let at = At::Key(at, "fragments");
    let at = At::Key(&at, "hosts");
    for (host, place, index) in reading.located::<HostPattern>(fragments, "hosts") {
        if !hosts.iter().any(|of_site| host.overlaps(of_site)) {
            let problem =
                reading.problem(&place, &item(&at, index), format!("no site has the host \"{host}\""));
            reading.warn(
                problem.hint("fragments come from sites of this config alone: add a [[site]] with this host"),
            );
        }
    }
}
