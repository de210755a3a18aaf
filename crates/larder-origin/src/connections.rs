//! How many connections to all origins together may be open: each is a descriptor of the process.
//!
//! In: a number, which may change at any time, and origins as they are made. Out: whether there is one more. Unlike an origin's
//! own cap this one was chosen by nobody, so who finds it reached waits for a connection to be closed, within its own limit;
//! meanwhile the longest unused one of any origin is closed.

use std::fmt;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Somebody who can do without a connection.
pub(crate) trait GivesUp: Send + Sync {
    /// Begins to close an unused connection. False where there is none.
    fn give_up_one(&self) -> bool;
}

/// The connections of all origins of a process.
pub struct Connections {
    max: AtomicU64,
    open: AtomicU64,
    origins: Mutex<Vec<Weak<dyn GivesUp>>>,
    pub(crate) freed: Notify,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
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

    /// From now on `origin` may have to give up what it keeps.
    pub(crate) fn join(&self, origin: Weak<dyn GivesUp>) {
        let mut origins = self.origins.lock();
        origins.retain(|origin| origin.strong_count() > 0);
        origins.push(origin);
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
        origins.iter().any(|origin| origin.give_up_one())
    }
}
