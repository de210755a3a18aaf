//! The statistics of the running larder, for `/stats` and the dashboard.
//!
//! In: the workers' counters, and what listeners, stores, origins and the log count themselves. Out: one value, gathered when it is asked for. It
//! takes the locks that a scrape of `/metrics` takes, for as long.

use std::net::SocketAddr;

use larder_admin::{
    CheckStats, Counts, Larder as _, ListenerStats, LogStats, RemoteServerStats, ServerStats, Stats,
    TierStats,
};
use larder_config::Cidr;
use larder_observe::{CodeClass, Label as _, octave_percentile};
use larder_origin::{OriginError, ServerReport};

use super::Insight;

impl Insight {
    /// Everything that `/stats` shows.
    pub(super) fn gather_stats(&self) -> Stats {
        let mut stats = Stats::of(&self.metrics.snapshot(), self.health(), self.clock.now().wall);
        let view = self.view.read();
        let listener = |address: &SocketAddr, kind| ListenerStats { address: address.to_string(), kind };
        let clients = view.listeners.iter().map(|(address, scheme)| listener(address, scheme.as_str()));
        stats.listeners =
            clients.chain(view.admin.iter().map(|address| listener(address, "admin"))).collect();
        stats.trusted = view.trusted.iter().map(Cidr::to_string).collect();
        let listening = self.listen_metrics();
        stats.connections = listening.open.value();
        listening.for_each(&mut |name, _, labels, value| {
            if let (true, Some((_, reason))) =
                (name == "larder_requests_refused_total" && value > 0, labels.first())
            {
                stats.refused.insert(reason, value);
            }
        });
        for (name, store) in &view.stores {
            let usage = store.usage();
            let shown = stats.store(name);
            shown.degraded = store.is_degraded();
            shown.tiers = vec![TierStats {
                tier: "memory",
                disk: None,
                state: None,
                bytes: usage.bytes,
                objects: usage.objects,
                max_bytes: usage.max_bytes,
                high_water_bytes: usage.high_water_bytes,
                queued_bytes: None,
                refused: occurred([("no-room", usage.refused)]),
            }];
            for figures in store.figures() {
                shown.tiers.push(TierStats {
                    tier: figures.tier,
                    disk: Some(figures.path.display().to_string()),
                    state: Some(figures.state),
                    bytes: figures.bytes,
                    objects: figures.objects,
                    max_bytes: figures.max_bytes,
                    high_water_bytes: figures.high_water_bytes,
                    queued_bytes: Some(figures.queued_bytes),
                    refused: occurred(figures.refused),
                });
            }
            let evicted = usage.evicted_for_room;
            shown.evicted_age = (evicted > 0).then(|| usage.evicted_ages.as_secs_f64() / evicted as f64);
            shown.evictions = [
                ("room", usage.evicted_for_room),
                ("variants", usage.evicted_variants),
                ("idle", usage.evicted_idle),
            ]
            .into();
        }
        for (name, remote) in &view.remote {
            stats.store(name).servers = remote.reports().into_iter().map(remote_stats).collect();
        }
        for (name, state) in &view.origins {
            let shown = stats.origin(name);
            shown.in_flight = state.counters().in_flight();
            shown.servers = state.servers().into_iter().map(server_stats).collect();
            state.for_each(&mut |name, _, labels, value| {
                if name == "larder_origin_errors_total" && value > 0 {
                    let mut tokens = OriginError::TOKENS.iter().copied();
                    let reason = tokens.find(|&token| labels.contains(&("reason", token)));
                    shown.failures.extend(reason.map(|reason| (reason, value)));
                }
                match name {
                    "larder_origin_queue_length" => shown.queued = value,
                    "larder_origin_connections" => shown.connections = value,
                    _ => {}
                }
            });
            shown.failed = shown.failures.values().sum();
        }
        stats.messages_dropped = self.diagnostics.dropped();
        stats.log = view.log.as_ref().map(|log| LogStats { written: log.written(), dropped: log.dropped() });
        stats
    }
}

fn occurred(counts: impl IntoIterator<Item = (&'static str, u64)>) -> Counts {
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn server_stats(report: ServerReport) -> ServerStats {
    let ServerReport { server, address, weight, backup, state, in_flight, failures, requests, .. } = report;
    let classes = CodeClass::TOKENS.iter().copied().zip(report.classes);
    ServerStats {
        server,
        address,
        state: state.token(),
        weight,
        backup,
        in_flight,
        requests,
        failures,
        by_code_class: occurred(classes),
        body_bytes: report.bytes,
        p50: octave_percentile(&report.heads, 0.5),
        p99: octave_percentile(&report.heads, 0.99),
        check: report
            .check
            .map(|check| CheckStats { seconds_ago: check.ago.as_secs_f64(), result: check.result }),
    }
}

fn remote_stats(report: larder_remote::ServerReport) -> RemoteServerStats {
    let larder_remote::ServerReport { kind, server, is_up, lookups, writes, queued_bytes } = report;
    let state = if is_up { "up" } else { "left-alone" };
    RemoteServerStats {
        kind,
        server,
        state,
        lookups: lookups.into_iter().collect(),
        writes: occurred(writes),
        queued_bytes,
    }
}
