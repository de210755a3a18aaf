//! The figures of a memory store.
//!
//! In: nothing. Out: what its counters said at one moment, each read by itself: sums of them may be off by what happened meanwhile.

use std::time::Duration;

/// Figures of a store, summed when asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Stored responses in the index.
    pub objects: u64,
    /// Bytes counted against the cap.
    pub bytes: u64,
    /// The cap.
    pub max_bytes: u64,
    /// The most that was ever counted at once.
    pub high_water_bytes: u64,
    /// Responses evicted to make room.
    pub evicted_for_room: u64,
    /// How old they were together, since they were received.
    pub evicted_ages: Duration,
    /// Responses evicted because their key had too many variants.
    pub evicted_variants: u64,
    /// Responses evicted because nobody asked for them.
    pub evicted_idle: u64,
    /// Reservations refused for lack of room.
    pub refused: u64,
    /// Large bodies that came from disks because they were read again.
    pub promoted: u64,
    /// Large bodies that had gone from the index, and were taken from slow readers.
    pub let_go: u64,
}
