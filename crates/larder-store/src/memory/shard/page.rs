//! Looking through a shard, a few slots at a time, for a listing.
//!
//! In: a slot to go on from. Out: what lies in the next ones, with its key. Looking does not count as use, and holds the
//! shard's lock for a bounded number of slots. What is put in or taken out between two pages may be missed or met twice; what
//! stays is met once, since it never moves.

use std::sync::Arc;

use super::IndexShard;
use crate::key::CacheKey;
use crate::stored::StoredResponse;

/// Responses under one base beyond which no further key is looked at.
const UNDER_MAX: usize = 1024;

/// Keys and what lies under them.
pub(in crate::memory) type Lying = Vec<(CacheKey, Arc<StoredResponse>)>;

impl IndexShard {
    /// The responses in at most `slots_max` slots from `from` on whose key's base is `wanted`, at most `found_max` of them, and
    /// where to go on.
    pub(in crate::memory) fn page(
        &self,
        from: usize,
        (slots_max, found_max): (usize, usize),
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> (Lying, Option<usize>) {
        let end = from.saturating_add(slots_max).min(self.entries.capacity());
        let mut found = Lying::new();
        for slot in from..end {
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
        (found, (end < self.entries.capacity()).then_some(end))
    }

    /// Everything under the base of `key`.
    pub(in crate::memory) fn under(&self, key: &CacheKey) -> Lying {
        let Some(base) = self.bases.find(key.hash(), |base| base.hash == key.hash()) else {
            return Vec::new();
        };
        // A key that came back has its hash there twice.
        let mut hashes = base.keys.to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        let of_key = |hash: &u64| self.keys.find(*hash, |own| own.hash == *hash && own.base() == key.base());
        let mut found = Vec::new();
        for own in hashes.iter().filter_map(of_key) {
            if found.len() >= UNDER_MAX {
                break;
            }
            for entry in own.slots.iter().filter_map(|slot| self.entries.get(*slot)) {
                let response = entry.item.response().map(Arc::clone);
                found.extend(
                    response.map(|response| (CacheKey::of_bytes(&own.bytes, own.base_len), response)),
                );
            }
        }
        found
    }
}
