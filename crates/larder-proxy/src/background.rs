//! Fetches that nobody waits for: how many there may be at once, and how much longer each may take.
//!
//! In: what the process has under way. Out: a [`Place`] for one more, which it gives back when it ends, however that comes
//! about. Clients are not slowed down by such fetches, so that something else has to hold them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Under way at once in the whole process.
const PLACES: usize = 1024;

/// One may take so many times as long as a fetch that everybody has left. Given up sooner, what is slow would be begun again and
/// again, and never be there.
pub(crate) const ORPHAN_TIMES: u32 = 10;

/// How many are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background(Arc<AtomicUsize>);

impl Background {
    /// A place for one more; `None` where all are taken.
    pub(crate) fn place(&self) -> Option<Place> {
        let more = |taken| (taken < PLACES).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Place(self.clone()))
    }
}

/// A place among them.
#[derive(Debug)]
pub(crate) struct Place(Background);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_for_the_next_once_it_is_given_back() {
        let background = Background::default();
        let taken: Vec<_> = std::iter::from_fn(|| background.place()).collect();
        assert_eq!(taken.len(), PLACES);
        drop(taken);
        assert!(background.place().is_some());
    }
}
