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

    /// How long it counts from this moment on; `None`: for ever.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        match self.0.load(Ordering::Acquire) {
            u64::MAX => None,
            moment => Some(Duration::from_nanos(moment).saturating_sub(now)),
        }
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
        assert_eq!((until.left(at(3)), until.left(at(6))), (Some(at(2)), Some(at(0))));
        until.set(Duration::MAX);
        assert!(until.is_after(at(1 << 33)) && until.left(at(1)).is_none());
        until.end();
        assert_eq!(until.left(at(1)), Some(at(0)));
        assert!(!until.is_after(Duration::ZERO));
    }
}
