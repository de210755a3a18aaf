//! URLs that were invalidated without being looked for: hashes of the bases of keys, each with what was done.
//!
//! In: hashes of bases, with the number of an invalidation and what it does. Out: what that means for a response of which the number
//! is known. A stored response is compared when it is found; nothing is edited.
//! A look reads one number per hash: the highest of all entries that share its slot. Only where that is above the
//! response's own number is there a lock. The number of a new entry is taken under that lock, so that entries of one
//! slot are entered in the order of their numbers and "nothing above 7 concerns it" stays true.
//! Bounded: where a shard is full its oldest entry goes, and its number becomes the shard's floor. A response below it
//! is not proven to be good: too much is asked of the origin then, and nothing outdated is served.

use hashbrown::HashMap;
use larder_cache::Verdict;

use super::bounds::{ENTRIES_MAX, SHARDS, SLOTS};
use super::effects::{Effects, How};
use super::sync::{AtomicU64, Ordering, Rank, RankedRwLock};

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<u64, Effects, foldhash::fast::RandomState>,
    floor: u64,
}

/// The table. Shared by all workers.
#[derive(Debug)]
pub(super) struct Table {
    latest: Box<[AtomicU64]>,
    shards: Box<[RankedRwLock<Shard>]>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            latest: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            shards: (0..SHARDS).map(|_| RankedRwLock::new(Rank::Predicates, Shard::default())).collect(),
        }
    }
}

impl Table {
    /// The highest number of all entries that share a slot with this hash.
    #[inline]
    pub(super) fn latest(&self, hash: u64) -> u64 {
        self.latest[hash as usize % SLOTS].load(Ordering::Acquire)
    }

    fn shard(&self, hash: u64) -> &RankedRwLock<Shard> {
        &self.shards[hash as usize % SHARDS]
    }

    /// What the table says of a response with this number, and how far it was known then.
    pub(super) fn verdict(&self, hash: u64, number: u64) -> (Verdict, u64) {
        let shard = self.shard(hash).read();
        let latest = self.latest(hash);
        let of_floor = match number < shard.floor {
            true => Verdict::Unproven,
            false => Verdict::Good,
        };
        let of_entry = shard.entries.get(&hash).map_or(Verdict::Good, |effects| effects.verdict(number));
        (of_floor.and(of_entry), latest)
    }

    /// Enters an invalidation under the number that `next` gives, and gives that.
    pub(super) fn note(&self, hash: u64, how: How, next: impl FnOnce() -> u64) -> u64 {
        let mut shard = self.shard(hash).write();
        let number = next();
        if shard.entries.len() >= ENTRIES_MAX
            && !shard.entries.contains_key(&hash)
            && let Some((oldest, last)) = shard.oldest()
        {
            shard.entries.remove(&oldest);
            self.raise(&mut shard, hash, last);
        }
        shard.entries.entry(hash).or_default().note(how, number);
        self.latest[hash as usize % SLOTS].fetch_max(number, Ordering::AcqRel);
        number
    }

    /// Raises the floor of the shard of `hash`. Everything that is in one of its slots has to look at it.
    fn raise(&self, shard: &mut Shard, hash: u64, floor: u64) {
        shard.floor = shard.floor.max(floor);
        let slots = self.latest.iter().skip(hash as usize % SHARDS).step_by(SHARDS);
        slots.for_each(|latest| {
            latest.fetch_max(floor, Ordering::AcqRel);
        });
    }
}

impl Shard {
    /// The entry that was entered first, and its number.
    fn oldest(&self) -> Option<(u64, u64)> {
        let entries = self.entries.iter().map(|(hash, effects)| (*hash, effects.latest()));
        entries.min_by_key(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const AT: Option<Duration> = Some(Duration::from_secs(9));
    const INVALID: Verdict = Verdict::Invalid { since: AT };
    const UNPROVEN: Verdict = Verdict::Unproven;

    fn verdict(table: &Table, hash: u64, number: u64) -> Verdict {
        let (verdict, latest) = table.verdict(hash, number);
        // What is told without a lock is never better.
        assert!(latest > number || verdict == Verdict::Good, "{hash} {number}");
        verdict
    }

    #[test]
    fn a_response_is_good_as_long_as_its_number_is_not_below_the_entrys() {
        let table = Table::default();
        table.note(1, How::Validate(AT), || 5);
        table.note(2, How::Remove, || 6);
        table.note(2, How::Validate(AT), || 7);
        for (hash, number, expected) in [
            (1, 4, INVALID),
            (1, 5, Verdict::Good),
            (2, 5, Verdict::Gone),
            (2, 6, INVALID),
            (2, 7, Verdict::Good),
            (3, 0, Verdict::Good),
            (1 + SLOTS as u64, 0, Verdict::Good),
        ] {
            assert_eq!(verdict(&table, hash, number), expected, "{hash} {number}");
        }
        table.note(1, How::Validate(None), || 4);
        assert_eq!(verdict(&table, 1, 4), INVALID, "a later one is not undone by an earlier one");
    }

    #[test]
    fn what_has_no_room_is_validated() {
        let table = Table::default();
        let of_one_shard = |k: u64| k * SHARDS as u64;
        for k in 0..=ENTRIES_MAX as u64 {
            table.note(of_one_shard(k), How::Validate(AT), || k + 1);
        }
        let other = of_one_shard(9999);
        assert_eq!(verdict(&table, other, 0), UNPROVEN, "the first has made room");
        assert_eq!(verdict(&table, other, 1), Verdict::Good);
        assert_eq!(verdict(&table, of_one_shard(1), 1), INVALID);
        assert_eq!(verdict(&table, 1, 0), Verdict::Good, "of another shard");
    }
}
