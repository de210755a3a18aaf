//! URLs that were removed here, of which records may still lie there.
//!
//! In: hashes of the bases of keys, each with the number of the invalidation. Out: whether a record under a base is newer. What is
//! purged by anything but its URL, or only has to be validated, is compared by the proxy.
//! Bounded: beyond [`BASES_MAX`] all are forgotten, and nothing with a lower number than theirs is used.

use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_tier::rank::{Rank, RankedMutex};

/// URLs that are kept; 1.5 MiB.
pub(crate) const BASES_MAX: usize = 65_536;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Removed {
    bases: RankedMutex<HashMap<u64, u64, RandomState>>,
    floor: AtomicU64,
}

impl Default for Removed {
    fn default() -> Self {
        Self { bases: RankedMutex::new(Rank::Leaf, HashMap::default()), floor: AtomicU64::new(0) }
    }
}

impl Removed {
    /// What was removed up to this number is not known.
    pub(crate) fn forget_up_to(&self, number: u64) {
        self.floor.fetch_max(number, Ordering::AcqRel);
    }

    pub(crate) fn note(&self, base: u64, number: u64) {
        let mut bases = self.bases.lock();
        if bases.len() >= BASES_MAX && !bases.contains_key(&base) {
            let last = bases.drain().map(|(_, number)| number).max();
            self.floor.fetch_max(last.unwrap_or(0), Ordering::AcqRel);
        }
        let last = bases.entry(base).or_default();
        *last = number.max(*last);
    }

    /// Whether nothing with this base was removed after this number.
    pub(crate) fn is_newer(&self, base: u64, number: u64) -> bool {
        let last = self.bases.lock().get(&base).copied().unwrap_or(0);
        number >= last.max(self.floor.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_its_removal_is_not_used_and_what_has_no_room_counts_for_all() {
        let removed = Removed::default();
        removed.note(1, 5);
        removed.note(1, 4);
        assert!(!removed.is_newer(1, 4) && removed.is_newer(1, 5) && removed.is_newer(2, 0));
        (0..BASES_MAX as u64).for_each(|base| removed.note(10 + base, 6 + base));
        let last = 5 + BASES_MAX as u64;
        assert!(!removed.is_newer(2, last - 2) && removed.is_newer(2, last));
        removed.forget_up_to(last + 2);
        assert!(!removed.is_newer(2, last + 1) && removed.is_newer(2, last + 2));
        removed.note(7, last + 9);
        assert!(!removed.is_newer(7, last + 8) && removed.is_newer(8, last + 2));
    }
}
