//! Until when something counts that one thread has learnt from a server, as one number.
//!
//! In: moments of the clock, from that thread. Out: whether it still counts, for all threads, without a lock. Who finds that it does
//! sees everything that the thread did before it has set this moment.
//! Deliberately absent: the clock.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

/// In nanoseconds of the clock. 0: it does not count. See the head of the file.
#[derive(Debug)]
pub(crate) struct Until(AtomicU64);

impl Until {
    /// It does not count yet.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// It counts until then.
    pub(crate) fn set(&self, moment: Duration) {
        self.0.store(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// It does not count until it is set again.
    pub(crate) fn end(&self) {
        self.set(Duration::ZERO);
    }

    /// Whether it counts at this moment.
    pub(crate) fn is_after(&self, now: Duration) -> bool {
        u128::from(self.0.load(Ordering::Acquire)) > now.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_until_its_moment() {
        let (until, at) = (Until::new(), Duration::from_secs);
        assert!(!until.is_after(Duration::ZERO));
        until.set(at(5));
        assert!(until.is_after(at(4)) && !until.is_after(at(5)));
        until.set(Duration::MAX);
        assert!(until.is_after(at(1 << 33)));
        until.end();
        assert!(!until.is_after(Duration::ZERO));
    }
}
