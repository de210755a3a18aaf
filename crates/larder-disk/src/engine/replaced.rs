//! What an object took the place of, while its own record is not written yet.
//!
//! Once it is written, its place says that everything of its identity before it is dead. Until then only the journal
//! does, and not before a moment has passed since the index got the new one: if that one is taken out in this moment, what
//! came before would be back at the next start. So whoever takes a pending object out looks here, and makes sure of it. Entries
//! end when that is done, not before: of two who are about the same object, the one that finds nothing here relies on what
//! the other has written down. There are as many as replacements in the queue. Locked within the lock of the index's shard,
//! for one look.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::address::Location;
use larder_tier::rank::RankedMutex;

/// Pending places, and what was there before.
#[derive(Debug, Default)]
pub(super) struct Replaced(RankedMutex<HashMap<Location, Location, RandomState>>);

impl Replaced {
    /// Notes that `pending` took the place of `before`; what that one had replaced itself, where it was pending too.
    pub(super) fn note(&self, pending: Location, before: Location) {
        let mut table = self.0.lock();
        let before = if before.is_pending() { table.remove(&before) } else { Some(before) };
        if let Some(before) = before {
            table.insert(pending, before);
        }
    }

    /// What `pending` replaced.
    pub(super) fn before(&self, pending: Location) -> Option<Location> {
        self.0.lock().get(&pending).copied()
    }

    /// Forgets what `pending` replaced: it is written down that it is dead.
    pub(super) fn forget(&self, pending: Location) {
        self.0.lock().remove(&pending);
    }
}
