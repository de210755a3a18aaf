//! The table of flights, over all workers: who flies for which key, and when one who has waited may go alone.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use larder_store::CacheKey;
use larder_store::rank::{Rank, RankedMutex};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::flight::Flight;

const SHARDS: usize = 64;

/// How far apart requests for one key that would not wait any longer go alone.
const ALONE_EVERY: Duration = Duration::from_secs(1);

/// Turns that a shard remembers before it forgets those that have passed.
const TURNS_KEPT: usize = 64;

pub(super) type Shard = HashMap<u64, SmallVec<[Arc<Flight>; 1]>, foldhash::fast::RandomState>;

/// All flights of a larder, over all workers.
pub(crate) struct Flights {
    shards: Box<[RankedMutex<Shard>]>,
    /// By key: when the next request that has waited long enough may go alone.
    turns: Box<[Mutex<HashMap<u64, Instant, foldhash::fast::RandomState>>]>,
    pub(super) waiters_per_key: usize,
}

impl Flights {
    pub(crate) fn new(waiters_per_key: usize) -> Arc<Self> {
        let turns = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| RankedMutex::new(Rank::Flights, Shard::default())).collect(),
            turns,
            waiters_per_key,
        })
    }

    pub(super) fn shard(&self, hash: u64) -> &RankedMutex<Shard> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// When a request for `key` that has waited for others until `now` may go alone: at once, or in its turn. Turns are
    /// [`ALONE_EVERY`] apart, whatever flights come and go, so that an origin that is slow already is not asked by
    /// everybody; the turn of one whose client leaves is lost.
    pub(crate) fn turn_alone(&self, key: &CacheKey, now: Instant) -> Instant {
        let hash = key.hash();
        let mut turns = self.turns[(hash >> 40) as usize % SHARDS].lock();
        if turns.len() >= TURNS_KEPT {
            turns.retain(|_, next| *next > now);
        }
        let next = turns.entry(hash).or_insert(now);
        let turn = (*next).max(now);
        *next = turn + ALONE_EVERY;
        turn
    }

    /// Flights in the table.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().values().map(|flights| flights.len()).sum::<usize>())
            .sum()
    }

    /// The lowest number of a flight in the table: of the last invalidation before it began.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let of = |shard: &RankedMutex<Shard>| {
            let shard = shard.lock();
            shard.values().flatten().map(|flight| flight.mark.number()).min()
        };
        self.shards.iter().filter_map(of).min()
    }

    /// Clients that wait for a flight in the table, those that caused one included.
    pub(crate) fn waiting(&self) -> usize {
        let of = |flights: &SmallVec<[Arc<Flight>; 1]>| {
            flights.iter().map(|flight| flight.audience.waiters()).sum::<usize>()
        };
        self.shards.iter().map(|shard| shard.lock().values().map(of).sum::<usize>()).sum()
    }

    pub(super) fn remove(&self, flight: &Arc<Flight>) {
        let mut shard = self.shard(flight.key.hash()).lock();
        if let Some(flights) = shard.get_mut(&flight.key.hash()) {
            flights.retain(|other| !Arc::ptr_eq(other, flight));
            if flights.is_empty() {
                shard.remove(&flight.key.hash());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_to_go_alone_are_a_second_apart_for_each_key_whatever_flies() {
        let flights = Flights::new(1);
        let (a, b) = (CacheKey::new("a", "/"), CacheKey::new("b", "/"));
        let start = Instant::now();
        let turn = |key: &CacheKey, ms| flights.turn_alone(key, start + Duration::from_millis(ms)) - start;
        assert_eq!(turn(&a, 100), Duration::from_millis(100));
        assert_eq!(turn(&a, 100), Duration::from_millis(1100));
        assert_eq!(turn(&b, 200), Duration::from_millis(200));
        assert_eq!(turn(&a, 300), Duration::from_millis(2100));
        assert_eq!(turn(&a, 5000), Duration::from_millis(5000));
        // What is remembered stays bounded by what has not passed.
        for key in 0..10_000 {
            turn(&CacheKey::new("c", &format!("/{key}")), 10_000 + key * 1000);
        }
        let kept: usize = flights.turns.iter().map(|turns| turns.lock().len()).sum();
        assert!(kept <= SHARDS * TURNS_KEPT, "{kept}");
    }
}
