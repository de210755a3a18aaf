//! Addresses: none twice, and the admin address never open to the network without a token.
//!
//! In: the addresses, and the document for their places. Out: errors, and a warning where tokens cross a network in clear text.

use crate::document::{Position, Table, Value};
use crate::reading::{At, Reading};
use crate::sections::config::Config;
use crate::sections::listen::ListenEntry;
use crate::sections::origin::item;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let listen_at = At::Key(&At::Top, "listen");
    if let Some(node) = table.get("listen")
        && matches!(&node.value, Value::List(items) if items.is_empty())
    {
        reading.refuse_value(node, &listen_at, "at least one address", None);
    }
    let listening = reading.located::<ListenEntry>(table, "listen");
    for (position, (address, place, index)) in listening.iter().enumerate() {
        let mut earlier = listening.iter().take(position);
        let earlier = earlier.find(|(other, ..)| other.address.overlaps(&address.address));
        if let Some((other, other_place, _)) = earlier {
            let said = format!("{address} is taken by {other} ({})", reading.line_of(other_place));
            let problem = reading.problem(place, &item(&listen_at, *index), said);
            reading.refuse(problem);
        }
    }
    let Some(admin) = config.admin.address else { return };
    let (place, is_in_table) = place_of_admin(table);
    let (top, address) = (At::Key(&At::Top, "admin"), At::Key(&At::Key(&At::Top, "admin"), "address"));
    let admin_at = if is_in_table { address } else { top };
    let overlaps = |other: &ListenEntry| other.address.overlaps(&admin.into());
    let taken = match listening.as_slice() {
        [] => config.listen.iter().find(|other| overlaps(other)).copied(),
        listening => listening.iter().map(|(other, ..)| *other).find(overlaps),
    };
    if let Some(other) = taken {
        let problem = reading.problem(&place, &admin_at, format!("{admin} is taken by listen ({other})"));
        reading.refuse(problem.hint("give the admin interface an address of its own, or admin = false"));
    }
    let has_token = matches!(table.get("admin").map(|node| &node.value), Some(Value::Table(admin)) if admin.get("token").is_some());
    if !has_token && !config.admin.hosts.is_empty() {
        let said = "there are hosts, for a site in front of the admin address, and there is no token";
        let problem = reading.problem(&place, &admin_at, said);
        reading.refuse(problem.hint("set token in [admin]: a site forwards requests of any client"));
        return;
    }
    if admin.ip().to_canonical().is_loopback() {
        return;
    }
    if !has_token {
        let said = format!("{admin} can be reached from other machines, and there is no token");
        let problem = reading.problem(&place, &admin_at, said);
        reading.refuse(problem.hint("set token in [admin], or listen on 127.0.0.1"));
        return;
    }
    let said = format!("{admin} can be reached from other machines, and tokens are sent to it in clear text");
    let hint = format!(
        "listen on 127.0.0.1 and reach it by `ssh -L {port}:127.0.0.1:{port} HOST`, or by a site of this larder behind TLS",
        port = admin.port()
    );
    let problem = reading.problem(&place, &admin_at, said);
    reading.warn(problem.hint(hint));
}

/// The place of the admin address, and whether it stands in the table; a default has the place of what is beside it.
fn place_of_admin(table: &Table) -> (Position, bool) {
    let Some(node) = table.get("admin") else {
        return (table.get("listen").map_or(&table.place, |node| &node.place).clone(), false);
    };
    match &node.value {
        Value::Table(admin) => {
            let address = admin.get("address");
            (address.map_or(&node.place, |address| &address.place).clone(), true)
        }
        _ => (node.place.clone(), false),
    }
}
