//! Looking through a shard, a slice at a time, for a listing.
//!
//! In: a place to go on from. Out: what lies in the next slice, with its key. Looking does not count as use, and holds the
//! shard's lock for one slice. What is put in or taken out between two pages may be missed or met twice; what
//! stays is met once, since it never moves.

use std::sync::Arc;

use foldhash::HashSet;

use super::{IndexShard, SLICE_ENTRIES};
use crate::key::CacheKey;
use crate::stored::StoredResponse;
use larder_tier::key::VARIANTS_MAX;

/// Keys and what lies under them.
pub(in crate::memory) type Lying = Vec<(CacheKey, Arc<StoredResponse>)>;

impl IndexShard {
    /// The responses in the slice from `from` on whose key's base is `wanted`, at most `found_max` of them, and where to go on.
    pub(in crate::memory) fn page(
        &self,
        from: usize,
        found_max: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> (Lying, Option<usize>) {
        let (slice, rest) = self.slice(from);
        let mut found = Lying::new();
        for slot in slice {
            if found.len() >= found_max {
                return (found, Some(slot));
            }
            let Some(entry) = self.entries.get(slot) else { continue };
            let own = self.keys.find(entry.key_hash, |own| own.slots.contains(&slot));
            if let (Some(response), Some(own)) = (entry.item.response(), own)
                && wanted(own.base())
            {
                found.push((CacheKey::of_bytes(&own.bytes, own.base_len), Arc::clone(response)));
            }
        }
        (found, rest)
    }

    /// What lies under those keys of the base of `key` that stand before `end` and were not `met` yet, a slice of them, and before
    /// which the others stand. From the last to the first: a key that is added stands behind all others, and where some are
    /// taken out the others move to the front, so that none is missed between two calls.
    pub(in crate::memory) fn under(
        &self,
        key: &CacheKey,
        end: usize,
        met: &mut HashSet<u64>,
    ) -> (Lying, Option<usize>) {
        let mut found = Lying::new();
        let Some(base) = self.bases.find(key.hash(), |base| base.hash == key.hash()) else {
            return (found, None);
        };
        let end = end.min(base.keys.len());
        let start = end.saturating_sub(SLICE_ENTRIES);
        for (at, hash) in (start..end).zip(base.keys.iter().skip(start)).rev() {
            // A key that came back has its hash there twice.
            if !met.insert(*hash) {
                continue;
            }
            let own = self.keys.find(*hash, |own| own.hash == *hash && own.base() == key.base());
            for entry in own.iter().flat_map(|own| &own.slots).filter_map(|slot| self.entries.get(*slot)) {
                let response = entry.item.response().map(Arc::clone);
                found.extend(
                    own.zip(response)
                        .map(|(own, response)| (CacheKey::of_bytes(&own.bytes, own.base_len), response)),
                );
            }
            if found.len() + VARIANTS_MAX > SLICE_ENTRIES {
                return (found, Some(at).filter(|at| *at > 0));
            }
        }
        (found, Some(start).filter(|start| *start > 0))
    }
}
