//! Fetches that nobody waits for: how many there may be at once, and how much longer each may take.
//!
//! In: what the process has under way. Out: a [`BackgroundSlot`] for one more, which it gives back when it ends, however that comes
//! about. Clients are not slowed down by such fetches, so that something else has to hold them back. Refreshes have places together.
//! Each store has one place for the gaps of its bodies, since its disks set the pace: two at once would take as long
//! as one after the other, and keep two of the origin's connections.

use std::sync::Arc;

use larder_observe::CacheId;
use parking_lot::Mutex;

/// Refreshes under way at once in the whole process.
const REFRESHES_MAX: usize = 1024;

/// One may take so many times as long as a fetch that everybody has left. Given up sooner, what is slow would be begun again and
/// again, and never be there.
pub(crate) const ORPHAN_TIMES: u32 = 10;

/// What is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background(Arc<Mutex<UnderWay>>);

#[derive(Debug, Default)]
struct UnderWay {
    refreshes: usize,
    /// The stores of which a body's gaps are fetched.
    gaps: Vec<CacheId>,
}

impl Background {
    /// A place for one more refresh; `None` where all are taken.
    pub(crate) fn place(&self) -> Option<BackgroundSlot> {
        let mut under_way = self.0.lock();
        let is_free = under_way.refreshes < REFRESHES_MAX;
        is_free.then(|| {
            under_way.refreshes += 1;
            BackgroundSlot { background: self.clone(), gaps_of: None }
        })
    }

    /// The place for gaps of bodies in a store; `None` where it is taken.
    pub(crate) fn place_for_gaps(&self, store: CacheId) -> Option<BackgroundSlot> {
        let mut under_way = self.0.lock();
        let is_free = !under_way.gaps.contains(&store);
        is_free.then(|| {
            under_way.gaps.push(store);
            BackgroundSlot { background: self.clone(), gaps_of: Some(store) }
        })
    }
}

/// A place among them.
#[derive(Debug)]
pub(crate) struct BackgroundSlot {
    background: Background,
    gaps_of: Option<CacheId>,
}

impl Drop for BackgroundSlot {
    fn drop(&mut self) {
        let mut under_way = self.background.0.lock();
        match self.gaps_of {
            Some(store) => under_way.gaps.retain(|other| *other != store),
            None => under_way.refreshes -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use larder_http::time::WallTime;
    use larder_observe::Metrics;

    use super::*;
    use crate::labels::vocabulary;

    #[test]
    fn a_place_is_for_the_next_once_it_is_given_back() {
        let background = Background::default();
        let taken: Vec<_> = std::iter::from_fn(|| background.place()).collect();
        assert_eq!(taken.len(), REFRESHES_MAX);
        let metrics = Metrics::new(1, vocabulary(), WallTime(0), "0");
        let (one, other) = (metrics.cache("one"), metrics.cache("other"));
        let gaps = background.place_for_gaps(one);
        assert!(gaps.is_some() && background.place_for_gaps(one).is_none());
        assert!(background.place_for_gaps(other).is_some());
        drop((taken, gaps));
        assert!(background.place().is_some() && background.place_for_gaps(one).is_some());
    }
}
