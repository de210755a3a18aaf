//! The lease of a member, as all threads ask for it: without a lock.
//!
//! In: its end, from the member's thread, once everything is carried out that it rests on; and that this larder leaves, from any thread. Out: whether
//! what is stored may be used. Leaving is for good, whatever the member's thread is about to publish.

use std::time::Duration;

use crate::sync::{AtomicBool, Ordering};
use crate::until::Until;

/// See the head of the file.
pub(super) struct Lease {
    until: Until,
    leaves: AtomicBool,
}

impl Lease {
    pub(super) fn new() -> Self {
        Self { until: Until::new(), leaves: AtomicBool::new(false) }
    }

    /// Everything that it rests on is done: it counts until then.
    pub(super) fn publish(&self, until: Duration) {
        self.until.set(until);
    }

    /// It never counts again.
    pub(super) fn leave(&self) {
        self.leaves.store(true, Ordering::Release);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaves.load(Ordering::Acquire)
    }

    /// Whether it counts at this moment.
    pub(super) fn may_use(&self, now: Duration) -> bool {
        !self.is_leaving() && self.until.is_after(now)
    }

    /// How long it counts from this moment on; `None`: for ever.
    pub(super) fn left(&self, now: Duration) -> Option<Duration> {
        if self.is_leaving() { Some(Duration::ZERO) } else { self.until.left(now) }
    }
}
