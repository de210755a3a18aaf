//! What is counted of one origin.
//!
//! In: events of exchanges, connections and health checks. Out: numbers, which [`crate::OriginState`] hands to whoever prints
//! them. The atomics are relaxed: each number stands for itself. Connections and exchanges are counted by guards
//! ([`OpenConnection`](crate::room::OpenConnection), [`InFlight`](crate::in_flight::InFlight)), so a gauge comes back however a
//! task ends. Both gauges are zero when nothing is held, and the leak tests rely on that.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::OriginError;
use crate::health::Verdict;

/// Failures by reason, in the order of [`OriginError::TOKENS`].
#[derive(Debug)]
pub(crate) struct Errors(pub(crate) [AtomicU64; OriginError::TOKENS.len()]);

impl Default for Errors {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; OriginError::TOKENS.len()])
    }
}

/// Counters and gauges of one origin.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) connections_open: AtomicU64,
    pub(crate) connections_opened: AtomicU64,
    pub(crate) connections_reused: AtomicU64,
    pub(crate) connections_stale: AtomicU64,
    pub(crate) connections_given_up: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) retries_elsewhere: AtomicU64,
    pub(crate) retries_refused: AtomicU64,
    pub(crate) ejections: AtomicU64,
    pub(crate) recoveries: AtomicU64,
    pub(crate) uploads_stopped: AtomicU64,
    pub(crate) bodies_broken: AtomicU64,
    pub(crate) errors: Errors,
    pub(crate) health: HealthCounters,
}

/// What health checks have found, by all endpoints of one origin.
#[derive(Debug, Default)]
pub(crate) struct HealthCounters {
    pub(crate) good: AtomicU64,
    pub(crate) bad: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) became_healthy: AtomicU64,
    pub(crate) became_unhealthy: AtomicU64,
}

pub(crate) fn bump(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
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

impl HealthCounters {
    pub(crate) fn checked(&self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Good => &self.good,
            Verdict::Bad => &self.bad,
            Verdict::Unknown => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn changed(&self, is_healthy: bool) {
        let counter = if is_healthy { &self.became_healthy } else { &self.became_unhealthy };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
