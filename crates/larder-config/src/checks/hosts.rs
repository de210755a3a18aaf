//! Hosts: each belongs to one site, and at most one site takes all the others.

use std::collections::HashMap;

use crate::document::Table;
use crate::reading::{At, Reading, tables};
use crate::sections::origin::item;
use crate::value::host::HostPattern;

pub(crate) fn check(table: &Table, reading: &mut Reading<'_>) {
    let mut taken = HashMap::new();
    let mut for_all_others = None;
    let list = At::Key(&At::Top, "site");
    for (site_index, site) in tables(table, "site").into_iter().enumerate() {
        let site_at = At::Item(&list, site_index);
        let hosts_at = At::Key(&site_at, "hosts");
        if site.get("hosts").is_none()
            && let Some((first, place)) = for_all_others.replace((site_index, site.place.clone()))
        {
            let said = format!("site[{first}] ({}) has every host already", reading.line_of(&place));
            let problem = reading.problem(&site.place, &hosts_at, said);
            reading.refuse(problem.hint("at most one site leaves `hosts` out"));
        }
        for (host, place, index) in reading.located::<HostPattern>(site, "hosts") {
            let host_text = host.to_string();
            if let Some((first, first_place)) = taken.insert(host, (site_index, place.clone())) {
                let said =
                    format!("\"{host_text}\" belongs to site[{first}] ({})", reading.line_of(&first_place));
                let problem = reading.problem(&place, &item(&hosts_at, index), said);
                reading.refuse(problem.hint("a host belongs to one site"));
            }
        }
    }
}
