//! Why a disk did not take something: the reasons that its figures tell apart, and a counter for each.
//!
//! In: refusals, each once. Out: the counts, by the words that stand in metrics. The figures have fewer reasons than
//! [`Refused`]: an operator can do something about the first three, and the rest share one word.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Refused;

/// A reason, as the figures have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The disk did not keep up.
    QueueFull,
    /// No room could be made.
    NoRoom,
    /// The disk was failing.
    Failing,
    /// It was larger than the disk takes, a piece of it was lost, or the disk was being closed.
    Other,
}

impl RefusalReason {
    /// Every reason, in the order in which they are shown: each at its own number.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::NoRoom, Self::Failing, Self::Other];

    /// The fixed word for metrics.
    pub const fn token(self) -> &'static str {
        match self {
            Self::QueueFull => Refused::QueueFull.token(),
            Self::NoRoom => Refused::NoRoom.token(),
            Self::Failing => Refused::Failing.token(),
            Self::Other => "other",
        }
    }
}

impl From<Refused> for RefusalReason {
    fn from(why: Refused) -> Self {
        match why {
            Refused::QueueFull => Self::QueueFull,
            Refused::NoRoom => Self::NoRoom,
            Refused::Failing => Self::Failing,
            Refused::TooLarge | Refused::PieceLost | Refused::Closed => Self::Other,
        }
    }
}

/// What was not stored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounts([u64; RefusalReason::ALL.len()]);

impl RefusedCounts {
    /// The count of one reason.
    pub fn of(&self, reason: RefusalReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// Each with its fixed word.
    pub fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RefusalReason::ALL.into_iter().map(RefusalReason::token).zip(self.0)
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Refusals([AtomicU64; RefusalReason::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub(super) fn note(&self, reason: RefusalReason) {
        if let Some(count) = self.0.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All of them at this moment.
    pub(super) fn counts(&self) -> RefusedCounts {
        RefusedCounts(self.0.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_and_a_counter_of_its_own() {
        let refusals = Refusals::default();
        for (number, reason) in RefusalReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number, "{reason:?}");
            (0..=number).for_each(|_| refusals.note(reason));
        }
        let counts: Vec<(&str, u64)> = refusals.counts().by_reason().collect();
        assert_eq!(counts, [("queue-full", 1), ("no-room", 2), ("failing", 3), ("other", 4)]);
        assert_eq!(refusals.counts().of(RefusalReason::Failing), 3);
    }
}
