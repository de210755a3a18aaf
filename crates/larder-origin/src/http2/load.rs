//! What an HTTP/2 connection carries, and when it takes no more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

/// What a connection carries.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) in_use: AtomicUsize,
    pub(super) is_retired: AtomicBool,
    /// Streams that we reset.
    pub(super) resets: AtomicUsize,
    /// Streams that the peer broke.
    pub(super) faults: AtomicUsize,
    /// When the last stream ended. Guards only itself.
    pub(super) used: Mutex<Instant>,
}

impl Load {
    pub(super) fn new() -> Self {
        Self {
            in_use: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            resets: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    /// Takes no further stream. Those under way go on.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    /// Counts one more of something that there may be `max` of.
    pub(super) fn count(&self, counter: &AtomicUsize, max: usize) {
        if counter.fetch_add(1, Ordering::Relaxed) + 1 >= max {
            self.retire();
        }
    }
}
