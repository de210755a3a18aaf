//! One address of one server: where requests are sent, how it is doing, how many are there now.
//!
//! In: requests that were given to it, their outcomes, answers to health checks. Out: whether it can be asked, and the
//! numbers of a report. The [`EndpointRecord`] is what outlives a reload and a short absence from DNS; everything else follows
//! from the settings in force and is made anew with them, but for its place among the others, which DNS may change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use larder_http::authority::Authority;
use tokio::time::Instant;

use super::balance::Candidate;
use super::condition::{Change, Checks, Part, Use};
use super::record::EndpointRecord;
use super::tag::ServerTag;
use crate::connect::Dial;
use crate::counters::Counters;
use crate::health::Verdict;
use crate::place::Place;
use crate::settings::{OriginSettings, ServerAddress};

/// Numbers endpoints in this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// An endpoint's place among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// In thousandths.
    pub(super) weight: u64,
    /// Who is asked first: 0. Others only while nobody of a lower level can be.
    pub(super) level: u32,
}

/// What an endpoint is made from.
pub(super) struct Parts {
    pub(super) server: Arc<ServerAddress>,
    pub(super) place: Place,
    /// For TLS; see [`ResolvedTarget::host`](crate::resolve::ResolvedTarget).
    pub(super) host: Arc<str>,
    pub(super) dial: Arc<Dial>,
    pub(super) rank: Rank,
    pub(super) record: Arc<EndpointRecord>,
    pub(super) settings: Arc<OriginSettings>,
    pub(super) counters: Arc<Counters>,
}

/// Endpoints of one fleet at one moment.
pub(crate) type Members = Arc<[Arc<Endpoint>]>;

/// An address of a server under the settings in force.
pub(crate) struct Endpoint {
    parts: Parts,
    id: u64,
    /// The server as a text.
    server_name: Arc<str>,
    tag: ServerTag,
    /// The [`Rank`], which changes with what a service record says. Each number stands for itself.
    weight: AtomicU64,
    level: AtomicU32,
    is_retired: AtomicBool,
}

impl Endpoint {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let tag = ServerTag::new(&parts.server, &parts.place);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let server_name = parts.server.to_string().into();
        let (weight, level) = (AtomicU64::new(parts.rank.weight), AtomicU32::new(parts.rank.level));
        Arc::new(Self { parts, id, server_name, tag, weight, level, is_retired: AtomicBool::new(false) })
    }

    /// Different for each endpoint of this process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The configured server it belongs to.
    pub(crate) fn server(&self) -> &Arc<ServerAddress> {
        &self.parts.server
    }

    /// The same as a text.
    pub(crate) fn server_name(&self) -> &Arc<str> {
        &self.server_name
    }

    pub(crate) fn place(&self) -> &Place {
        &self.parts.place
    }

    /// What it is called in the field Host where nothing else says.
    pub(crate) fn own_name(&self) -> Authority {
        self.server().own_name(self.host())
    }

    pub(crate) fn host(&self) -> &str {
        &self.parts.host
    }

    pub(crate) fn dial(&self) -> &Arc<Dial> {
        &self.parts.dial
    }

    pub(crate) fn tag(&self) -> ServerTag {
        self.tag
    }

    pub(super) fn level(&self) -> u32 {
        self.level.load(Ordering::Relaxed)
    }

    pub(super) fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// From the next choice on.
    pub(super) fn set_rank(&self, rank: Rank) {
        self.weight.store(rank.weight, Ordering::Relaxed);
        self.level.store(rank.level, Ordering::Relaxed);
    }

    pub(super) fn record(&self) -> &Arc<EndpointRecord> {
        &self.parts.record
    }

    /// Whether it left the fleet: nothing new is sent, no connection is kept.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    pub(super) fn usable(&self, now: Instant) -> Use {
        let settings = &self.parts.settings;
        self.parts.record.condition.usable(now, settings.slow_start, settings.health.is_some())
    }

    pub(super) fn candidate(&self, index: usize, share: f64) -> Candidate {
        let weight = (self.weight() as f64 * share) as u64;
        Candidate {
            index,
            id: self.id,
            tag: self.tag,
            weight: weight.max(1),
            in_flight: self.parts.record.in_flight.load(Ordering::Relaxed),
        }
    }

    /// What active checks have found: no requests are sent while it is unhealthy. Returns whether that changes
    /// something.
    pub(crate) fn set_healthy(&self, is_healthy: bool) -> bool {
        self.parts.record.condition.set_healthy(is_healthy, Instant::now())
    }

    /// What active checks have found so far.
    pub(crate) fn checks(&self) -> Checks {
        self.parts.record.condition.checks()
    }

    /// It was asked how it is.
    pub(crate) fn checked(&self, verdict: Verdict) {
        self.parts.record.answers.checked(verdict, Instant::now());
    }

    /// Nobody checks it any more.
    pub(crate) fn forget_checks(&self) {
        self.parts.record.condition.forget_checks();
    }

    /// Gives a request to this endpoint.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Ticket {
        let record = &self.parts.record;
        record.in_flight.fetch_add(1, Ordering::Relaxed);
        record.requests.fetch_add(1, Ordering::Relaxed);
        let part = record.condition.begin(now);
        Ticket { endpoint: self.clone(), part, is_noted: false, is_last_resort: false }
    }
}

/// A request's stay at its endpoint. In flight there until dropped, which is at the end of the response's content or
/// tunnel. Dropped without an outcome, because the client left or broke its upload, it says nothing about the endpoint
/// and makes room for the next probe.
pub(crate) struct Ticket {
    endpoint: Arc<Endpoint>,
    part: Part,
    is_noted: bool,
    /// Whether it was sent although the endpoint is ejected, because all are.
    is_last_resort: bool,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("place", self.endpoint.place()).finish_non_exhaustive()
    }
}

impl Ticket {
    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    pub(crate) fn is_last_resort(&self) -> bool {
        self.is_last_resort
    }

    pub(super) fn make_last_resort(&mut self) {
        self.is_last_resort = true;
    }

    pub(super) fn is_probe(&self) -> bool {
        self.part.is_probe()
    }

    /// A final head came, so long after the request was sent.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.endpoint.parts.record.answers.answered(status, took);
    }

    /// So much content came.
    pub(crate) fn received(&self, bytes: usize) {
        self.endpoint.parts.record.answers.received(bytes);
    }

    /// A final head came that speaks for the endpoint. Only the first outcome counts.
    pub(crate) fn succeeded(&mut self) {
        if !std::mem::replace(&mut self.is_noted, true) {
            let parts = &self.endpoint.parts;
            if parts.record.condition.succeeded(self.part, Instant::now()) == Change::Recovered {
                parts.counters.recovered();
            }
        }
    }

    /// The endpoint failed. Only the first outcome counts.
    pub(crate) fn failed(&mut self) {
        if !std::mem::replace(&mut self.is_noted, true) {
            let parts = &self.endpoint.parts;
            parts.record.failures.fetch_add(1, Ordering::Relaxed);
            let ejection = &parts.settings.ejection;
            if parts.record.condition.failed(self.part, Instant::now(), ejection) == Change::Ejected {
                parts.counters.ejected();
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let record = &self.endpoint.parts.record;
        record.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.is_noted {
            record.condition.abandoned(self.part);
        }
    }
}
