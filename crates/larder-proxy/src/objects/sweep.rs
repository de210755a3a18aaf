//! What purges have left in the stores: taken out, and counted.
//!
//! In: the predicates, and the stores. Out: room, how many responses each purge concerned, and predicates that nothing is left for.
//! A purge by a tag looks for nothing, so none of that is known when it is answered. What is served never depends on these walks.
//! A thread sweeps memory, at most every [`PAUSE`]; a shard's lock is held for 256 entries at a time. Another walks
//! through the tiers: no index there knows tags, so it reads heads, [`BYTES_PER_SECOND`] of them, and gives way to clients. When
//! it has met everything, predicates retire ([`StoreWalk`]).
//! The latter holds stores and worker for one step at a time. So a store can be closed meanwhile, and the process can end. A sweep
//! through memory holds the worker and one store for its length, with its rests.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Version};
use larder_cache::{StoredHead, Verdict};
use larder_http::message::RequestHead;
use larder_http::target::Target;
use larder_store::Store;
use larder_store::walk::Met;

use crate::invalidation::{self, StoreWalk};
use crate::proxy::Proxy;
use crate::purges::{Schedule, Uncounted};
use crate::worker::Worker;

/// Between two sweeps of memory, and between two walks through the tiers; the latter pause as long as the last of them took, if
/// that is longer.
const PAUSE: Duration = Duration::from_secs(10);
/// Until the next walk where nothing was purged since, and the last one left predicates.
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// Heads that are read from tiers.
const BYTES_PER_SECOND: u64 = 8 << 20;
/// What is read for one, in bytes.
const HEAD_BYTES: u64 = 4096;

impl Proxy {
    /// Whether something was purged since the last sweep of memory, which is some time ago.
    fn is_sweep_due(&self, last: Option<(Duration, u64)>) -> bool {
        let (now, state) = (self.clock.now().monotonic, self.invalidations.state());
        match last {
            None => state > 0,
            Some((begun, before)) => state != before && now.saturating_sub(begun) >= PAUSE,
        }
    }

    /// Takes what purges have ended out of the memory of these stores, if that is due.
    pub(crate) fn sweep_memory(&self, stores: &[Weak<Store>]) {
        let Some(mut last) = self.sweeps.last.try_lock() else { return };
        if !self.is_sweep_due(*last) {
            return;
        }
        let (upto, state) = self.invalidations.entered();
        *last = Some((self.clock.now().monotonic, state));
        let uncounted = Uncounted { after: self.sweeps.counted.load(Ordering::Relaxed), upto };
        stores.iter().filter_map(Weak::upgrade).for_each(|store| self.sweep(&store, state, uncounted, None));
        self.sweeps.counted.store(upto, Ordering::Relaxed);
    }

    /// What of it is stale by a purge that was not counted yet is counted; what stays is noted for `walk`.
    fn sweep(&self, store: &Store, state: u64, uncounted: Uncounted, mut walk: Option<&mut StoreWalk>) {
        let since = self.invalidations.forgotten();
        store.memory().each_not_cleared_at(state, |key, response| {
            // Another walk has ended meanwhile, and met it.
            let Some(verdict) = self.invalidations.verdict(key, response, since) else { return };
            if verdict == Verdict::Good {
                return;
            }
            let cause = self.invalidations.cause(key, response);
            if cause.is_some() {
                store.disown(key, response);
            }
            if verdict.is_of_use(response.head.validators.etag.is_some()) {
                // It stays, and is met by each sweep.
                if let Some(number) = cause.filter(|number| uncounted.has(*number)) {
                    self.purges.softened(number);
                }
                if let Some(walk) = &mut walk {
                    self.invalidations.note_needed(walk, (key, &response.head, response.number), verdict);
                }
                return;
            }
            store.remove_for(key, response, invalidation::fate(verdict));
            if let Some(number) = cause {
                self.purges.removed(number);
            }
        });
    }
}

impl Worker {
    /// Takes what purges have ended out of all stores, a little later and a little at a time, if something was purged. To be called every
    /// second; does not wait.
    pub fn sweep_purged(self: &Arc<Self>) {
        let proxy = &self.proxy;
        proxy.fates.tell_time(proxy.clock.now().monotonic);
        let is_sweep_due = proxy.sweeps.last.try_lock().is_some_and(|last| proxy.is_sweep_due(*last));
        if is_sweep_due {
            let (worker, stores) = (Arc::downgrade(self), proxy.reach.stores());
            behind(move || {
                worker.upgrade().into_iter().for_each(|worker| worker.proxy.sweep_memory(&stores))
            });
        }
        if !self.is_walk_due() {
            return;
        }
        let Some(walking) = Walking::begin(&proxy.sweeps.is_walking) else { return };
        // Where this one comes to nothing, the next is not begun at once.
        proxy.sweeps.schedule.lock().next = proxy.clock.now().monotonic + PAUSE;
        let worker = Arc::downgrade(self);
        behind(move || {
            let _walking = walking;
            walk(&worker);
        });
    }

    pub(super) fn is_walk_due(&self) -> bool {
        let proxy = &self.proxy;
        let (now, state) = (proxy.clock.now().monotonic, proxy.invalidations.state());
        let Some(mut schedule) = proxy.sweeps.schedule.try_lock() else { return false };
        let is_purged = state != schedule.walked;
        if is_purged && schedule.pause > PAUSE {
            // It was put off since nothing was to be done.
            schedule.next = schedule.next.min(now + PAUSE);
            schedule.pause = PAUSE;
        }
        (is_purged || proxy.invalidations.has_predicates()) && now >= schedule.next
    }

    /// Whether a response in a tier goes, and what it means for the predicates.
    fn judge_met(&self, walk: &mut StoreWalk, uncounted: Uncounted, met: &Met<'_>) -> bool {
        let proxy = &self.proxy;
        if met.file.is_some_and(|file| file.is_by_hand) {
            proxy.purges.met_by_hand(met.authority.host(), uncounted);
            return false;
        }
        let head = match met.file {
            Some(_) => Cow::Owned(self.by_its_policy(met)),
            None => Cow::Borrowed(met.head),
        };
        let verdict = proxy.invalidations.verdict_of(met.key, &head, met.number);
        if verdict == Verdict::Good {
            return false;
        }
        let cause = proxy.invalidations.cause_of(met.key, &head, met.number);
        if verdict.is_of_use(head.validators.etag.is_some()) {
            proxy.invalidations.note_needed(walk, (met.key, &head, met.number), verdict);
            if let Some(number) = cause.filter(|number| uncounted.has(*number)) {
                proxy.purges.softened(number);
            }
            return false;
        }
        proxy.fates.note(met.key.hash(), invalidation::fate(verdict));
        if let Some(number) = cause {
            proxy.purges.removed(number);
        }
        true
    }

    /// The head of a plain file, read as its site reads fields: which of them are tags is a setting.
    fn by_its_policy(&self, met: &Met<'_>) -> StoredHead {
        let target = met.key.base().get(met.authority.as_str().len()..).unwrap_or_default();
        let target = Target::parse(bytes::Bytes::copy_from_slice(target));
        let Ok(target) = target else { return met.head.clone() };
        let request = RequestHead {
            method: Method::GET,
            scheme: met.scheme,
            authority: met.authority.clone(),
            target,
            version: Version::HTTP_11,
            fields: HeaderMap::new(),
        };
        let plan = Arc::clone(&self.worker_plan.load().plan);
        let Some((_, site)) = plan.router.site(met.authority.host()) else { return met.head.clone() };
        let Ok(settings) = site.settings_for(&request) else { return met.head.clone() };
        let (fields, freshness) = (met.head.all_fields(), met.head.freshness);
        StoredHead::new(&request, met.head.status, fields, freshness, &settings.policy)
    }
}

/// Does something that takes its time on a thread of its own. Without a thread it is not done, and tried again a little later.
fn behind(work: impl FnOnce() + Send + 'static) {
    let _ = std::thread::Builder::new().name("larder-sweep".to_owned()).spawn(work);
}

/// A walk under way, of which there is one at a time. It ends with this, also where the thread panics.
struct Walking(Arc<AtomicBool>);

impl Walking {
    fn begin(is_walking: &Arc<AtomicBool>) -> Option<Self> {
        (!is_walking.swap(true, Ordering::AcqRel)).then(|| Self(Arc::clone(is_walking)))
    }
}

impl Drop for Walking {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Walks through everything once: memory, the tiers, and memory once more, since a look-up may have brought something there from a
/// tier before that was walked through.
pub(super) fn walk(weak: &Weak<Worker>) {
    let (begun, mut walk, uncounted, stores) = {
        let Some(worker) = weak.upgrade() else { return };
        let proxy = &worker.proxy;
        let walk = proxy.invalidations.begin_walk(|| proxy.flights.oldest());
        let uncounted = Uncounted { after: proxy.sweeps.schedule.lock().counted, upto: walk.last() };
        (proxy.clock.now().monotonic, walk, uncounted, proxy.reach.stores())
    };
    let state = walk.state;
    let in_memory = |walk: &mut StoreWalk| {
        let Some(worker) = weak.upgrade() else { return };
        let _turn = worker.proxy.sweeps.last.lock();
        for store in stores.iter().filter_map(Weak::upgrade) {
            // What is stale in memory is counted by the sweeps that come every few seconds.
            worker.proxy.sweep(&store, state, Uncounted::NONE, Some(walk));
        }
    };
    in_memory(&mut walk);
    for store in &stores {
        walk_store(weak, store, uncounted, &mut walk);
    }
    in_memory(&mut walk);
    let Some(worker) = weak.upgrade() else { return };
    let proxy = &worker.proxy;
    let is_stock_due = proxy.invalidations.end_walk(walk);
    if is_stock_due {
        stores.iter().filter_map(Weak::upgrade).for_each(|store| store.take_stock());
    }
    let now = proxy.clock.now().monotonic;
    let mut schedule = proxy.sweeps.schedule.lock();
    let pause = if schedule.walked == state { schedule.pause * 2 } else { PAUSE };
    let pause = pause.max(now.saturating_sub(begun)).clamp(PAUSE, PAUSE_MAX);
    *schedule = Schedule { walked: state, next: now + pause, pause, counted: uncounted.upto };
}

fn walk_store(weak: &Weak<Worker>, weak_store: &Weak<Store>, uncounted: Uncounted, walk: &mut StoreWalk) {
    let settle = |walk: &mut StoreWalk| {
        if !weak_store.upgrade().is_some_and(|store| store.settle()) {
            walk.missed();
        }
    };
    settle(walk);
    let tiers = weak_store.upgrade().map_or(0, |store| store.tier_count());
    for tier in 0..tiers {
        let mut from: Option<String> = None;
        loop {
            let began = Instant::now();
            let walked = {
                // One that is closed keeps its notes, and its journal is believed when it comes back.
                let (Some(worker), Some(store)) = (weak.upgrade(), weak_store.upgrade()) else {
                    return walk.missed();
                };
                let now = worker.proxy.clock.now();
                let mut goes = |met: &Met<'_>| worker.judge_met(walk, uncounted, met);
                let walked = store.walk_tier(tier, from.as_deref(), now, &mut goes);
                if let Some(walked) = &walked {
                    worker.proxy.sweeps.heads.fetch_add(walked.records, Ordering::Relaxed);
                }
                walked
            };
            let Some(walked) = walked else {
                walk.missed();
                break;
            };
            if walked.unseen > 0 {
                walk.missed();
            }
            from = walked.next;
            if from.is_none() {
                break;
            }
            let due = Duration::from_nanos(walked.records * HEAD_BYTES * 1_000_000_000 / BYTES_PER_SECOND);
            std::thread::park_timeout(due.saturating_sub(began.elapsed()));
        }
    }
    // What was told to go is gone.
    settle(walk);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_walk_at_a_time_and_one_that_panics_is_not_the_last() {
        let is_walking = Arc::default();
        let walking = Walking::begin(&is_walking);
        assert!(walking.is_some() && Walking::begin(&is_walking).is_none());
        let panicking = std::thread::spawn(move || {
            let _walking = walking;
            panic!("as a walk might");
        });
        assert!(panicking.join().is_err() && Walking::begin(&is_walking).is_some());
    }
}
