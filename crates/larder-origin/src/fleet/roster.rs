//! What the process keeps of an origin's servers while settings and addresses change.
//!
//! In: fleets, one for each settings in force (during a reload, two). Out: the records of addresses, found again by
//! server and place; the queue and the budget, which belong to the origin and not to its settings; reports.
//! It holds no fleet alive: that lives as long as a worker uses it. A record lives as long as an endpoint or a request
//! uses it, and for a while after its address left DNS, because many name servers give a part of their addresses at a
//! time, and an address that failed a moment ago must not come back as one that never did.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Fleet;
use super::budget::Budget;
use super::endpoint::EndpointRecord;
use super::queue::Queue;
use super::report::{ServerReport, ServerState};
use crate::error::SetupError;
use crate::place::Place;
use crate::settings::{OriginSettings, ServerAddress};

/// Records of addresses that left DNS; beyond that the oldest is forgotten early.
const DEPARTED_MAX: usize = 1024;

type Records = HashMap<(Arc<ServerAddress>, Place), Weak<EndpointRecord>>;

#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// The latest last.
    fleets: Mutex<Fleets>,
    records: Mutex<Records>,
    /// Records that are kept although their address has left, and until when.
    departed: Mutex<VecDeque<(Instant, Arc<EndpointRecord>)>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) budget: Budget,
}

#[derive(Debug, Default)]
struct Fleets {
    alive: Vec<Weak<Fleet>>,
    made: u64,
}

impl Roster {
    /// The fleet of `settings`: the one that another worker has made, or what `make` makes of the latest one and the
    /// number of the new one.
    pub(super) fn fleet(
        &self,
        settings: &Arc<OriginSettings>,
        make: impl FnOnce(Option<Arc<Fleet>>, u64) -> Result<Arc<Fleet>, SetupError>,
    ) -> Result<Arc<Fleet>, SetupError> {
        let mut fleets = self.fleets.lock();
        fleets.alive.retain(|fleet| fleet.strong_count() > 0);
        let mut alive = fleets.alive.iter().filter_map(Weak::upgrade);
        if let Some(known) = alive.find(|fleet| Arc::ptr_eq(fleet.settings(), settings)) {
            return Ok(known);
        }
        let latest = fleets.alive.last().and_then(Weak::upgrade);
        let number = fleets.made + 1;
        let fleet = make(latest, number)?;
        fleets.made = number;
        fleets.alive.push(Arc::downgrade(&fleet));
        Ok(fleet)
    }

    /// What is known of this address; otherwise a new record of one that came at `since`.
    pub(super) fn record(
        &self,
        server: &Arc<ServerAddress>,
        place: &Place,
        since: Option<Instant>,
    ) -> Arc<EndpointRecord> {
        let over = self.departed_before(Instant::now());
        drop(over);
        let mut records = self.records.lock();
        let key = (server.clone(), place.clone());
        if let Some(known) = records.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        records.retain(|_, record| record.strong_count() > 0);
        let record = Arc::new(EndpointRecord::new(since));
        records.insert(key, Arc::downgrade(&record));
        record
    }

    /// Keeps the record of an address that has left, for a while.
    pub(super) fn depart(&self, record: Arc<EndpointRecord>, keep: Duration) {
        let now = Instant::now();
        let over = self.departed_before(now);
        self.departed.lock().push_back((now + keep, record));
        drop(over);
    }

    /// Takes out those whose time is over, and the oldest where there are too many. To be dropped after the lock.
    fn departed_before(&self, now: Instant) -> Vec<(Instant, Arc<EndpointRecord>)> {
        let mut departed = self.departed.lock();
        let is_over = |first: Option<&(Instant, _)>| first.is_some_and(|(until, _)| *until <= now);
        let mut over = Vec::new();
        while is_over(departed.front()) || departed.len() >= DEPARTED_MAX {
            over.extend(departed.pop_front());
        }
        over
    }

    /// Every server's address in use, and those that are gone but still have requests in flight.
    pub(crate) fn report(&self) -> Vec<ServerReport> {
        let latest = self.fleets.lock().alive.iter().rev().find_map(Weak::upgrade);
        let mut reports = latest.as_ref().map(|fleet| fleet.report()).unwrap_or_default();
        let records = self.records.lock();
        for ((server, place), record) in records.iter() {
            let Some(record) = record.upgrade() else { continue };
            let in_flight = record.in_flight.load(Ordering::Relaxed);
            let is_listed = latest.as_ref().is_some_and(|fleet| fleet.has(&record));
            if in_flight > 0 && !is_listed {
                let (weight, backup, state) = (0, false, ServerState::Draining);
                reports.push(ServerReport::new(server, place, &record, weight, backup, state));
            }
        }
        reports
    }
}
