//! What purges have left in memory: taken out, and counted.
//!
//! In: the predicates, and the stores. Out: room, and how many responses each purge concerned. A purge by a tag looks for nothing, so
//! neither is known when it is answered. What is served never depends on this walk. Responses on disks are met when they are asked
//! for.
//! A walk holds a shard's lock for 256 entries at a time, and begins at most every [`PAUSE`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_cache::Verdict;
use larder_store::Store;

use crate::proxy::Proxy;

/// Between two walks.
const PAUSE: Duration = Duration::from_secs(10);

impl Proxy {
    /// Takes what purges have ended out of the memory of these stores, if something was purged since the last walk. To be called
    /// every second, on a thread that serves no client.
    pub fn sweep_purged<'a>(&self, stores: impl Iterator<Item = &'a Arc<Store>>) {
        let Some(mut last) = self.sweeps.last.try_lock() else { return };
        let (now, state) = (self.clock.now().monotonic, self.invalidations.state());
        let is_due = match *last {
            None => state > 0,
            Some((begun, before)) => state != before && now.saturating_sub(begun) >= PAUSE,
        };
        if !is_due {
            return;
        }
        *last = Some((now, state));
        let (before, upto) = (self.sweeps.counted.load(Ordering::Relaxed), self.invalidations.current());
        stores.for_each(|store| self.sweep(store, state, before));
        self.sweeps.counted.store(upto, Ordering::Relaxed);
    }

    fn sweep(&self, store: &Store, state: u64, before: u64) {
        store.memory().each_not_cleared_at(state, |key, response| {
            let verdict = self.invalidations.verdict(key, response);
            if verdict == Verdict::Good {
                return;
            }
            let cause = self.invalidations.cause(key, response);
            if verdict.is_of_use(response.head.validators.etag.is_some()) {
                // It stays, and is met by each walk.
                if let Some(number) = cause.filter(|number| *number > before) {
                    self.purges.softened(number);
                }
                return;
            }
            store.remove(key, response);
            if let Some(number) = cause {
                self.purges.removed(number);
            }
        });
    }
}
