//! One configured origin as the whole process sees it.
//!
//! In: the settings in force, which a reload replaces. Out: the fleet of these settings, and what outlives them: counters, the
//! cap on connections, the records of servers, the queue and the budget. Made once, and handed to each worker's
//! [`crate::Origin`].

use std::sync::Arc;

use crate::connections::Connections;
use crate::counters::Counters;
use crate::error::SetupError;
use crate::fleet::{Fleet, Roster, ServerReport};
use crate::resources::OriginResources;
use crate::settings::OriginSettings;

/// What all workers share of one origin.
#[derive(Debug)]
pub struct OriginState {
    pub(crate) resources: Arc<OriginResources>,
    roster: Roster,
}

impl OriginState {
    /// Counters at zero.
    pub fn new() -> Arc<Self> {
        Self::among(&Arc::default())
    }

    /// The same for an origin whose connections count among those of others.
    pub fn among(all: &Arc<Connections>) -> Arc<Self> {
        Arc::new(Self { resources: OriginResources::among(all), roster: Roster::default() })
    }

    /// Counters and gauges. [`for_each`](Self::for_each) has their names.
    pub fn counters(&self) -> &Counters {
        &self.resources.counters
    }

    /// Every server's addresses and how each is doing; those that are gone as long as they have requests in flight.
    pub fn servers(&self) -> Vec<ServerReport> {
        self.roster.report(&self.resources.records)
    }

    /// The fleet of `settings`, which all workers share.
    ///
    /// # Errors
    /// No servers, a limit of time beyond a year, or TLS that cannot be set up.
    pub(crate) fn fleet(&self, settings: &Arc<OriginSettings>) -> Result<Arc<Fleet>, SetupError> {
        self.roster.fleet(settings, &self.resources)
    }
}
