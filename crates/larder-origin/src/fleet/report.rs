//! The servers of an origin as an operator sees them.
//!
//! In: endpoints and their records. Out: plain values for the admin API, `larder explain` and metrics, taken one after
//! another and not at one instant. The words for states are fixed, because dashboards are built on them.

use std::fmt;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::answers::{CheckReport, HEAD_TIMES};
use super::record::EndpointRecord;
use crate::place::Place;
use crate::settings::ServerAddress;

/// One address of one server, at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// As configured: `http://app.example:80`.
    pub server: String,
    /// Where it is reached: `192.0.2.1:80`, `unix:/run/app.sock`.
    pub address: String,
    /// Its full share beside the others'; 0 once it drains.
    pub weight: u32,
    /// Whether it is asked only while others cannot be: configured so, or of a lower priority in DNS.
    pub backup: bool,
    /// How it is doing.
    pub state: ServerState,
    /// Requests whose response has not ended.
    pub in_flight: u64,
    /// Requests it failed since it is known.
    pub failures: u64,
    /// Requests it was given since it is known, those in flight included.
    pub requests: u64,
    /// Final heads by class of status code, 1xx to 5xx.
    pub classes: [u64; 5],
    /// Final heads by time from the request that was sent; the upper bounds are those of [`head_time_bound`](super::head_time_bound).
    pub heads: [u64; HEAD_TIMES],
    /// Bytes of content that it sent.
    pub bytes: u64,
    /// The last health check, where there was one.
    pub check: Option<CheckReport>,
}

/// How a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerState {
    /// Takes its share.
    Up,
    /// Takes less than its share, because it came (back) a short while ago.
    SlowStart,
    /// Failed too often: takes nothing, or one request that finds out.
    Ejected,
    /// Active checks say that it cannot take requests.
    Unhealthy,
    /// Vanished from DNS or from the config: takes nothing new.
    Draining,
}

impl ServerState {
    /// Every state, for metrics.
    pub const ALL: [Self; 5] = [Self::Up, Self::SlowStart, Self::Ejected, Self::Unhealthy, Self::Draining];

    /// A fixed word for reports and metrics.
    pub fn token(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SlowStart => "slow-start",
            Self::Ejected => "ejected",
            Self::Unhealthy => "unhealthy",
            Self::Draining => "draining",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

impl ServerReport {
    pub(super) fn new(
        server: &ServerAddress,
        place: &Place,
        record: &EndpointRecord,
        weight: u32,
        backup: bool,
        state: ServerState,
    ) -> Self {
        Self {
            server: server.to_string(),
            address: place.to_string(),
            weight,
            backup,
            state,
            in_flight: record.in_flight.load(Ordering::Relaxed),
            failures: record.failures.load(Ordering::Relaxed),
            requests: record.requests.load(Ordering::Relaxed),
            classes: record.answers.classes(),
            heads: record.answers.heads(),
            bytes: record.answers.bytes(),
            check: record.answers.check(Instant::now()),
        }
    }
}
