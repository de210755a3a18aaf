//! What is known of a stored response and the invalidations that came after it was fetched, beside the response itself.
//!
//! In: what the table of invalidations said when it was asked. Out: the same again without asking, as long as nothing new
//! was entered; and since when the response is invalid, which later invalidations do not postpone. Nothing here is locked: a race costs
//! one look at the table.

use std::time::Duration;

use super::sync::{AtomicU64, Ordering};

/// What the last look at the table of invalidations came to.
#[derive(Debug, Default)]
pub struct Judged {
    /// The highest number of the part of the table that was looked at, when nothing in it concerned the response.
    good_at: AtomicU64,
    /// The state of the list of purges when none of them concerned the response; zero is the state without any.
    cleared_at: AtomicU64,
    /// Milliseconds on the monotonic clock, plus one; zero as long as no invalidation concerned it.
    invalid_since: AtomicU64,
}

impl Judged {
    /// Whether nothing in the table concerned the response when `latest` was the highest number there.
    #[inline]
    pub fn is_good_at(&self, latest: u64) -> bool {
        self.good_at.load(Ordering::Relaxed) == latest
    }

    /// Notes that.
    pub fn note_good_at(&self, latest: u64) {
        self.good_at.store(latest, Ordering::Relaxed);
    }

    /// Whether no purge concerned the response when the list of them was in this state.
    #[inline]
    pub fn is_cleared_at(&self, state: u64) -> bool {
        self.cleared_at.load(Ordering::Relaxed) == state
    }

    /// The last such state that was noted.
    pub fn cleared_at(&self) -> u64 {
        self.cleared_at.load(Ordering::Relaxed)
    }

    /// Notes that.
    pub fn note_cleared_at(&self, state: u64) {
        self.cleared_at.store(state, Ordering::Relaxed);
    }

    /// Notes that an invalidation concerns it since this moment of the monotonic clock, and gives the first such moment.
    pub fn note_invalid(&self, since: Duration) -> Duration {
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let first = |noted: u64| (noted == 0 || ms < noted).then_some(ms);
        match self.invalid_since.fetch_update(Ordering::Relaxed, Ordering::Relaxed, first) {
            Ok(_) => since,
            Err(noted) => Duration::from_millis(noted - 1),
        }
    }

    /// The same for the same response in another place.
    pub(crate) fn carried(&self) -> Self {
        let copied = |of: &AtomicU64| AtomicU64::new(of.load(Ordering::Relaxed));
        Self {
            good_at: copied(&self.good_at),
            cleared_at: copied(&self.cleared_at),
            invalid_since: copied(&self.invalid_since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_invalidations_do_not_postpone_the_first() {
        let judged = Judged::default();
        let at = |seconds| judged.note_invalid(Duration::from_secs(seconds)).as_secs();
        assert_eq!([at(5), at(9), at(5), at(3), at(4)], [5, 5, 5, 3, 3]);
        assert_eq!(judged.carried().note_invalid(Duration::from_secs(8)).as_secs(), 3);
    }

    #[test]
    fn it_is_good_for_as_long_as_nothing_was_entered() {
        let judged = Judged::default();
        judged.note_good_at(7);
        assert!(judged.is_good_at(7) && !judged.is_good_at(8) && judged.carried().is_good_at(7));
        assert!(judged.is_cleared_at(0), "before the first purge");
        judged.note_cleared_at(3);
        assert!(judged.is_cleared_at(3) && !judged.is_cleared_at(4) && judged.carried().is_cleared_at(3));
    }
}
