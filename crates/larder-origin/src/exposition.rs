//! The metrics of one origin, by name.
//!
//! In: its counters, its queue and its servers. Out: each number with the name, the help text and the labels under which it is
//! printed.

use std::sync::atomic::Ordering;

use crate::counters::HealthCounters;
use crate::error::OriginError;
use crate::fleet::ServerState;
use crate::state::OriginState;

/// Takes one metric: name, help text, labels, value.
pub type Visit<'a> = dyn FnMut(&'static str, &'static str, &[(&str, &str)], u64) + 'a;

impl OriginState {
    /// Calls `f` with name, help text, labels and value of each. Names that end in `_total` are counters, the others
    /// gauges; the label that names the origin is the caller's to add.
    pub fn for_each(&self, f: &mut Visit<'_>) {
        let counters = self.counters();
        let plain = [
            ("larder_origin_requests_total", "Exchanges begun with the origin.", &counters.requests),
            ("larder_origin_in_flight", "Exchanges whose response has not ended.", &counters.in_flight),
            (
                "larder_origin_connections",
                "Connections open, unused ones included.",
                &counters.connections_open,
            ),
            ("larder_origin_connections_opened_total", "Connections opened.", &counters.connections_opened),
            (
                "larder_origin_connections_reused_total",
                "Exchanges on a used one.",
                &counters.connections_reused,
            ),
            (
                "larder_origin_connections_stale_total",
                "Kept connections found closed, too old, or with bytes nobody asked for.",
                &counters.connections_stale,
            ),
            (
                "larder_origin_connections_given_up_total",
                "Unused connections closed because others were needed and the cap was reached.",
                &counters.connections_given_up,
            ),
            ("larder_origin_retries_total", "Requests sent a second time.", &counters.retries),
            (
                "larder_origin_retries_elsewhere_total",
                "Requests sent to another server although some of them was sent.",
                &counters.retries_elsewhere,
            ),
            (
                "larder_origin_retries_refused_total",
                "Requests that the budget did not let try another server.",
                &counters.retries_refused,
            ),
            ("larder_origin_ejections_total", "Servers left alone for a while.", &counters.ejections),
            ("larder_origin_recoveries_total", "Servers that came back from that.", &counters.recoveries),
            (
                "larder_origin_uploads_stopped_total",
                "Request bodies stopped by an early final answer.",
                &counters.uploads_stopped,
            ),
            ("larder_origin_bodies_broken_total", "Response bodies that broke.", &counters.bodies_broken),
        ];
        for (name, help, value) in plain {
            f(name, help, &[], value.load(Ordering::Relaxed));
        }
        for (token, value) in OriginError::TOKENS.iter().zip(&counters.errors.0) {
            f(
                "larder_origin_errors_total",
                "Exchanges that ended without a response, by reason.",
                &[("reason", token)],
                value.load(Ordering::Relaxed),
            );
        }
        let waiting = u64::try_from(self.resources.queue.waiting()).unwrap_or(u64::MAX);
        f("larder_origin_queue_length", "Requests that wait for others to end.", &[], waiting);
        let servers = self.servers();
        for state in ServerState::ALL {
            let count = servers.iter().filter(|server| server.state == state).count() as u64;
            f("larder_origin_servers", "Addresses of servers.", &[("state", state.token())], count);
        }
        expose_health(&counters.health, f);
    }
}

fn expose_health(health: &HealthCounters, f: &mut Visit<'_>) {
    for (result, value) in [("good", &health.good), ("bad", &health.bad), ("not-asked", &health.unknown)] {
        f(
            "larder_origin_health_checks_total",
            "Servers asked how they are, by what came of it.",
            &[("result", result)],
            value.load(Ordering::Relaxed),
        );
    }
    for (to, value) in [("healthy", &health.became_healthy), ("unhealthy", &health.became_unhealthy)] {
        f(
            "larder_origin_health_changes_total",
            "Servers that health checks have found to be something else than before.",
            &[("to", to)],
            value.load(Ordering::Relaxed),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_counted_under_its_own_reason() {
        let state = OriginState::new();
        state.counters().failed(&OriginError::HeadTooLarge);
        let mut seen = Vec::new();
        state.for_each(&mut |name, _, labels, value| {
            if value > 0 {
                seen.push(format!("{name}{labels:?}"));
            }
        });
        assert_eq!(seen, [r#"larder_origin_errors_total[("reason", "head-too-large")]"#]);
    }
}
