//! What all workers share of one origin: counters, gauges, the cap on connections, and what is known of its servers.
//!
//! In: events of exchanges and connections. Out: numbers, handed one by one to whoever prints them. A connection and
//! an exchange are counted by guards, so a gauge comes back however a task ends; both gauges are zero when nothing is
//! held, which the leak tests rely on. The atomics are relaxed: each number stands for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::connections::Connections;
use crate::error::OriginError;
use crate::fleet::{Roster, Seat, ServerReport, ServerState, Ticket};
use crate::health::HealthCounters;
use crate::room::Room;

/// Takes one metric: name, help text, labels, value.
pub type Visit<'a> = dyn FnMut(&'static str, &'static str, &[(&str, &str)], u64) + 'a;

/// Failures by reason, in the order of [`OriginError::TOKENS`].
#[derive(Debug)]
struct Errors([AtomicU64; OriginError::TOKENS.len()]);

impl Default for Errors {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; OriginError::TOKENS.len()])
    }
}

/// Counters and gauges of one origin.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: AtomicU64,
    in_flight: AtomicU64,
    connections_open: AtomicU64,
    connections_opened: AtomicU64,
    connections_reused: AtomicU64,
    connections_stale: AtomicU64,
    connections_given_up: AtomicU64,
    retries: AtomicU64,
    retries_elsewhere: AtomicU64,
    retries_refused: AtomicU64,
    ejections: AtomicU64,
    recoveries: AtomicU64,
    uploads_stopped: AtomicU64,
    bodies_broken: AtomicU64,
    errors: Errors,
    pub(crate) health: HealthCounters,
    /// Here for its gauges.
    roster: Roster,
}

fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Metrics {
    /// Calls `f` with name, help text, labels and value of each. Names that end in `_total` are counters, the others
    /// gauges; the label that names the origin is the caller's to add.
    pub fn for_each(&self, f: &mut Visit<'_>) {
        let plain = [
            ("larder_origin_requests_total", "Exchanges begun with the origin.", &self.requests),
            ("larder_origin_in_flight", "Exchanges whose response has not ended.", &self.in_flight),
            ("larder_origin_connections", "Connections open, unused ones included.", &self.connections_open),
            ("larder_origin_connections_opened_total", "Connections opened.", &self.connections_opened),
            ("larder_origin_connections_reused_total", "Exchanges on a used one.", &self.connections_reused),
            (
                "larder_origin_connections_stale_total",
                "Kept connections found closed, too old, or with bytes nobody asked for.",
                &self.connections_stale,
            ),
            (
                "larder_origin_connections_given_up_total",
                "Unused connections closed because others were needed and the cap was reached.",
                &self.connections_given_up,
            ),
            ("larder_origin_retries_total", "Requests sent a second time.", &self.retries),
            (
                "larder_origin_retries_elsewhere_total",
                "Requests sent to another server although some of them was sent.",
                &self.retries_elsewhere,
            ),
            (
                "larder_origin_retries_refused_total",
                "Requests that the budget did not let try another server.",
                &self.retries_refused,
            ),
            ("larder_origin_ejections_total", "Servers left alone for a while.", &self.ejections),
            ("larder_origin_recoveries_total", "Servers that came back from that.", &self.recoveries),
            (
                "larder_origin_uploads_stopped_total",
                "Request bodies stopped by an early final answer.",
                &self.uploads_stopped,
            ),
            ("larder_origin_bodies_broken_total", "Response bodies that broke.", &self.bodies_broken),
        ];
        for (name, help, value) in plain {
            f(name, help, &[], value.load(Ordering::Relaxed));
        }
        for (token, value) in OriginError::TOKENS.iter().zip(&self.errors.0) {
            f(
                "larder_origin_errors_total",
                "Exchanges that ended without a response, by reason.",
                &[("reason", token)],
                value.load(Ordering::Relaxed),
            );
        }
        let waiting = u64::try_from(self.roster.queue.waiting()).unwrap_or(u64::MAX);
        f("larder_origin_queue_length", "Requests that wait for others to end.", &[], waiting);
        let servers = self.roster.report();
        for state in ServerState::ALL {
            let count = servers.iter().filter(|server| server.state == state).count() as u64;
            f("larder_origin_servers", "Addresses of servers.", &[("state", state.token())], count);
        }
        self.health.for_each(f);
    }

    /// Connections open in the whole process.
    pub fn connections_open(&self) -> u64 {
        self.connections_open.load(Ordering::Relaxed)
    }

    /// Exchanges whose response, or tunnel, has not ended.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn reused(&self) {
        bump(&self.connections_reused);
    }

    pub(crate) fn stale(&self) {
        bump(&self.connections_stale);
    }

    pub(crate) fn gave_up(&self) {
        bump(&self.connections_given_up);
    }

    pub(crate) fn retried(&self) {
        bump(&self.retries);
    }

    pub(crate) fn retried_elsewhere(&self) {
        bump(&self.retries_elsewhere);
    }

    pub(crate) fn retry_refused(&self) {
        bump(&self.retries_refused);
    }

    pub(crate) fn ejected(&self) {
        bump(&self.ejections);
    }

    pub(crate) fn recovered(&self) {
        bump(&self.recoveries);
    }

    pub(crate) fn upload_stopped(&self) {
        bump(&self.uploads_stopped);
    }

    pub(crate) fn body_broken(&self) {
        bump(&self.bodies_broken);
    }

    pub(crate) fn failed(&self, error: &OriginError) {
        let place = OriginError::TOKENS.iter().position(|token| *token == error.token());
        if let Some(counter) = place.and_then(|place| self.errors.0.get(place)) {
            bump(counter);
        }
    }
}

/// One configured origin as the whole process sees it. Made once, handed to each worker's [`crate::Origin`].
#[derive(Debug, Default)]
pub struct Shared {
    /// Counters and gauges.
    pub metrics: Metrics,
    pub(crate) room: Room,
    pub(crate) all: Arc<Connections>,
}

impl Shared {
    /// Counters at zero.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// The same for an origin whose connections count among those of others.
    pub fn among(all: &Arc<Connections>) -> Arc<Self> {
        let shared = Arc::new(Self { all: Arc::clone(all), ..Self::default() });
        all.join(&shared);
        shared
    }

    /// Every server's addresses and how each is doing; those that are gone as long as they have requests in flight.
    pub fn servers(&self) -> Vec<ServerReport> {
        self.metrics.roster.report()
    }

    pub(crate) fn roster(&self) -> &Roster {
        &self.metrics.roster
    }

    /// Counts one more open connection, unless there are `max` already, or too many of all origins.
    pub(crate) fn open(self: &Arc<Self>, max: usize) -> Result<OpenConnection, Full> {
        if !self.all.open() {
            return Err(Full::All);
        }
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        let more = |open| (open < max).then_some(open + 1);
        if self.metrics.connections_open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            self.all.close();
            return Err(Full::Origin);
        }
        bump(&self.metrics.connections_opened);
        Ok(OpenConnection(self.clone()))
    }

    /// Counts one more exchange.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        bump(&self.metrics.requests);
        bump(&self.metrics.in_flight);
        InFlight { shared: self.clone(), seat: None, ticket: None }
    }
}

/// Which cap is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The origin's own.
    Origin,
    /// That of all origins.
    All,
}

/// Lives in the socket's owner and ends with it.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Shared>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.metrics.connections_open.fetch_sub(1, Ordering::Relaxed);
        self.0.all.close();
        self.0.room.free();
    }
}

/// Lives from the request to the end of the response's body or tunnel, and so does what it holds.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<Shared>,
    seat: Option<Seat>,
    ticket: Option<Ticket>,
}

impl InFlight {
    /// Counts against the origin's cap from now on, where there is one.
    pub(crate) fn sit(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// A tunnel counts against the origin's cap no more.
    pub(crate) fn leave_seat(&mut self) {
        self.seat = None;
    }

    /// Counts at its endpoint.
    pub(crate) fn stay(&mut self, ticket: Ticket) {
        self.ticket = Some(ticket);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shared.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn gauges_return_to_zero_and_the_cap_holds() {
        let shared = Shared::new();
        let one = shared.open(1).unwrap();
        assert!(matches!(shared.open(1), Err(Full::Origin)));
        let exchange = shared.begin();
        assert_eq!((shared.metrics.connections_open(), shared.metrics.in_flight()), (1, 1));
        drop((one, exchange));
        assert_eq!((shared.metrics.connections_open(), shared.metrics.in_flight()), (0, 0));
        assert!(shared.open(1).is_ok());
    }

    #[test]
    fn every_error_is_counted_under_its_own_reason() {
        let metrics = Metrics::default();
        metrics.failed(&OriginError::HeadTooLarge);
        let mut seen = Vec::new();
        metrics.for_each(&mut |name, _, labels, value| {
            if value > 0 {
                seen.push(format!("{name}{labels:?}"));
            }
        });
        assert_eq!(seen, [r#"larder_origin_errors_total[("reason", "head-too-large")]"#]);
    }
}
