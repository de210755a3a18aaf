//! What the tests of the store look at and do in disks, beyond what a store may: a slot that is tried again at this moment.
//!
//! In: the number of a slot. Out: what the slot does by itself when its pause is over. Behind the feature `testing`, hidden from the
//! docs, and no promise to anybody.

use bytes::Bytes;
use larder_tier::CacheKey;
use smallvec::SmallVec;

use super::{Admit, DiskSlot, Disks};

impl Disks {
    /// Whether a disk is absent because somebody else has it.
    pub fn is_any_in_use_elsewhere(&self) -> bool {
        self.slots.iter().any(DiskSlot::is_in_use_elsewhere)
    }

    /// Tries the disk of a slot again.
    pub fn try_slot(&self, number: usize, admit: &Admit) {
        self.slots.get(number).into_iter().for_each(|slot| slot.try_again(admit));
    }

    /// Whether the disk of a slot is to be tried again now.
    pub fn begin_trying_slot(&self, number: usize) -> bool {
        self.slots.get(number).is_some_and(DiskSlot::begin_trying)
    }

    /// Notes a change under `key` in a slot.
    pub fn change_slot(&self, number: usize, key: &CacheKey) {
        self.slots.get(number).into_iter().for_each(|slot| {
            slot.to_change(key);
        });
    }

    /// How many records may lie under `key`, copies counted each.
    pub fn lie_under(&self, key: &CacheKey) -> usize {
        self.candidates(key).len()
    }

    /// Whether a disk is there, and not left alone.
    pub fn is_working_at(&self, number: usize) -> bool {
        self.is_working(number)
    }

    /// The order in which disks are chosen for a key.
    pub fn preference_of(&self, key: &CacheKey) -> SmallVec<[usize; 8]> {
        self.preference(key)
    }
}

/// The same bytes in pieces as they lie on a disk.
pub fn regular(pieces: &[Bytes]) -> impl Iterator<Item = Bytes> {
    super::records::regular(pieces)
}
