//! What invalidations of one name have come to: the highest number of each effect, and since when it holds.
//!
//! In: effects, each with a number. Out: what they mean for a response with a number of its own. An effect concerns what was
//! fetched before it, so one number is enough for each: that of the last.

use std::time::Duration;

use larder_cache::Verdict;

/// What an invalidation does. A moment is on the monotonic clock; `None` is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The response is stale from that moment on.
    Soften(Option<Duration>),
    /// The response is not used again before a validation.
    Validate(Option<Duration>),
    /// It is not used again at all.
    Remove,
}

/// A number, and a moment in milliseconds, plus one; zero where it is not known.
#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    number: u64,
    since_ms: u64,
}

impl Timed {
    fn note(&mut self, number: u64, since: Option<Duration>) {
        if number > self.number {
            let ms = |since: Duration| u64::try_from(since.as_millis()).unwrap_or(u64::MAX - 1) + 1;
            *self = Self { number, since_ms: since.map_or(0, ms) };
        }
    }

    /// The moment, where it concerns a response with this number.
    fn since(&self, number: u64) -> Option<Option<Duration>> {
        (self.number > number).then(|| self.since_ms.checked_sub(1).map(Duration::from_millis))
    }
}

/// The effects on one name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effects {
    removed: u64,
    invalidated: Timed,
    softened: Timed,
}

impl Effects {
    /// Enters one. A later one is not undone by an earlier one that is entered behind it.
    pub(super) fn note(&mut self, how: How, number: u64) {
        match how {
            How::Remove => self.removed = self.removed.max(number),
            How::Validate(since) => self.invalidated.note(number, since),
            How::Soften(since) => self.softened.note(number, since),
        }
    }

    /// What they leave of a response with this number.
    pub(super) fn verdict(&self, number: u64) -> Verdict {
        if self.removed > number {
            return Verdict::Gone;
        }
        let invalid = self.invalidated.since(number).map(|since| Verdict::Invalid { since });
        let soft = self.softened.since(number).map(|since| Verdict::Soft { since });
        invalid.unwrap_or(Verdict::Good).and(soft.unwrap_or(Verdict::Good))
    }

    /// Whether one of them has this number.
    pub(super) fn has(&self, number: u64) -> bool {
        [self.removed, self.invalidated.number, self.softened.number].contains(&number)
    }

    /// The number of the last of them.
    pub(super) fn latest(&self) -> u64 {
        self.removed.max(self.invalidated.number).max(self.softened.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Option<Duration> = Some(Duration::from_secs(9));
    const LATER: Option<Duration> = Some(Duration::from_secs(12));

    #[test]
    fn the_hardest_effect_that_came_after_the_fetch_holds() {
        let mut effects = Effects::default();
        effects.note(How::Remove, 3);
        effects.note(How::Validate(AT), 5);
        effects.note(How::Soften(LATER), 7);
        for (number, expected) in [
            (2, Verdict::Gone),
            (3, Verdict::Invalid { since: AT }),
            (5, Verdict::Soft { since: LATER }),
            (7, Verdict::Good),
        ] {
            assert_eq!(effects.verdict(number), expected, "{number}");
        }
        assert_eq!(effects.latest(), 7);
        effects.note(How::Soften(None), 6);
        assert_eq!(effects.verdict(6), Verdict::Soft { since: LATER }, "an earlier one undoes nothing");
        effects.note(How::Soften(None), 8);
        assert_eq!(effects.verdict(7), Verdict::Soft { since: None });
    }

    #[test]
    fn soft_revives_nothing() {
        for order in [[How::Remove, How::Soften(AT)], [How::Soften(AT), How::Remove]] {
            let mut effects = Effects::default();
            order.into_iter().zip(1..).for_each(|(how, number)| effects.note(how, number));
            assert_eq!(effects.verdict(0), Verdict::Gone);
        }
    }
}
