//! What servers of origins have counted until the last reading, so that what is new can be told.
//!
//! In: the reports of all servers, once a second. Out: figures by origin and address, and their sums.

use std::collections::HashMap;

use larder_observe::watch::{Reading, SeriesName};
use larder_observe::{CodeClass, Label};
use larder_origin::ServerReport;
use parking_lot::Mutex;

/// What servers have counted until the last reading, by origin, server and address. One address may be that of several servers, and of one that
/// is leaving: their sums would rise and fall with who is there, so what is new is told for each of them.
#[derive(Debug, Default)]
pub(super) struct ServerTotals(Mutex<HashMap<(String, String, String), Totals>>);

/// Counters of one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    requests: u64,
    failures: u64,
    bytes: u64,
    classes: [u64; 5],
}

impl ServerTotals {
    /// Tells what is new of all servers of some origins, and forgets those that are gone.
    pub(super) fn read<'a>(
        &self,
        servers: impl Iterator<Item = (&'a str, ServerReport)>,
        reading: &mut Reading<'_>,
    ) {
        let mut before = self.0.lock();
        let mut now = HashMap::with_capacity(before.len());
        for (origin, report) in servers {
            let ServerReport { server, address, requests, failures, classes, bytes, .. } = report;
            let totals = Totals { requests, failures, bytes, classes };
            let key = (origin.to_owned(), server, address);
            tell_more((origin, &key.2), before.get(&key).copied().unwrap_or_default(), totals, reading);
            now.insert(key, totals);
        }
        *before = now;
    }
}

/// Addresses of one server are told apart: one of them may be the slow one.
fn tell_more((origin, address): (&str, &str), before: Totals, now: Totals, reading: &mut Reading<'_>) {
    let scope = ["server", origin, address];
    let of = |measure| SeriesName::of(&scope, measure);
    let more = |now: u64, before: u64| now.saturating_sub(before) as f64;
    reading.more(&of("requests"), more(now.requests, before.requests));
    reading.more(&of("failures"), more(now.failures, before.failures));
    for ((class, now), before) in CodeClass::TOKENS.iter().zip(now.classes).zip(before.classes) {
        reading.more(&of("status").word(class), more(now, before));
    }
    let bytes = more(now.bytes, before.bytes);
    for name in [of("bytes"), SeriesName::of(&["origin", origin], "bytes"), SeriesName::of_all("bytes_in")] {
        reading.more(&name, bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use larder_http::time::{Now, WallTime};
    use larder_observe::tap::Tap;
    use larder_observe::watch::{FigureSource, Watch, WatchSettings};
    use larder_observe::{Metrics, Vocabulary};
    use larder_origin::{HEAD_TIMES, ServerState};

    use super::*;

    fn report(server: &str, requests: u64) -> ServerReport {
        ServerReport {
            server: server.to_owned(),
            address: "127.0.0.1:80".to_owned(),
            weight: 1,
            backup: false,
            state: ServerState::Up,
            in_flight: 0,
            failures: 0,
            requests,
            classes: [0, requests, 0, 0, 0],
            heads: [0; HEAD_TIMES],
            bytes: requests * 10,
            check: None,
        }
    }

    struct Servers(ServerTotals, Mutex<Vec<ServerReport>>);

    impl FigureSource for Servers {
        fn read(&self, reading: &mut Reading<'_>) {
            self.0.read(self.1.lock().iter().map(|report| ("app", report.clone())), reading);
        }
    }

    #[test]
    fn servers_at_one_address_are_counted_each_for_itself() {
        let metrics = Arc::new(Metrics::new(1, Vocabulary::default(), WallTime(0), "1"));
        let watch = Watch::new(metrics, Arc::new(Tap::new(1)), WatchSettings::default());
        let servers = Servers(ServerTotals::default(), Mutex::default());
        let mut now = Now { wall: WallTime(0), monotonic: std::time::Duration::from_secs(5) };
        let mut tick = |reports: Vec<ServerReport>| {
            *servers.1.lock() = reports;
            watch.tick(now, &servers);
            now = now.later(std::time::Duration::from_secs(1));
            let tick =
                watch.newest().map(|tick| serde_json::from_slice::<serde_json::Value>(tick.json()).unwrap());
            tick.map(|tick| {
                (
                    tick["values"]["bytes_in"].clone(),
                    tick["values"]["server:app:127.0.0.1%3A80:requests"].clone(),
                )
            })
        };
        let (a, b) = ("http://localhost:80", "http://127.0.0.1:80");
        assert_eq!(tick(vec![report(a, 1000), report(b, 10)]), None);
        let none = (serde_json::Value::Null, serde_json::Value::Null);
        assert_eq!(tick(vec![report(a, 1000), report(b, 10)]), Some(none.clone()));
        assert_eq!(tick(vec![report(b, 12), report(a, 1003)]), Some((50.into(), 5.into())));
        assert_eq!(tick(vec![report(b, 12)]), Some(none), "one is gone");
        assert_eq!(tick(vec![report(b, 12), report(a, 4)]), Some((40.into(), 4.into())), "and begins anew");
    }
}
