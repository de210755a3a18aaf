//! So few that every thread meets every other, and that what is oldest has to go.

pub(super) const SLOTS: usize = 2;
pub(super) const SHARDS: usize = 1;
pub(super) const ENTRIES_MAX: usize = 2;
