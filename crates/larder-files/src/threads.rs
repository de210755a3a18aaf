//! The threads of a store, and how they are told to end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use larder_tier::rank::RankedMutex;
use parking_lot::Condvar;

/// What tells a thread to go.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_stopped: RankedMutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(super) fn stop(&self) {
        *self.is_stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until it is told to go; whether to go on.
    pub(super) fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut is_stopped = self.is_stopped.lock();
        while !*is_stopped && Instant::now() < until {
            is_stopped.wait_for(&self.changed, until.saturating_duration_since(Instant::now()));
        }
        !*is_stopped
    }
}

/// The threads of a store.
#[derive(Debug)]
pub(super) struct Threads {
    pub(super) stop: Arc<Stop>,
    pub(super) running: RankedMutex<Vec<JoinHandle<()>>>,
    /// Ends after the others, whose last removals it need not say any more.
    pub(super) journal: RankedMutex<Option<JoinHandle<()>>>,
}

impl Threads {
    /// Waits so long, for somebody who gives way; false when the store is closing.
    pub(super) fn rest(&self, time: Duration) -> bool {
        self.stop.rest(time)
    }
}
