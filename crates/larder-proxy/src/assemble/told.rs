//! What the line in the log says of a page, while the page is still on its way.
//!
//! In: the [`Tally`] of a page, each time that it may have become another one. Out: the same at the end of the exchange, as far as it was
//! told by then. The exchange and the body of its response share it, and neither knows which of them ends first: a client that
//! leaves ends the exchange before the body. So a page tells its tally as it goes, and not at its end alone.
//! Both are on one worker; the atomics are for the type, and cost what plain numbers cost.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use larder_observe::PageEnding;

use super::tally::Tally;

/// The figures of one page.
#[derive(Debug, Default)]
pub(crate) struct PageTold {
    fragments: AtomicU32,
    asked: AtomicU32,
    failed: AtomicU32,
    waited_us: AtomicU64,
}

impl PageTold {
    /// Replaces what was told before.
    pub(crate) fn note(&self, tally: &Tally) {
        let waited_us = u64::try_from(tally.waited.as_micros()).unwrap_or(u64::MAX);
        self.fragments.store(tally.fragments, Ordering::Relaxed);
        self.asked.store(tally.asked, Ordering::Relaxed);
        self.failed.store(tally.failed, Ordering::Relaxed);
        self.waited_us.store(waited_us, Ordering::Relaxed);
    }

    /// What was told last.
    pub(crate) fn ending(&self) -> PageEnding {
        PageEnding {
            fragments: self.fragments.load(Ordering::Relaxed),
            asked: self.asked.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            waited: Duration::from_micros(self.waited_us.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_was_told_counts() {
        let told = PageTold::default();
        assert_eq!(told.ending(), PageEnding::default());
        let first =
            Tally { fragments: 3, asked: 2, failed: 1, waited: Duration::from_millis(5), ..Tally::default() };
        told.note(&first);
        told.note(&Tally { asked: 3, waited: Duration::from_millis(7), ..first });
        let waited = Duration::from_millis(7);
        assert_eq!(told.ending(), PageEnding { fragments: 3, asked: 3, failed: 1, waited });
    }
}
