//! Figures of the running larder that the workers' counters do not have: connections, refusals, stores, disks, origins.
//!
//! In: what they count themselves, once a second. Out: the same under the names of series, for the history that the admin address shows.
//! Runs on the watch's thread; it takes the locks that a scrape of `/metrics` takes, for as long.

use larder_observe::watch::{FigureSource, Reading, SeriesName};
use larder_origin::OriginError;

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
                reading.level(&SeriesName::of(&scope, "queued"), figures.queued_bytes as f64);
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
                "larder_origin_connections" => reading.level(&of("connections"), value as f64),
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
