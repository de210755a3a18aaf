//! How many versions are noted. The models of tests/models note fewer.

/// The most versions that are noted.
pub(super) const FIELDS_MAX: usize = 65_536;
pub(super) const SHARDS: usize = 16;
