//! What memory gave up by itself, and how old it was.
//!
//! In: responses that leave, and the time, which is told once a second since stores have no clock. Out: counts by reason, and the sum of the
//! ages of those that left for want of room. The mean of ages says whether a store is too small: what leaves after minutes
//! is asked for again, and what leaves after days hardly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::stored::StoredResponse;

/// Counts of one store.
#[derive(Debug, Default)]
pub(super) struct Evicted {
    pub(super) for_room: AtomicU64,
    pub(super) variants: AtomicU64,
    pub(super) idle: AtomicU64,
    /// Milliseconds, of those for room.
    ages: AtomicU64,
    /// Milliseconds of the monotonic clock.
    now: AtomicU64,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Evicted {
    /// Tells the time. To be called every second.
    pub(super) fn tell_time(&self, now: Duration) {
        self.now.store(millis(now), Ordering::Relaxed);
    }

    /// A response left for want of room. Its age counts from when it was received, to the second.
    pub(super) fn left_for_room(&self, response: &StoredResponse) {
        self.for_room.fetch_add(1, Ordering::Relaxed);
        let received = millis(response.head.freshness.received.monotonic);
        let age = self.now.load(Ordering::Relaxed).saturating_sub(received);
        self.ages.fetch_add(age, Ordering::Relaxed);
    }

    pub(super) fn ages(&self) -> Duration {
        Duration::from_millis(self.ages.load(Ordering::Relaxed))
    }
}
