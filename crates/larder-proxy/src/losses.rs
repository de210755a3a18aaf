//! What was not stored lately although it might have been, and why: for whoever explains, and for one line in the log.
//!
//! In: keys of responses whose body came to its end, with what became of them. Out: the last reason for a key. The last
//! [`KEYS_MAX`] keys are remembered; one whose response was stored is forgotten. Nothing is looked at on the way of a hit.
//! The lock is held for a look.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::{HashMap, HashSet};
use larder_http::time::WallTime;
use larder_observe::CacheId;
use parking_lot::Mutex;

use crate::not_stored::NotStored;

/// Keys that are remembered.
const KEYS_MAX: usize = 1024;

/// Why one was not stored, and when that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) why: NotStored,
    pub(crate) at: WallTime,
}

/// The memory of it.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    known: Mutex<Known>,
    /// Whether there is any: all that most fetches ask.
    has_any: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    by_key: HashMap<u64, Lost, foldhash::fast::RandomState>,
    /// The oldest first; keys that were forgotten may be among them.
    order: VecDeque<u64>,
    /// What the operator has been told of.
    told: HashSet<(usize, &'static str), foldhash::fast::RandomState>,
}

impl Losses {
    /// The response under a key of this hash was not stored. Whether nothing was lost for this reason in this store before.
    pub(crate) fn note(&self, key: u64, store: CacheId, lost: Lost) -> bool {
        let mut known = self.known.lock();
        if known.by_key.insert(key, lost).is_none() {
            known.order.push_back(key);
            if known.order.len() > KEYS_MAX
                && let Some(oldest) = known.order.pop_front()
            {
                known.by_key.remove(&oldest);
            }
        }
        self.has_any.store(true, Ordering::Relaxed);
        known.told.insert((store.index(), lost.why.token()))
    }

    /// One was stored.
    pub(crate) fn forget(&self, key: impl FnOnce() -> u64) {
        if self.has_any.load(Ordering::Relaxed) {
            let key = key();
            let mut known = self.known.lock();
            if known.by_key.remove(&key).is_some() {
                known.order.retain(|other| *other != key);
            }
        }
    }

    /// Why the last one was not stored.
    pub(crate) fn of(&self, key: u64) -> Option<Lost> {
        self.known.lock().by_key.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use larder_observe::Metrics;

    use super::*;

    #[test]
    fn the_last_reason_of_a_key_is_known_until_one_is_stored_or_many_others_are_lost() {
        let metrics = Metrics::new(1, crate::labels::vocabulary(), WallTime(0), "0");
        let (one, other) = (metrics.cache("one"), metrics.cache("other"));
        let (losses, lost) = (Losses::default(), |why| Lost { why, at: WallTime(1) });
        assert_eq!(losses.of(1), None);
        assert!(losses.note(1, one, lost(NotStored::NoRoom)));
        assert!(losses.note(1, one, lost(NotStored::QueueFull)));
        assert!(!losses.note(2, one, lost(NotStored::QueueFull)), "that was told");
        assert!(losses.note(2, other, lost(NotStored::QueueFull)));
        assert_eq!(losses.of(1), Some(lost(NotStored::QueueFull)));
        losses.forget(|| 1);
        assert_eq!((losses.of(1), losses.of(2).is_some()), (None, true));
        (10..10 + KEYS_MAX as u64).for_each(|key| {
            losses.note(key, one, lost(NotStored::NoRoom));
        });
        assert_eq!((losses.of(2), losses.of(10).is_some()), (None, true));
    }
}
