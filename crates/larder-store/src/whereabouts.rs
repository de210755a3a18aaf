//! Where a stored response lies, and what keeps one from lying on a disk or in a file: for whoever explains.
//!
//! In: a key with a head, or with a response that was found. Out: directories, and reasons, which are the very values by
//! which it is decided elsewhere. Everything is looked up in memory, counts as no use and changes nothing.
//! Deliberately absent: what only the moment of storing tells, such as a full queue.

use std::path::PathBuf;

use larder_cache::StoredHead;
pub use larder_tier::HeldBack;
use smallvec::SmallVec;

use crate::key::CacheKey;
use crate::store::Store;
use crate::stored::StoredResponse;

impl Store {
    /// The directories behind its memory.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.tiers().iter().flat_map(|tier| tier.directories()).collect()
    }

    /// The directories of the disks that have a response.
    pub fn disks_of(&self, key: &CacheKey, response: &StoredResponse) -> SmallVec<[PathBuf; 2]> {
        self.tiers().iter().flat_map(|tier| tier.folders_of(key, response.identity())).collect()
    }

    /// What would keep a response with this head from being written to its tiers. `None` where nothing would, and where there is
    /// memory only.
    pub fn would_hold_back(&self, key: &CacheKey, head: &StoredHead) -> Option<HeldBack> {
        self.tiers().iter().find_map(|tier| tier.would_hold_back(key, head))
    }

    /// Why a response that was found in memory is there alone. `None` where it is not, and where there is memory only.
    pub fn holds_back(&self, key: &CacheKey, response: &StoredResponse) -> Option<HeldBack> {
        let holds_back = |tier: &std::sync::Arc<crate::tier::StoreTier>| {
            tier.holds_back(key, &response.head, response.identity())
        };
        self.tiers().iter().find_map(holds_back)
    }
}

#[cfg(test)]
mod tests;
