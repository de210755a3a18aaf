//! How long a server that fails is left alone.

use std::time::Duration;

use crate::document::Table;
use crate::reading::{At, Reading};
use crate::schema::Consistent;
use crate::schema::section::section;
use crate::value::duration::print_duration;

section! {
    /// How long a server that fails is left alone. A failure is no connection, a connection that closed before the
    /// response's head, no head in time, an answer that is not HTTP, or a status that `retry.on` names. When all servers
    /// are left alone, the one whose time ends first is asked all the same.
    pub struct Ejection in "`[origins.NAME.ejection]`" {
        /// How many failures in a row it takes; 0 never leaves a server alone.
        failures: u32 = 5, in 0 ..= 1000, why "One failure is chance; five without an answer between them are not.";
        /// How long the first time. It is doubled each time in a row; after it one request at a time tries the server.
        time: Duration = "1s", in "10ms" ..= "1h", why "Long enough for a restart to begin, short enough to go unnoticed.";
        /// How long at most.
        max_time: Duration = "30s", in "10ms" ..= "24h", why "A server that is back is found within half a minute.";
    }
}

impl Consistent for Ejection {
    fn check(&self, table: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
        if self.failures == 0 {
            for name in ["time", "max_time"] {
                if let Some(node) = table.get(name) {
                    let problem = reading.problem(&node.place, &At::Key(at, name), "it is not used");
                    reading.warn(problem.hint("`failures` is 0: no server is left alone"));
                }
            }
            return;
        }
        let named = ["max_time", "time"].into_iter().find_map(|name| Some((name, table.get(name)?)));
        if let Some((name, node)) = named.filter(|_| self.time > self.max_time) {
            let (time, max_time) = (print_duration(self.time), print_duration(self.max_time));
            let said = format!("time ({time}) is longer than max_time ({max_time})");
            let problem = reading.problem(&node.place, &At::Key(at, name), said);
            reading.refuse(problem);
        }
    }
}

impl Default for Ejection {
    fn default() -> Self {
        crate::schema::Fallback::Absent.value()
    }
}
