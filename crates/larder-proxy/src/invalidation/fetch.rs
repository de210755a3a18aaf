//! What invalidations mean for a fetch under way.
//!
//! In: the number of the last invalidation before the fetch, and those that concern it since. Out: whether its response
//! may be stored, and from which invalidation on it has to be validated first. An invalidation marks the fetch before it
//! looks into the stores, so a response that the fetch stores meanwhile is found in one place or the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_cache::Verdict;

use super::How;

/// The marks of a fetch.
#[derive(Debug)]
pub(crate) struct FetchMark {
    /// The last invalidation before it began.
    number: u64,
    removed: AtomicBool,
    /// The first invalidation since after which its response has to be validated; zero for none.
    outdated: AtomicU64,
}

impl FetchMark {
    /// Of a fetch that begins after invalidation `number`.
    pub(crate) fn new(number: u64) -> Self {
        Self { number, removed: AtomicBool::new(false), outdated: AtomicU64::new(0) }
    }

    /// The last invalidation before the fetch began.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Takes note of invalidation `number`, unless the fetch began after it.
    pub(crate) fn note(&self, number: u64, how: How) {
        if self.number >= number {
            return;
        }
        match how {
            How::Remove => self.removed.store(true, Ordering::Release),
            How::Validate(_) | How::Soften(_) => {
                let first = |noted: u64| (noted == 0 || number < noted).then_some(number);
                let _ = self.outdated.fetch_update(Ordering::AcqRel, Ordering::Acquire, first);
            }
        }
    }

    /// What the invalidations since its beginning leave of its response.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.removed.load(Ordering::Acquire) {
            return Verdict::Gone;
        }
        match self.outdated() {
            Some(_) => Verdict::Invalid { since: None },
            None => Verdict::Good,
        }
    }

    /// The first invalidation since its beginning after which its response has to be validated before others use it.
    pub(crate) fn outdated(&self) -> Option<u64> {
        Some(self.outdated.load(Ordering::Acquire)).filter(|number| *number != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_hears_of_invalidations_that_it_did_not_begin_after() {
        let mark = FetchMark::new(5);
        mark.note(5, How::Remove);
        mark.note(4, How::Validate(None));
        assert_eq!((mark.verdict(), mark.outdated()), (Verdict::Good, None));
        mark.note(8, How::Validate(None));
        mark.note(7, How::Validate(None));
        mark.note(9, How::Validate(None));
        assert_eq!((mark.verdict(), mark.outdated()), (Verdict::Invalid { since: None }, Some(7)));
        mark.note(6, How::Remove);
        assert_eq!(mark.verdict(), Verdict::Gone);
    }
}
