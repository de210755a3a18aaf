//! How often URLs that are not stored have been asked for lately, so that what is asked for once is not stored at all.
//!
//! In: the hashes of keys. Out: counts, never too low but for ageing, sometimes too high: a count-min sketch (Cormode and
//! Muthukrishnan 2005) with conservative update. Its size is fixed, whatever clients ask for: 256 KiB, which nothing takes
//! before a rule counts. After [`AGE_AFTER`] counts all are halved, so that "lately" is the last few hundred thousand
//! requests that found nothing. Counting takes no lock; two at once may count as one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Independent guesses for each key; the lowest is taken.
const ROWS: usize = 4;

/// Counters in a row; a power of two.
const COLUMNS: usize = 1 << 16;

/// Counts after which all counters are halved: with ten per column, chance meetings stay below two.
const AGE_AFTER: u32 = 10 * COLUMNS as u32;

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    counters: OnceLock<Box<[AtomicU8]>>,
    counted: AtomicU32,
}

impl Uses {
    /// Counts one more request for a key, and says how many there have been, this one included.
    pub(crate) fn count(&self, hash: u64) -> u8 {
        let counters = self.counters.get_or_init(|| (0..ROWS * COLUMNS).map(|_| AtomicU8::new(0)).collect());
        if self.counted.fetch_add(1, Ordering::Relaxed) == AGE_AFTER {
            self.counted.store(0, Ordering::Relaxed);
            for counter in counters {
                counter.store(counter.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        let of_key = || places(hash).filter_map(|place| counters.get(place));
        let before = of_key().map(|counter| counter.load(Ordering::Relaxed)).min().unwrap_or(0);
        let now = before.saturating_add(1);
        for counter in of_key() {
            counter.fetch_max(now, Ordering::Relaxed);
        }
        now
    }

    /// How many requests for a key have been counted.
    pub(crate) fn of(&self, hash: u64) -> u8 {
        let Some(counters) = self.counters.get() else { return 0 };
        let of_key = places(hash).filter_map(|place| counters.get(place));
        of_key.map(|counter| counter.load(Ordering::Relaxed)).min().unwrap_or(0)
    }
}

/// The key's counter in each row: sixteen bits of the mixed hash apiece.
fn places(hash: u64) -> impl Iterator<Item = usize> {
    // Shards and tables use bits of the hash as they are; these shall not agree with theirs.
    let mixed = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (0..ROWS).map(move |row| row * COLUMNS + (mixed >> (16 * row)) as usize % COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_counted_apart() {
        let uses = Uses::default();
        assert_eq!(uses.of(7), 0);
        for expected in 1..=3 {
            assert_eq!(uses.count(7), expected);
        }
        assert_eq!((uses.count(8), uses.of(7), uses.of(9)), (1, 3, 0));
    }

    #[test]
    fn a_flood_of_keys_that_come_once_is_hardly_ever_taken_for_one_that_comes_twice() {
        let uses = Uses::default();
        let twice =
            (0..20_000_u64).filter(|key| uses.count(key.wrapping_mul(0x2545_f491_4f6c_dd1d)) > 1).count();
        assert!(twice < 200, "{twice} of 20000");
    }

    #[test]
    fn counts_age() {
        let uses = Uses::default();
        for _ in 0..8 {
            uses.count(1);
        }
        uses.counted.store(AGE_AFTER, Ordering::Relaxed);
        assert_eq!(uses.count(1), 5);
        for _ in 0..300 {
            uses.count(1);
        }
        assert_eq!(uses.of(1), u8::MAX);
    }
}
