//! How servers are asked whether they are well, beside the requests of clients.

use std::time::Duration;

use crate::document::{Table, Value};
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::probe::{ProbeHost, ProbeTarget};
use crate::value::statuses::StatusRange;

section! {
    /// Health checks: a GET to every server, again and again, on a connection of its own. A server that fails them gets
    /// no requests; where no server is well, requests are answered from what is stored, or 502.
    pub struct Health in "`[origins.NAME.health]`" {
        /// What is asked for.
        path: ProbeTarget = required, why "Only the application knows what shows that it is well.";
        /// The host that is asked for.
        host: Option<ProbeHost> = ("the server's own name"), why "Applications that serve by name may need one that they know.";
        /// Statuses that mean that the server is well.
        status: Vec<StatusRange> = ["200-399"], why "A redirect, to a login say, shows that somebody is there.";
        /// How long from one check of a server to its next.
        every: Duration = "5s", in "100ms" ..= "1h", why "Soon enough to spare clients, too seldom to be noticed as load.";
        /// How long a check may take, from connecting to the end of the head.
        timeout: Duration = "2s", in "10ms" ..= "10m", why "A page that is made to be asked for is quick, or all is not well.";
        /// How many checks in a row have to succeed before a server gets requests again.
        healthy: u32 = 2, in 1 ..= 100, why "One success may be the last one before the next crash.";
        /// How many checks in a row have to fail before it gets none.
        unhealthy: u32 = 3, in 1 ..= 100, why "A lost packet or a pause of the collector is no outage.";
    }
}

impl Consistent for Health {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if let Some(node) = table.get("status")
            && matches!(&node.value, Value::List(items) if items.is_empty())
        {
            reading.refuse_value(node, &At::Key(at, "status"), "at least one status", None);
        }
    }
}
