//! The index in memory a page at a time, and all that lies under one URL.
//!
//! In: where the last page ended. Out: keys and responses, and where the next page begins. Each shard's lock is held for a
//! bounded number of its slots.

use super::MemoryStore;
use super::shard::Lying;
use crate::key::CacheKey;

/// Slots of a shard that are looked at under its lock.
const SLOTS_MAX: usize = 512;

/// Where a listing of memory goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryCursor {
    pub(crate) shard: usize,
    pub(crate) slot: usize,
}

impl MemoryStore {
    /// The next responses whose key's base is `wanted`, at most `found_max`, and where to go on; of one shard only.
    pub(crate) fn page(
        &self,
        from: MemoryCursor,
        found_max: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> (Lying, Option<MemoryCursor>) {
        let Some(counted) = self.shards.get(from.shard) else { return (Vec::new(), None) };
        let (found, rest) = counted.shard.read().page(from.slot, (SLOTS_MAX, found_max), wanted);
        let next = match rest {
            Some(slot) => Some(MemoryCursor { slot, ..from }),
            None if from.shard + 1 < self.shards.len() => {
                Some(MemoryCursor { shard: from.shard + 1, slot: 0 })
            }
            None => None,
        };
        (found, next)
    }

    /// Everything under the base of `key`, whatever its variant. Looking does not count as use.
    pub(crate) fn under(&self, key: &CacheKey) -> Lying {
        self.counted(key.hash()).shard.read().under(key)
    }
}
