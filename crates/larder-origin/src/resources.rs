//! What fleets, pools and exchanges of one origin use together, whatever its settings are at the moment.

use std::sync::Arc;

use crate::connections::Connections;
use crate::counters::Counters;
use crate::fleet::{Budget, Queue, Records};
use crate::room::Room;

/// What outlives the settings of an origin.
#[derive(Debug)]
pub(crate) struct OriginResources {
    pub(crate) counters: Arc<Counters>,
    pub(crate) room: Arc<Room>,
    pub(crate) records: Records,
    pub(crate) queue: Arc<Queue>,
    pub(crate) budget: Budget,
}

impl OriginResources {
    /// Nothing is open, and nothing known. Connections count among `all`.
    pub(crate) fn among(all: &Arc<Connections>) -> Arc<Self> {
        let counters = Arc::new(Counters::default());
        let room = Room::among(all, &counters);
        let (records, queue, budget) = (Records::default(), Arc::default(), Budget::default());
        Arc::new(Self { counters, room, records, queue, budget })
    }
}
