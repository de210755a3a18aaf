//! What the word of last use tells: when an object was used, whether in this life of it, and, for a mirror, whether it may differ
//! from what another disk has of it.
//!
//! The last is a bit beside the time, so that it costs nothing. It is set where an object is put in, since it is put into all
//! disks then, and not where one was there before the start. It goes with the entry from place to place.

use std::sync::atomic::Ordering;

use super::{COMPARED, Entry, Index, SECONDS, USED};
use crate::engine::address::Location;

impl Index {
    /// Whether a record was used in this life of it; `None` where it is not in the index.
    pub(in crate::engine) fn was_used(&self, base: u64, place: Location) -> Option<bool> {
        let shard = self.shard(base).read();
        let found = shard.entries.find(base, |entry: &Entry| entry.base == base && entry.place == place);
        found.map(|entry| entry.use_word() & USED != 0)
    }

    /// When a record was last used, in seconds since the disk was opened; `None` where it was not in this life of it, or is not
    /// in the index.
    pub(in crate::engine) fn last_use(&self, base: u64, place: Location) -> Option<u32> {
        let shard = self.shard(base).read();
        let found =
            shard.entries.find(base, |entry: &Entry| entry.base == base && entry.place == place)?.use_word();
        (found & USED != 0).then_some(found & SECONDS)
    }

    /// Whether other disks are known to have nothing else of the object; true also of one that is not there.
    pub(in crate::engine) fn is_compared(&self, base: u64, place: Location) -> bool {
        let shard = self.shard(base).read();
        let found = shard.entries.find(base, |entry: &Entry| entry.base == base && entry.place == place);
        found.is_none_or(|entry| entry.use_word() & COMPARED != 0)
    }

    /// Notes that they have not. A use that is noted at the same moment may undo it: then it is compared once more.
    pub(in crate::engine) fn note_compared(&self, base: u64, place: Location) {
        let shard = self.shard(base).read();
        if let Some(entry) =
            shard.entries.find(base, |entry: &Entry| entry.base == base && entry.place == place)
        {
            entry.last_use.fetch_or(COMPARED, Ordering::Relaxed);
        }
    }
}
