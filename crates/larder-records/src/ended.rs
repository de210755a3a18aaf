//! Responses that have ended here, of which records may still lie there.
//!
//! In: hashes of keys, each with the moment on the server's clock. Out: whether a record was received before that. Records are deleted as well;
//! this holds where a deletion is still on its way, or comes to nothing.
//! Bounded: beyond [`KEYS_MAX`] all are forgotten, and nothing that was received before the last of them is used.

use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use larder_tier::rank::{Rank, RankedMutex};

/// Keys that are kept; 1.5 MiB.
const KEYS_MAX: usize = 65_536;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct EndedKeys(RankedMutex<Moments>);

#[derive(Debug, Default)]
struct Moments {
    of_keys: HashMap<u64, Duration, RandomState>,
    floor: Duration,
}

impl Default for EndedKeys {
    fn default() -> Self {
        Self(RankedMutex::new(Rank::Leaf, Moments::default()))
    }
}

impl EndedKeys {
    /// What lies under a key has ended at `moment`.
    pub(crate) fn note(&self, key: u64, moment: Duration) {
        let mut moments = self.0.lock();
        if moments.of_keys.len() >= KEYS_MAX && !moments.of_keys.contains_key(&key) {
            let last = moments.of_keys.drain().map(|(_, moment)| moment).max();
            moments.floor = moments.floor.max(last.unwrap_or_default());
        }
        let last = moments.of_keys.entry(key).or_default();
        *last = moment.max(*last);
    }

    /// Whether that has happened to what was received at that moment.
    pub(crate) fn is_over(&self, key: u64, received: Duration) -> bool {
        let moments = self.0.lock();
        let last = moments.of_keys.get(&key).copied().unwrap_or_default().max(moments.floor);
        !last.is_zero() && received <= last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_received_before_its_key_has_ended_is_over() {
        let (ended, at) = (EndedKeys::default(), Duration::from_secs);
        assert!(!ended.is_over(1, Duration::ZERO));
        ended.note(1, at(5));
        ended.note(1, at(4));
        assert!(ended.is_over(1, at(5)) && !ended.is_over(1, at(6)) && !ended.is_over(2, at(1)));
        (0..KEYS_MAX as u64).for_each(|key| ended.note(10 + key, at(6)));
        assert!(ended.is_over(2, at(5)) && !ended.is_over(2, at(7)) && ended.is_over(10, at(6)));
    }
}
