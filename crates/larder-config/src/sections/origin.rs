//! An origin: its servers and how long each step may take.

use std::time::Duration;

use larder_http::message::Scheme;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::path::ExistingFile;
use crate::value::server::Server;

section! {
    /// Where responses come from. NAME is what sites call it.
    pub struct Origin in "`[origins.NAME]`" {
        /// The servers, used in rotation. All have to answer alike.
        servers: Vec<Server> = required, why "There is nothing to guess from.";
        /// How long name look-up, TCP and TLS may take together, per server tried.
        connect_timeout: Duration = "3s", in "1ms" ..= "10m", why "Leaves room for one lost packet (resent after 1 s).";
        /// How long a server may take from the end of the request to the end of its response's head.
        first_byte_timeout: Duration = "60s", in "1ms" ..= "24h", why "Applications have slow pages; what other proxies wait.";
        /// The longest wait between two pieces of a response's content.
        between_bytes_timeout: Duration = "30s", in "1ms" ..= "24h", why "A server that began has no reason to stall.";
        /// How long an unused connection is kept.
        idle: Duration = "4s", in "0s" ..= "1h",
            why "Below the 5 s after which common application servers close theirs, so that larder closes first.";
        /// Unused connections kept per worker and server.
        max_idle: usize = 32, in 0 ..= 10000, why "Enough for bursts, few enough for small servers.";
        /// Trust these certificate authorities (PEM) in place of the system's, for `https` servers.
        ca_file: Option<ExistingFile>, why "The system's authorities are right for public names.";
    }
}

impl Consistent for Origin {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        let servers = At::Key(at, "servers");
        let mut seen = std::collections::HashSet::new();
        for (server, place, index) in reading.located::<Server>(table, "servers") {
            let said = format!("{server} is there twice");
            if !seen.insert(server) {
                let problem = reading.problem(&place, &item(&servers, index), said);
                reading.refuse(problem);
            }
        }
        let is_tls = |server: &Server| matches!(server, Server::Tcp { scheme: Scheme::Https, .. });
        if let Some(node) = table.get("ca_file")
            && !self.servers.is_empty()
            && !self.servers.iter().any(is_tls)
        {
            let problem = reading.problem(&node.place, &At::Key(at, "ca_file"), "it is not used");
            reading.warn(problem.hint("none of the servers is https"));
        }
    }
}

/// An item of a list, or the value that stands for a list of one.
pub(crate) fn item<'a>(list: &'a At<'a>, index: Option<usize>) -> At<'a> {
    index.map_or(*list, |index| At::Item(list, index))
}
