//! What is known of the attempts to refresh a stored response, beside the response itself.
//!
//! In: uses, attempts and how they went. Out: whether another attempt may begin, and whether the last one failed, so that
//! an origin that is dead is asked once in a while and not by every request. Nothing here is locked: a race costs one
//! attempt too few for a moment, never one too many. It is forgotten with the response: what a refresh brings begins anew.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How the last attempt to refresh a stored response failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshFailure {
    /// The origin gave no answer.
    Dead,
    /// It answered with an error that the stored response may stand in for.
    Error,
}

const NONE: u8 = 0;
const DEAD: u8 = 1;
const ERROR: u8 = 2;

/// When a stored response was last begun to be refreshed, how that went, and whether anybody wants it.
#[derive(Debug, Default)]
pub struct Refreshing {
    /// Milliseconds on the monotonic clock, plus one; zero is never.
    begun: AtomicU64,
    failure: AtomicU8,
    failed: AtomicU64,
    used: AtomicBool,
}

/// Zero is "never"; the clock may well stand at zero.
fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1) + 1
}

impl Refreshing {
    /// Whether no refresh has begun within `pause` before `now` (monotonic). One load: what every use of a stale response may
    /// ask before anything dearer.
    pub fn is_due(&self, now: Duration, pause: Duration) -> bool {
        let last = self.begun.load(Ordering::Relaxed);
        last == 0 || ms(now) >= last.saturating_add(ms(pause) - 1)
    }

    /// Whether a refresh may begin at `now`: it [is due](Self::is_due), and nobody else was quicker. If so, it is noted.
    pub fn may_begin(&self, now: Duration, pause: Duration) -> bool {
        let last = self.begun.load(Ordering::Relaxed);
        self.is_due(now, pause)
            && self.begun.compare_exchange(last, ms(now), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// An attempt failed at `now`. It counts as an attempt for [`may_begin`](Self::may_begin) as well.
    pub fn failed(&self, now: Duration, failure: RefreshFailure) {
        let code = match failure {
            RefreshFailure::Dead => DEAD,
            RefreshFailure::Error => ERROR,
        };
        self.failed.store(ms(now), Ordering::Relaxed);
        self.begun.fetch_max(ms(now), Ordering::Relaxed);
        self.failure.store(code, Ordering::Relaxed);
    }

    /// The origin answered.
    pub fn recovered(&self) {
        if self.failure.load(Ordering::Relaxed) != NONE {
            self.failure.store(NONE, Ordering::Relaxed);
        }
    }

    /// How the last attempt that ended failed, where that is not longer ago than `memory`, or another one has begun since
    /// and that is not: an attempt may well take longer than the memory lasts.
    pub fn failure(&self, now: Duration, memory: Duration) -> Option<RefreshFailure> {
        let failure = match self.failure.load(Ordering::Relaxed) {
            DEAD => RefreshFailure::Dead,
            ERROR => RefreshFailure::Error,
            _ => return None,
        };
        let since = self.failed.load(Ordering::Relaxed).max(self.begun.load(Ordering::Relaxed));
        (ms(now) < since.saturating_add(ms(memory) - 1)).then_some(failure)
    }

    /// The same for the same response in another place.
    pub(crate) fn carried(&self) -> Self {
        Self {
            begun: AtomicU64::new(self.begun.load(Ordering::Relaxed)),
            failure: AtomicU8::new(self.failure.load(Ordering::Relaxed)),
            failed: AtomicU64::new(self.failed.load(Ordering::Relaxed)),
            used: AtomicBool::new(self.used.load(Ordering::Relaxed)),
        }
    }

    /// Notes a use; returns whether there was one before. Writes once, so that hot responses do not travel between cores.
    pub fn is_used_again(&self) -> bool {
        let before = self.used.load(Ordering::Relaxed);
        if !before {
            self.used.store(true, Ordering::Relaxed);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_refresh_begins_once_in_a_while() {
        let refreshing = Refreshing::default();
        let may_begin = |ms| refreshing.may_begin(at(ms), at(1000));
        assert!(may_begin(0));
        assert!(!may_begin(1));
        assert!(!may_begin(999));
        assert!(may_begin(1000));
        assert!(!may_begin(1500));
        assert!(may_begin(2001));
    }

    #[test]
    fn a_failure_is_remembered_for_a_while_and_counts_as_an_attempt() {
        let refreshing = Refreshing::default();
        let failure = |ms| refreshing.failure(at(ms), at(5000));
        assert_eq!(failure(0), None);
        refreshing.failed(at(100), RefreshFailure::Dead);
        assert_eq!(failure(100), Some(RefreshFailure::Dead));
        assert_eq!(failure(5099), Some(RefreshFailure::Dead));
        assert_eq!(failure(5100), None);
        assert!(!refreshing.may_begin(at(1099), at(1000)));
        assert!(refreshing.may_begin(at(1100), at(1000)));
        assert_eq!(failure(6099), Some(RefreshFailure::Dead), "an attempt is under way");
        assert_eq!(failure(6100), None);
        refreshing.failed(at(7000), RefreshFailure::Error);
        assert_eq!(failure(7001), Some(RefreshFailure::Error));
        refreshing.recovered();
        assert_eq!(failure(7002), None);
    }

    #[test]
    fn the_second_use_knows_of_the_first() {
        let refreshing = Refreshing::default();
        assert!(!refreshing.is_used_again());
        assert!(refreshing.is_used_again());
    }
}
