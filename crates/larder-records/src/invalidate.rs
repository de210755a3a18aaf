//! Invalidations: what was removed here is not brought back by a record.
//!
//! In: a base that was removed, with its number. Out: records with a lower one are not used. Whatever else was invalidated is compared by
//! the proxy, with the number that a record has here. Nothing is deleted there: other larders are told by the fleet's log, and a record that
//! nobody may use goes when its time is over, or when another takes its place.
//! There is no journal: a larder that starts reads the log.

use larder_tier::{CacheKey, Invalidate, Note};

use crate::Records;

impl Invalidate for Records {
    fn take_out(&self, key: &CacheKey, number: u64) -> u64 {
        self.removed.note(key.hash(), number);
        0
    }

    /// Any URL may have a record.
    fn has_base(&self, _key: &CacheKey) -> bool {
        true
    }

    fn note_base(&self, _key: &CacheKey, _note: &Note) {}

    fn note(&self, _note: &Note) {}
}
