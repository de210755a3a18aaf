//! Figures of the running larder that the workers' counters do not have: connections, refusals, stores, disks, origins.
//!
//! In: what they count themselves, once a second. Out: the same under the names of series, for the history that the admin address shows.
//! Runs on the watch's thread; it takes the locks that a scrape of `/metrics` takes, for as long.

use std::collections::HashMap;

use larder_observe::watch::{FigureSource, Reading, SeriesName};
use larder_observe::{CodeClass, Label};
use larder_origin::{OriginError, ServerReport};
use parking_lot::Mutex;

use super::Insight;

impl FigureSource for Insight {
    fn read(&self, reading: &mut Reading<'_>) {
        self.read_listeners(reading);
        self.read_stores(reading);
        self.read_origins(reading);
    }
}

impl Insight {
    fn read_listeners(&self, reading: &mut Reading<'_>) {
        let listening = self.listen_metrics();
        reading.level(&SeriesName::of_all("connections"), listening.open.value() as f64);
        listening.for_each(&mut |name, _, labels, value| {
            if let ("larder_requests_refused_total", Some((_, reason))) = (name, labels.first()) {
                let more = reading.total(&SeriesName::of_all("refused").word(reason), value) as f64;
                // The parser's refusals are the one result that no worker counts.
                reading.more(&SeriesName::of_all("result").word("refused"), more);
                reading.more(&SeriesName::of_all("requests"), more);
            }
        });
    }

    fn read_stores(&self, reading: &mut Reading<'_>) {
        for (name, store) in &self.view.read().stores {
            let scope = ["store", name.as_str()];
            let of = |measure| SeriesName::of(&scope, measure);
            let usage = store.usage();
            reading.level(&of("bytes"), usage.bytes as f64);
            reading.level(&of("objects"), usage.objects as f64);
            let evicted = [
                ("room", usage.evicted_for_room),
                ("variants", usage.evicted_variants),
                ("idle", usage.evicted_idle),
            ];
            for (word, count) in evicted {
                let more = reading.total(&of("evictions").word(word), count);
                reading.more(&SeriesName::of_all("evictions"), more as f64);
                if word == "room" {
                    reading.mean(&of("evicted_age"), usage.evicted_ages.as_secs_f64(), more);
                }
            }
            reading.total(&of("refused").word("no-room"), usage.refused);
            for figures in store.figures() {
                let path = figures.path.to_string_lossy();
                let scope = ["tier", name.as_str(), &*path];
                reading.level(&SeriesName::of(&scope, "bytes"), figures.bytes as f64);
                reading.level(&SeriesName::of(&scope, "objects"), figures.objects as f64);
                for (word, count) in figures.refused {
                    reading.total(&SeriesName::of(&scope, "refused").word(word), count);
                }
            }
        }
    }

    fn read_origins(&self, reading: &mut Reading<'_>) {
        let view = self.view.read();
        let servers = view
            .origins
            .iter()
            .flat_map(|(name, state)| state.servers().into_iter().map(move |report| (name.as_str(), report)));
        self.servers.read(servers, reading);
        for (name, state) in &view.origins {
            let scope = ["origin", name.as_str()];
            let of = |measure| SeriesName::of(&scope, measure);
            reading.level(&of("in_flight"), state.counters().in_flight() as f64);
            state.for_each(&mut |family, _, labels, value| match family {
                "larder_origin_queue_length" => reading.level(&of("queued"), value as f64),
                "larder_origin_errors_total" => {
                    let mut tokens = OriginError::TOKENS.iter().copied();
                    let Some(word) = tokens.find(|&token| labels.contains(&("reason", token))) else {
                        return;
                    };
                    let more = reading.total(&of("failure").word(word), value) as f64;
                    reading.more(&of("failures"), more);
                    reading.more(&of("requests"), more);
                    reading.more(&SeriesName::of_all("failure").word(word), more);
                }
                _ => {}
            });
        }
    }
}

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
    fn read<'a>(&self, servers: impl Iterator<Item = (&'a str, ServerReport)>, reading: &mut Reading<'_>) {
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
