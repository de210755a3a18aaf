//! The memory store: one index for all workers, in shards, under one cap.
//!
//! In: stored responses whose room was reserved here. Out: handles. The index has two levels: the base key (what an
//! invalidation names) holds items, each with the key's variant: stored responses, and marks that say "do not queue
//! for this one". Eviction is S3-FIFO per shard ("FIFO queues are all you need for cache eviction", SOSP 2023): it
//! resists scans and lets a hit touch one counter only.
//!
//! The cap is one [`Budget`] for the whole store. Room is made before it is used: by evicting, shard after shard, until
//! the reservation fits, or until nothing is left that would free it; then the response is served and not stored.

mod evicted;
mod hot;
mod lending;
mod pace;
mod page;
mod queue;
mod selection;
mod sendable;
mod shard;
#[cfg(test)]
pub(crate) mod tests;
mod usage;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use larder_cache::Fit;
use smallvec::SmallVec;

use crate::budget::{Budget, Reservation};
use crate::fates::{Fate, Fates};
use crate::key::CacheKey;
use crate::lease::Gone;
use crate::promote::Promotions;
use crate::rank::{Rank, RankedRwLock};
use crate::stored::{INDEX_ENTRY_BYTES, StoredBody, StoredResponse};
use evicted::Evicted;
use hot::Version;
pub use hot::{Held, HotCache, HotHandle};
use pace::Pace;
pub(crate) use page::MemoryCursor;
pub use selection::Selection;
use shard::{IndexShard, Item, Step};
pub use usage::Usage;

/// A power of two, so that the top bits of a hash choose.
const SHARDS: usize = 64;

/// Shards that are compared to find the one to take from.
const CHOICES: usize = 4;

/// Moves of the queues before eviction stops caring for use.
const PATIENT_STEPS: usize = 8 * SHARDS;

/// What a memory store is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStoreSettings {
    /// The cap, in bytes, on everything kept.
    pub memory: u64,
    /// The largest body taken, in bytes.
    pub max_object: u64,
}

/// A shard, and what is readable without its lock: how full it is, since eviction takes from the fuller ones, and how
/// often it was changed.
struct CountedShard {
    shard: RankedRwLock<IndexShard>,
    bytes: AtomicU64,
    changes: AtomicU64,
}

impl Default for CountedShard {
    fn default() -> Self {
        let shard = RankedRwLock::new(Rank::Shard, IndexShard::default());
        Self { shard, bytes: AtomicU64::new(0), changes: AtomicU64::new(0) }
    }
}

impl CountedShard {
    fn change<R>(&self, change: impl FnOnce(&mut IndexShard) -> R) -> R {
        let mut shard = self.shard.write();
        let result = change(&mut shard);
        self.bytes.store(shard.bytes(), Ordering::Relaxed);
        // Under the lock still: who reads the new number finds what it stands for.
        self.changes.fetch_add(1, Ordering::Release);
        result
    }
}

/// The store. Shared by all workers; every method may be called from any of them.
pub struct MemoryStore {
    /// Distinct from every other store of the process.
    number: u64,
    budget: Arc<Budget>,
    max_object: AtomicU64,
    shards: Box<[CountedShard]>,
    next_victim: AtomicUsize,
    evicted: Evicted,
    refused: AtomicU64,
    promotions: Promotions,
    gone: Gone,
    /// Where it is noted what becomes of URLs; nowhere until the process says where.
    fates: OnceLock<Arc<Fates>>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(settings: &MemoryStoreSettings) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            budget: Budget::new(settings.memory),
            max_object: AtomicU64::new(settings.max_object),
            shards: (0..SHARDS).map(|_| CountedShard::default()).collect(),
            next_victim: AtomicUsize::new(0),
            evicted: Evicted::default(),
            refused: AtomicU64::new(0),
            promotions: Promotions::default(),
            gone: Gone::default(),
            fates: OnceLock::new(),
        })
    }

    /// Notes from now on what becomes of URLs. Only the first call counts.
    pub fn note_fates(&self, fates: &Arc<Fates>) {
        let _ = self.fates.set(Arc::clone(fates));
    }

    /// Tells the time for the ages of what is evicted. To be called every second.
    pub(crate) fn tell_time(&self, now: Duration) {
        self.evicted.tell_time(now);
    }

    /// What becomes of the URL with this hash.
    pub(crate) fn note(&self, url: u64, fate: Fate) {
        if let Some(fates) = self.fates.get() {
            fates.note(url, fate);
        }
    }

    /// Takes over new settings and evicts down to a lower cap.
    pub fn resize(&self, settings: &MemoryStoreSettings) {
        self.budget.resize(settings.memory);
        self.max_object.store(settings.max_object, Ordering::Relaxed);
        while self.budget.used() > settings.memory && self.evict_one().is_some() {}
    }

    /// Large bodies on their way here from disks.
    pub(crate) fn promotions(&self) -> &Promotions {
        &self.promotions
    }

    /// The cap, in bytes.
    pub(crate) fn cap(&self) -> u64 {
        self.budget.cap()
    }

    /// The largest body taken, in bytes.
    pub fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed).min(self.budget.cap())
    }

    fn counted(&self, hash: u64) -> &CountedShard {
        // The table inside the shard uses the low bits and the top seven; these lie between.
        &self.shards[(hash >> 48) as usize % SHARDS]
    }

    /// Finds the newest response under `key` for which `selects` holds. Never waits but for the shard's lock; calls
    /// `selects` under it, so it must be quick. With `hot`, the handles of the worker that asks, what it is asked for
    /// most is found there.
    pub fn lookup(
        &self,
        hot: Option<&HotCache>,
        key: &CacheKey,
        now: Duration,
        selects: impl Fn(&StoredResponse) -> bool,
    ) -> Selection {
        self.lookup_best(hot, key, now, |response| selects(response).then_some(Fit::BEST), |_| true)
    }

    /// The same for the response that fits best, what `is_fresh` before what is not, and of those that fit alike the newest.
    /// One that lies alone under its key is compared with none, and not asked whether it is fresh.
    #[inline]
    pub fn lookup_best(
        &self,
        hot: Option<&HotCache>,
        key: &CacheKey,
        now: Duration,
        fit: impl Fn(&StoredResponse) -> Option<Fit>,
        is_fresh: impl Fn(&StoredResponse) -> bool,
    ) -> Selection {
        let counted = self.counted(key.hash());
        let Some(hot) = hot else {
            return counted.shard.read().lookup(key, now, fit, is_fresh).0;
        };
        // Read before the lock is taken: what changes in between makes the handle outdated, never the other way about.
        let version = self.version(key.hash());
        if let Some((handle, is_copy_due)) = hot.find(key, version) {
            if is_copy_due {
                hot.copy(&handle, |bytes| self.make_room(bytes));
            }
            if fit(handle.stored()).is_some() {
                return Selection::Selected(Held::HotCache(handle));
            }
        }
        let (found, is_settled) = counted.shard.read().lookup(key, now, fit, is_fresh);
        match found {
            Selection::Selected(Held::Shared(stored)) if is_settled => {
                let handle =
                    hot.note(key, version, Some(&stored), self.budget.cap(), |hash| self.version(hash));
                Selection::Selected(handle.map_or(Held::Shared(stored), Held::HotCache))
            }
            found => {
                hot.note(key, version, None, self.budget.cap(), |hash| self.version(hash));
                found
            }
        }
    }

    /// The state of the shard of a base's hash.
    fn version(&self, hash: u64) -> Version {
        Version { store: self.number, change: self.counted(hash).changes.load(Ordering::Acquire) }
    }

    /// Changes with all that changes what a look-up under `key` finds. Eviction changes it as well, so that uses are counted again.
    #[inline]
    pub fn change(&self, key: &CacheKey) -> u64 {
        self.version(key.hash()).change
    }

    /// As long as [`MemoryStore::change`] is this, every look-up under `key` that `stored` fits finds it, and nothing is learnt
    /// from making one. `None` where that is not so: something else lies there too, or its use does not count fully yet.
    pub fn settled(&self, key: &CacheKey, stored: &Arc<StoredResponse>, now: Duration) -> Option<u64> {
        // Read before the look-up, as for handles.
        let change = self.change(key);
        let shard = self.counted(key.hash()).shard.read();
        match shard.lookup(key, now, |_| Some(Fit::PLAIN), |_| true) {
            (Selection::Selected(found), true) if Arc::ptr_eq(&found, stored) => Some(change),
            _ => None,
        }
    }

    /// Room for `bytes`, making it by eviction where needed; `None` where it cannot be made.
    pub fn reserve(&self, bytes: u64) -> Option<Reservation> {
        let room = self.make_room(bytes);
        if room.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    /// The same for what is no response: that it is refused is nobody's loss.
    pub(crate) fn make_room(&self, bytes: u64) -> Option<Reservation> {
        if bytes > self.budget.cap() {
            return None;
        }
        // What readers still hold is not freed by evicting it. Giving up after twice the wish (and a little, for
        // small wishes) keeps one request from emptying the store for nothing.
        let mut evicted_bytes = 0;
        let give_up = bytes.saturating_mul(2).saturating_add(64 * 1024);
        loop {
            if let Some(room) = self.budget.reserve(bytes) {
                return Some(room);
            }
            evicted_bytes += (evicted_bytes < give_up).then(|| self.evict_one()).flatten()?;
        }
    }

    /// Room for `bytes` from what is free now, without evicting.
    pub fn reserve_free(&self, bytes: u64) -> Option<Reservation> {
        self.budget.reserve(bytes)
    }

    /// Items that have gone from the index; what is `kept` there under another head has not. Not to be called under a lock.
    fn let_go(&self, items: impl IntoIterator<Item = Item>, kept: Option<&Arc<StoredBody>>) {
        for response in items.into_iter().filter_map(Item::into_response) {
            let body = Arc::clone(&response.body);
            drop(response);
            if !kept.is_some_and(|kept| Arc::ptr_eq(kept, &body)) {
                self.gone.note(&body, self.budget.cap());
            }
        }
    }

    /// Evicts one item and says how many bytes it was counted with. After some rounds in which everything met was in
    /// use, use no longer protects: room has to be made.
    fn evict_one(&self) -> Option<u64> {
        for step in 0.. {
            match self.victim()?.change(|shard| shard.step(step > PATIENT_STEPS)) {
                Step::Evicted(victim, url) => {
                    if let Some(response) = victim.response() {
                        self.note(url, Fate::Evicted);
                        self.evicted.left_for_room(response);
                    }
                    let bytes = victim.bytes();
                    self.let_go([victim], None);
                    return Some(bytes);
                }
                Step::Moved | Step::Empty => {}
            }
        }
        None
    }

    /// The shard to take from: the fullest of a few, so that all stay about equally full. Taking from one after the
    /// other would let their sizes drift apart, and a shard that has drifted low gives away what is in use.
    fn victim(&self) -> Option<&CountedShard> {
        let start = self.next_victim.fetch_add(1, Ordering::Relaxed);
        let few = (0..CHOICES).filter_map(|k| self.shards.get((start + k * (SHARDS / CHOICES)) % SHARDS));
        let fill = |counted: &&CountedShard| counted.bytes.load(Ordering::Relaxed);
        few.max_by_key(fill)
            .filter(|counted| fill(counted) > 0)
            .or_else(|| self.shards.iter().find(|counted| fill(counted) > 0))
    }

    /// Puts a response into the index, in place of every response of the same variant for which `replaces` holds, and
    /// of marks for that variant; unless `valid` says no. `valid` is asked under the shard's lock: an invalidation
    /// that marks its fetches before it calls [`Self::invalidate`] can therefore never be overtaken. Nor is it stored
    /// where one that it would replace was received later: its body took long to arrive, and time went on without it.
    /// `valid` is asked last: where it says yes, the response is stored. Returns whether it was stored.
    pub fn insert(
        &self,
        key: &CacheKey,
        response: Arc<StoredResponse>,
        replaces: impl Fn(&StoredResponse) -> bool,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        let mut dropped = Vec::new();
        let goes = |item: &Item| item.is_mark() || item.response().is_some_and(|old| replaces(old));
        let received = response.head.freshness.received.monotonic;
        let is_newer = |item: &Item| {
            // All of them are asked about: `valid` may depend on it.
            item.response()
                .is_some_and(|old| replaces(old) && old.head.freshness.received.monotonic > received)
        };
        let body = Arc::clone(&response.body);
        let capped = self.counted(key.hash()).change(|shard| {
            if shard.has(key, is_newer) || !valid() {
                return None;
            }
            shard.remove(key, goes, &mut dropped);
            let capped = shard.make_way_for_variant(key, &mut dropped);
            shard.insert(key, Item::Response(response));
            Some(capped)
        });
        self.let_go(dropped, Some(&body));
        self.evicted.variants.fetch_add(capped.unwrap_or(0), Ordering::Relaxed);
        if capped.is_some() {
            self.note(key.hash(), Fate::Stored);
        }
        capped.is_some()
    }

    /// Puts `new` where `old` is, if `old` is still in the index and `valid`, which is asked last, holds; says whether it
    /// was.
    pub fn replace(
        &self,
        key: &CacheKey,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
        valid: impl FnOnce() -> bool,
    ) -> bool {
        // What is replaced is dropped behind the lock.
        let body = Arc::clone(&new.body);
        let is_old = |item: &Item| item.response().is_some_and(|response| response.is_same(old));
        let replaced = self.counted(key.hash()).change(|shard| {
            (shard.has(key, is_old) && valid()).then(|| shard.replace(key, old, new)).flatten()
        });
        self.let_go(replaced.iter().cloned().map(Item::Response), Some(&body));
        replaced.is_some()
    }

    /// Takes one response out of the index, where it still is, and says whether it was.
    pub fn remove(&self, key: &CacheKey, response: &Arc<StoredResponse>) -> bool {
        let mut dropped = Vec::new();
        let is_it = |item: &Item| item.response().is_some_and(|other| other.is_same(response));
        self.counted(key.hash()).change(|shard| shard.remove(key, is_it, &mut dropped));
        let was_there = !dropped.is_empty();
        self.let_go(dropped, None);
        was_there
    }

    /// Takes the responses under `key` for which `which` holds out of the index. Calls `which` under the shard's lock.
    pub fn discard(&self, key: &CacheKey, which: impl Fn(&StoredResponse) -> bool) {
        let mut dropped = Vec::new();
        let is_named = |item: &Item| item.response().is_some_and(|response| which(response));
        self.counted(key.hash()).change(|shard| shard.remove(key, is_named, &mut dropped));
        self.let_go(dropped, None);
    }

    /// The responses under `key`, newest first, and whether there is a mark at `now` (monotonic). Looking does not count
    /// as use.
    pub fn responses(&self, key: &CacheKey, now: Duration) -> (SmallVec<[Arc<StoredResponse>; 4]>, bool) {
        self.counted(key.hash()).shard.read().responses_of(key, now)
    }

    /// Remembers until `until` (monotonic) that requests for `key` need not queue. Costs a few hundred bytes of room;
    /// where there is none, nothing is remembered.
    pub fn mark_hit_for_miss(&self, key: &CacheKey, until: Duration) {
        let bytes = (INDEX_ENTRY_BYTES + key.base().len() + key.variant().len()) as u64;
        let Some(room) = self.reserve(bytes) else { return };
        let mut dropped = Vec::new();
        self.counted(key.hash()).change(|shard| {
            shard.remove(key, Item::is_mark, &mut dropped);
            shard.insert(key, Item::Mark { until, room });
        });
    }

    /// Whether anything lies under the base of `key`, whatever its variant.
    pub fn has_base(&self, key: &CacheKey) -> bool {
        self.counted(key.hash()).shard.read().has_base(key)
    }

    /// Drops everything under the base of `key`, whatever its variant, and says how many responses that were.
    pub fn invalidate(&self, key: &CacheKey) -> u64 {
        self.invalidate_with(key, || ()).0
    }

    /// The same, and what `beside` does under the shard's lock: whoever inserts under that lock comes before both or after
    /// both.
    pub(crate) fn invalidate_with<R>(&self, key: &CacheKey, beside: impl FnOnce() -> R) -> (u64, R) {
        let mut dropped = Vec::new();
        let done = self.counted(key.hash()).change(|shard| {
            shard.remove_base(key, &mut dropped);
            beside()
        });
        let gone = dropped.iter().filter(|item| item.response().is_some()).count() as u64;
        self.let_go(dropped, None);
        (gone, done)
    }

    /// Calls `each` with the responses of which it is not known that no purge concerned them when the list of purges was in this
    /// state, and with their keys. Not under a lock. Blocks, and pauses at times, so that it slows nobody.
    pub fn each_not_cleared_at(&self, state: u64, mut each: impl FnMut(&CacheKey, &Arc<StoredResponse>)) {
        let mut pace = Pace::begin();
        for counted in &self.shards {
            let mut from = Some(0);
            while let Some(start) = from {
                let found = {
                    let shard = counted.shard.read();
                    let (slice, next) = shard.slice(start);
                    from = next;
                    shard.not_cleared_at(slice, state)
                };
                for (key, base_len, response) in found {
                    each(&CacheKey::of_bytes(&key, base_len), &response);
                }
                pace.rest();
            }
        }
    }

    /// Calls `tell` for the keys of one shard, `turn` around all of them, whose responses have been used lately: the two
    /// levels of each. Without the shard's lock.
    pub(crate) fn used_in(&self, turn: usize, mut tell: impl FnMut(&[u8], &[u8])) {
        let Some(counted) = self.shards.get(turn % SHARDS) else { return };
        let mut from = Some(0);
        while let Some(start) = from {
            let used = {
                let shard = counted.shard.read();
                let (slice, next) = shard.slice(start);
                from = next;
                shard.used(slice)
            };
            for (key, base_len) in used {
                let (base, variant) = key.split_at(base_len.min(key.len()));
                tell(base, variant);
            }
        }
    }

    /// Takes out what nobody has asked for through so many calls of this, this one included. A shard's lock is held for a slice of
    /// its items at a time; handles are looked up anew afterwards, and so are uses of what is hot noticed.
    pub fn sweep_idle(&self, sweeps: u8) {
        for counted in &self.shards {
            let mut from = Some(0);
            while let Some(start) = from {
                let dropped = counted.change(|shard| {
                    let (slice, next) = shard.slice(start);
                    from = next;
                    shard.sweep_idle(slice, sweeps)
                });
                let responses = || dropped.iter().filter(|(item, _)| !item.is_mark());
                responses().for_each(|(_, url)| self.note(*url, Fate::Idle));
                self.evicted.idle.fetch_add(responses().count() as u64, Ordering::Relaxed);
                self.let_go(dropped.into_iter().map(|(item, _)| item), None);
            }
        }
    }

    /// The figures at this moment.
    pub fn usage(&self) -> Usage {
        Usage {
            objects: self.shards.iter().map(|counted| counted.shard.read().responses()).sum(),
            bytes: self.budget.used(),
            max_bytes: self.budget.cap(),
            high_water_bytes: self.budget.high_water(),
            evicted_for_room: self.evicted.for_room.load(Ordering::Relaxed),
            evicted_ages: self.evicted.ages(),
            evicted_variants: self.evicted.variants.load(Ordering::Relaxed),
            evicted_idle: self.evicted.idle.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            promoted: self.promotions.done(),
            let_go: self.gone.let_go(),
        }
    }
}
