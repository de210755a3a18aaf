//! One origin: servers that can be told apart and asked, files that belong together, and keys that say something
//! beside the others.

use std::collections::HashSet;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::sections::origin::{Origin, item};
use crate::sections::server::ServerEntry;
use crate::value::words::{Balance, Protocol};

impl Consistent for Origin {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        servers(table, at, reading);
        if let Some(node) = table.get("proxy_protocol")
            && self.proxy_protocol
            && self.protocol != Protocol::Http1
        {
            let said = "connections of HTTP/2 are shared by clients, and PROXY names one client";
            let problem = reading.problem(&node.place, &At::Key(at, "proxy_protocol"), said);
            reading.refuse(problem.hint("with `proxy_protocol`, leave `protocol` at \"http/1.1\""));
        }
        for (one, other) in [("client_cert", "client_key"), ("client_key", "client_cert")] {
            if let (Some(node), None) = (table.get(one), table.get(other)) {
                let problem =
                    reading.problem(&node.place, &At::Key(at, one), format!("there is no {other} beside it"));
                reading.refuse(problem.hint("a certificate is shown with its key"));
            }
        }
        let mut unused = |names: &[&str], hint: &str| {
            for name in names {
                if let Some(node) = table.get(name) {
                    let problem = reading.problem(&node.place, &At::Key(at, name), "it is not used");
                    reading.warn(problem.hint(hint));
                }
            }
        };
        if self.balance != Balance::Hash {
            unused(&["hash_by"], "`balance` is not \"hash\" here");
        }
        if self.max_in_flight.is_none() {
            unused(&["queue", "queue_timeout"], "without `max_in_flight` nobody waits");
        }
        // Of servers that were refused nothing is known, and what depends on them is not judged.
        let servers = &self.servers;
        if servers.is_empty() {
            return;
        }
        if !servers.iter().any(|entry| entry.server.is_tls()) {
            unused(&["ca_file", "client_cert", "client_key", "server_name"], "none of the servers is https");
        }
        let named = servers.iter().any(|entry| entry.server.has_name());
        if !named {
            unused(&["resolve_every", "name_servers"], "none of the servers has a name to look up");
        }
        if servers.len() == 1 && !named {
            unused(&["retry"], "there is no other server");
        }
    }
}

/// No server twice, and one at least that is no backup.
fn servers(table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    let list = At::Key(at, "servers");
    let servers = reading.located::<ServerEntry>(table, "servers");
    if let Some((_, place, _)) = servers.first()
        && servers.iter().all(|(entry, ..)| entry.backup)
    {
        let problem = reading.problem(place, &list, "every server is a backup");
        reading.refuse(problem.hint("a backup stands in for servers that are none: leave `backup` out"));
    }
    let mut seen = HashSet::new();
    for (entry, place, index) in servers {
        let said = format!("{entry} is there twice");
        if !seen.insert(entry.server) {
            let problem = reading.problem(&place, &item(&list, index), said);
            reading.refuse(problem);
        }
    }
}
