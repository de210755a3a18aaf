//! So few that one lock is met by all.

pub(super) const FIELDS_MAX: usize = 2;
pub(super) const SHARDS: usize = 1;
