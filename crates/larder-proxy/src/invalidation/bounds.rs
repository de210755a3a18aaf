//! How much of the URLs that were invalidated is kept. The models of tests/models keep less.

/// Numbers that a look may read without a lock; 32 KiB.
pub(super) const SLOTS: usize = 4096;
pub(super) const SHARDS: usize = 256;
/// Entries of a shard; what a table of 512 places holds. 114 688 of them are about 4 MiB.
pub(super) const ENTRIES_MAX: usize = 448;
