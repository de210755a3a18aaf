//! What stores did not take lately, for one line in the log for each reason and store.
//!
//! In: stores and reasons. Out: whether there is news. Why the last response of a URL was not stored is among its
//! [fates](larder_store::Fates).

use hashbrown::HashSet;
use larder_observe::CacheId;
use parking_lot::Mutex;

use crate::not_stored::NotStored;

/// What the operator has been told of. As many as stores and reasons, so it has a bound.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<HashSet<(usize, &'static str), foldhash::fast::RandomState>>);

impl Losses {
    /// A response was not stored. Whether nothing was lost for this reason in this store before.
    pub(crate) fn note(&self, store: CacheId, why: NotStored) -> bool {
        self.0.lock().insert((store.index(), why.token()))
    }
}

#[cfg(test)]
mod tests {
    use larder_http::time::WallTime;
    use larder_observe::Metrics;

    use super::*;

    #[test]
    fn a_reason_is_news_once_for_each_store() {
        let metrics = Metrics::new(1, crate::labels::vocabulary(), WallTime(0), "0");
        let (one, other) = (metrics.cache("one"), metrics.cache("other"));
        let losses = Losses::default();
        assert!(losses.note(one, NotStored::NoRoom));
        assert!(losses.note(one, NotStored::QueueFull));
        assert!(!losses.note(one, NotStored::QueueFull), "that was told");
        assert!(losses.note(other, NotStored::QueueFull));
    }
}
