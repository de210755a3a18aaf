//! Where records that the writer has put together will be, until the index knows.
//!
//! Between the moment at which a record's place is settled and the one at which the index has it, the record gets into the
//! file. Code that takes its object out meanwhile finds the place before in the index, and has to name the place to
//! come as well. If the process ended right after the write, nothing else would say that what lies there is dead. So
//! the writer claims a place before it puts the bytes together, and asks in the same step whether the object is still
//! wanted; whoever takes one out looks here afterwards. One of the two sees the other, whichever comes first.
//! As many entries as records in a batch. The lock is held for one look at the index, and never taken within a lock of that.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::address::Location;
use larder_tier::rank::{Rank, RankedMutex};

/// By the place that the index has, the place to come.
#[derive(Debug)]
pub(super) struct InFlight(RankedMutex<HashMap<Location, Location, RandomState>>);

impl Default for InFlight {
    fn default() -> Self {
        Self(RankedMutex::new(Rank::InFlight, HashMap::default()))
    }
}

impl InFlight {
    /// The object at `from` is to be at `at`, if `is_wanted` says that it is still there; says whether it is.
    pub(super) fn claim(&self, from: Location, at: Location, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut table = self.0.lock();
        let may_go = !table.contains_key(&from) && is_wanted();
        if may_go {
            table.insert(from, at);
        }
        may_go
    }

    /// Where the object at `from` will be, if it is being written.
    pub(super) fn of(&self, from: Location) -> Option<Location> {
        self.0.lock().get(&from).copied()
    }

    /// The index has it, or the journal says that it is dead.
    pub(super) fn end(&self, from: Location) {
        self.0.lock().remove(&from);
    }
}
