//! The fleets of one origin: one for each version of its settings that somebody uses; during a reload, two.
//!
//! In: settings. Out: their fleet, the same one for all workers; and a report on every server. It holds no fleet alive: that
//! lives as long as a worker uses it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Fleet;
use super::records::Records;
use super::report::{ServerReport, ServerState};
use crate::error::SetupError;
use crate::resources::OriginResources;
use crate::settings::OriginSettings;

#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// The latest last.
    fleets: Mutex<Fleets>,
}

#[derive(Debug, Default)]
struct Fleets {
    alive: Vec<Weak<Fleet>>,
    made: u64,
}

impl Roster {
    /// The fleet of `settings`: the one that another worker has made, or a new one, which takes over what the latest one knows.
    ///
    /// # Errors
    /// No servers, a limit of time beyond a year, or TLS that cannot be set up.
    pub(crate) fn fleet(
        &self,
        settings: &Arc<OriginSettings>,
        resources: &Arc<OriginResources>,
    ) -> Result<Arc<Fleet>, SetupError> {
        let mut fleets = self.fleets.lock();
        fleets.alive.retain(|fleet| fleet.strong_count() > 0);
        let mut alive = fleets.alive.iter().filter_map(Weak::upgrade);
        if let Some(known) = alive.find(|fleet| Arc::ptr_eq(fleet.settings(), settings)) {
            return Ok(known);
        }
        let latest = fleets.alive.last().and_then(Weak::upgrade);
        let number = fleets.made + 1;
        let fleet = Fleet::new(settings, resources, latest.as_deref(), number)?;
        fleets.made = number;
        fleets.alive.push(Arc::downgrade(&fleet));
        Ok(fleet)
    }

    /// Every server's address in use, and those that are gone but still have requests in flight.
    pub(crate) fn report(&self, records: &Records) -> Vec<ServerReport> {
        let latest = self.fleets.lock().alive.iter().rev().find_map(Weak::upgrade);
        let mut reports = latest.as_ref().map(|fleet| fleet.report()).unwrap_or_default();
        for (server, place, record) in records.in_use() {
            let in_flight = record.in_flight.load(Ordering::Relaxed);
            let is_listed = latest.as_ref().is_some_and(|fleet| fleet.has(&record));
            if in_flight > 0 && !is_listed {
                let (weight, backup, state) = (0, false, ServerState::Draining);
                reports.push(ServerReport::new(&server, &place, &record, weight, backup, state));
            }
        }
        reports
    }
}
