//! How many connections to all origins together may be open: each is a descriptor of the process.
//!
//! In: a number, which may change at any time, and origins as they are made. Out: whether there is one more. Unlike an origin's
//! own cap this one was chosen by nobody, so who finds it reached waits for a connection to be closed, within its own limit;
//! meanwhile the longest unused one of any origin is closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::metrics::Shared;

/// The connections of all origins of a process.
#[derive(Debug)]
pub struct Connections {
    max: AtomicU64,
    open: AtomicU64,
    origins: Mutex<Vec<Weak<Shared>>>,
    pub(crate) freed: Notify,
}

impl Default for Connections {
    /// Without a bound.
    fn default() -> Self {
        let (max, open) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Self { max, open, origins: Mutex::default(), freed: Notify::new() }
    }
}

impl Connections {
    /// From now on at most `max` are opened.
    pub fn limit(&self, max: usize) {
        self.max.store(u64::try_from(max).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    pub(crate) fn join(&self, origin: &Arc<Shared>) {
        let mut origins = self.origins.lock();
        origins.retain(|origin| origin.strong_count() > 0);
        origins.push(Arc::downgrade(origin));
    }

    /// Counts one more, unless there are too many.
    pub(crate) fn open(&self) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        let more = |open| (open < max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One has been closed.
    pub(crate) fn close(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Begins to close an unused one of any origin.
    pub(crate) fn give_up_one(&self) -> bool {
        let origins: Vec<_> = self.origins.lock().iter().filter_map(Weak::upgrade).collect();
        let gave_up = origins.iter().find(|origin| origin.room.give_up_one());
        gave_up.map(|origin| origin.metrics.gave_up()).is_some()
    }
}
