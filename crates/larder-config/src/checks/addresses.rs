//! Addresses: none twice, and the admin interface never open to the network without a token.

use std::net::SocketAddr;

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::sections::config::Config;
use crate::sections::origin::item;

pub(crate) fn check(config: &Config, table: &Table, reading: &mut Reading<'_>) {
    let listen_at = At::Key(&At::Top, "listen");
    if let Some(node) = table.get("listen")
        && matches!(&node.value, Value::List(items) if items.is_empty())
    {
        reading.refuse_value(node, &listen_at, "at least one address", None);
    }
    let listening = reading.located::<SocketAddr>(table, "listen");
    for (position, (address, place, index)) in listening.iter().enumerate() {
        let earlier = listening.iter().take(position).find(|(other, ..)| overlap(*other, *address));
        if let Some((other, other_place, _)) = earlier {
            let said = format!("{address} is taken by {other} ({})", reading.line_of(other_place));
            let problem = reading.problem(place, &item(&listen_at, *index), said);
            reading.refuse(problem);
        }
    }
    let AdminAddress { on: Some(admin), place } = admin(config, table) else {
        return;
    };
    let admin_at = At::Key(&At::Top, "admin");
    let taken = match listening.as_slice() {
        [] => config.listen.iter().find(|other| overlap(**other, admin)).copied(),
        listening => listening.iter().map(|(other, ..)| *other).find(|other| overlap(*other, admin)),
    };
    if let Some(other) = taken {
        let problem = reading.problem(&place, &admin_at, format!("{admin} is taken by listen ({other})"));
        reading.refuse(problem.hint("give the admin interface an address of its own, or admin = false"));
    }
    if !admin.ip().to_canonical().is_loopback() && table.get("admin_token").is_none() {
        let said = format!("{admin} can be reached from other machines, and there is no admin_token");
        let problem = reading.problem(&place, &admin_at, said);
        reading.refuse(problem.hint("set admin_token, or listen on 127.0.0.1"));
    }
}

/// The admin address with its place; a default has the place of the document.
struct AdminAddress {
    on: Option<SocketAddr>,
    place: crate::document::Position,
}

fn admin(config: &Config, table: &Table) -> AdminAddress {
    let place = table.get("admin").or_else(|| table.get("listen")).map_or(&table.place, |node| &node.place);
    AdminAddress { on: config.admin.0, place: place.clone() }
}

/// Whether two listeners cannot both have their address. Port 0 is never the same twice.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let same_family = one.is_ipv4() == other.is_ipv4();
    let same_ip = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && same_family && same_ip
}
