//! The index in memory a page at a time, and all that lies under one URL.
//!
//! In: where the last page ended. Out: keys and responses, and where the next page begins. Each shard's lock is held for a
//! slice of its slots at a time.

use foldhash::{HashSet, HashSetExt};

use super::MemoryStore;
use super::shard::Lying;
use crate::key::CacheKey;

/// Responses under one base beyond which no further key is looked at.
const UNDER_MAX: usize = 1024;

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
        let (found, rest) = counted.shard.read().page(from.slot, found_max, wanted);
        let next = match rest {
            Some(slot) => Some(MemoryCursor { slot, ..from }),
            None if from.shard + 1 < self.shards.len() => {
                Some(MemoryCursor { shard: from.shard + 1, slot: 0 })
            }
            None => None,
        };
        (found, next)
    }

    /// What lies under the base of `key`, whatever its variant, up to a bound. Looking does not count as use. What is put in or
    /// taken out meanwhile may be missing; what stays is there once.
    pub(crate) fn under(&self, key: &CacheKey) -> Lying {
        let counted = self.counted(key.hash());
        let (mut found, mut met) = (Lying::new(), HashSet::new());
        let mut rest = Some(usize::MAX);
        while let Some(end) = rest.filter(|_| found.len() < UNDER_MAX) {
            let (mut slice, next) = counted.shard.read().under(key, end, &mut met);
            found.append(&mut slice);
            rest = next;
        }
        found
    }
}

#[cfg(test)]
mod tests;
