//! Which disks a key prefers.
//!
//! In: a key. Out: all disks, the preferred one first. Weighted rendezvous hashing: of a disk with weight w, the key draws
//! -ln(u)/w, u uniform in (0, 1] from the hash under that disk's own seed; the least draw is preferred. The share of a disk
//! is its part of all bytes, and taking one away moves nothing but what lay on it.
//! Disks that fail at the moment are passed over by who writes, so that what would have been theirs goes to the next; those
//! that are absent are as if they were not there.

use smallvec::SmallVec;

use super::{Disks, Layout};
use larder_tier::CacheKey;

impl Disks {
    /// All disks that are there, by preference.
    pub(super) fn preference(&self, key: &CacheKey) -> SmallVec<[usize; 8]> {
        if let [slot] = &self.slots[..] {
            return slot.disk().map(|_| 0).into_iter().collect();
        }
        let present =
            self.slots.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.present()?)));
        let mut drawn: SmallVec<[(f64, usize); 8]> = present
            .map(|(number, present)| (draw(present.disk.address(key).hash(), present.bytes), number))
            .collect();
        drawn.sort_by(|one, other| one.0.total_cmp(&other.0));
        drawn.into_iter().map(|(_, number)| number).collect()
    }

    /// The disks that a record of `key` goes to.
    pub(crate) fn homes(&self, key: &CacheKey) -> SmallVec<[usize; 2]> {
        let mut working = self.preference(key).into_iter().filter(|disk| self.is_working(*disk));
        match self.layout {
            Layout::Mirror => working.collect(),
            Layout::Single | Layout::Stripe | Layout::Hash => working.next().into_iter().collect(),
        }
    }

    pub(super) fn is_working(&self, disk: usize) -> bool {
        self.disk(disk).is_some_and(|disk| !disk.is_left_alone())
    }
}

/// What a key draws at a disk of so many bytes.
#[expect(clippy::cast_precision_loss, reason = "53 bits of a hash are enough to choose by")]
fn draw(hash: u64, size: u64) -> f64 {
    let uniform = ((hash >> 11) + 1) as f64 / (1u64 << 53) as f64;
    -uniform.ln() / size as f64
}
