//! One shard of the index: base keys to items, items in a slab, tickets in the eviction queues.
//!
//! Everything here runs under the shard's lock and is bounded by what a single key or a single eviction needs.

mod page;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use hashbrown::HashTable;
use larder_cache::Fit;
use slab::Slab;
use smallvec::SmallVec;

use super::hot::Held;
use super::queue::{FifoQueue, Queues, Ticket};
use super::selection::Selection;
use crate::budget::Reservation;
use crate::key::CacheKey;
use crate::stored::StoredResponse;
use larder_tier::key::VARIANTS_MAX;
pub(super) use page::Lying;

/// The most places that a walk through a shard looks at under one hold of its lock.
const SLICE_ENTRIES: usize = 256;

/// Uses beyond this make no difference to eviction.
const USES_MAX: u8 = 3;

/// What lies under a key.
pub(super) enum Item {
    Response(Arc<StoredResponse>),
    /// "Do not queue for this one", until a moment of the monotonic clock.
    Mark {
        until: Duration,
        room: Reservation,
    },
}

impl Item {
    pub(super) fn response(&self) -> Option<&Arc<StoredResponse>> {
        match self {
            Self::Response(response) => Some(response),
            Self::Mark { .. } => None,
        }
    }

    pub(super) fn into_response(self) -> Option<Arc<StoredResponse>> {
        match self {
            Self::Response(response) => Some(response),
            Self::Mark { .. } => None,
        }
    }

    pub(super) fn is_mark(&self) -> bool {
        matches!(self, Self::Mark { .. })
    }

    /// Bytes counted for it.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Response(response) => response.room.bytes() + response.body.memory_bytes(),
            Self::Mark { room, .. } => room.bytes(),
        }
    }
}

struct IndexEntry {
    item: Item,
    number: u64,
    base_hash: u64,
    key_hash: u64,
    queue: FifoQueue,
    uses: AtomicU8,
    /// Asked for since the last sweep for what is idle.
    is_asked_for: AtomicBool,
    /// Sweeps since it was asked for.
    idle_sweeps: u8,
}

/// The items of one full key: at most [`VARIANTS_MAX`] responses and a mark.
struct Key {
    hash: u64,
    base_len: usize,
    bytes: Box<[u8]>,
    /// Oldest first.
    slots: SmallVec<[usize; 1]>,
}

impl Key {
    fn base(&self) -> &[u8] {
        self.bytes.get(..self.base_len).unwrap_or_default()
    }
}

/// The full keys of one base, by hash alone: who uses them looks at the keys themselves. Hashes of keys that are gone
/// stay until they are as many as the others, so that taking out one of very many costs nothing.
struct Base {
    hash: u64,
    keys: SmallVec<[u64; 1]>,
    live: usize,
}

/// A shard.
#[derive(Default)]
pub(super) struct IndexShard {
    keys: HashTable<Key>,
    bases: HashTable<Base>,
    entries: Slab<IndexEntry>,
    queues: Queues,
    small_bytes: u64,
    main_bytes: u64,
    responses: u64,
    next_number: u64,
}

impl IndexShard {
    pub(super) fn responses(&self) -> u64 {
        self.responses
    }

    /// Bytes that the items here are counted with.
    pub(super) fn bytes(&self) -> u64 {
        self.small_bytes + self.main_bytes
    }

    fn key(&self, key: &CacheKey) -> Option<&Key> {
        self.keys.find(key.full_hash(), |own| *own.bytes == *key.bytes())
    }

    /// What was found, and whether there is nothing more to learn from another look: it is all that lies under the key, and
    /// its use counts fully.
    pub(super) fn lookup(
        &self,
        key: &CacheKey,
        now: Duration,
        fit: impl Fn(&StoredResponse) -> Option<Fit>,
        is_fresh: impl Fn(&StoredResponse) -> bool,
    ) -> (Selection, bool) {
        let Some(own) = self.key(key) else {
            let is_known = self.bases.find(key.hash(), |base| base.hash == key.hash()).is_some();
            return (if is_known { Selection::OtherVariant } else { Selection::Absent }, false);
        };
        let is_alone = own.slots.len() == 1;
        let mut best: Option<(Fit, &IndexEntry, &Arc<StoredResponse>)> = None;
        let mut others = SmallVec::new();
        let mut marked = false;
        for entry in own.slots.iter().rev().filter_map(|slot| self.entries.get(*slot)) {
            match &entry.item {
                Item::Response(response) => match fit(response) {
                    Some(fit) => {
                        let fit = if is_alone { fit } else { fit.where_fresh(is_fresh(response)) };
                        if best.is_none_or(|(before, ..)| fit > before) {
                            best = Some((fit, entry, response));
                        }
                        if fit == Fit::BEST {
                            break;
                        }
                    }
                    None => others.push(Arc::clone(response)),
                },
                Item::Mark { until, .. } => marked |= now < *until,
            }
        }
        if let Some((_, entry, response)) = best {
            if !entry.is_asked_for.load(Ordering::Relaxed) {
                entry.is_asked_for.store(true, Ordering::Relaxed);
            }
            let is_settled = entry.uses.load(Ordering::Relaxed) >= USES_MAX;
            if !is_settled {
                entry.uses.fetch_add(1, Ordering::Relaxed);
            }
            let held = Held::Shared(Arc::clone(response));
            return (Selection::Selected(held), is_settled && is_alone);
        }
        let found = match (marked, others.is_empty()) {
            (true, _) => Selection::HitForMiss,
            (false, false) => Selection::VaryMiss(others),
            (false, true) => Selection::Absent,
        };
        (found, false)
    }

    /// What lies under a key, newest first, and whether a mark is among it.
    pub(super) fn responses_of(
        &self,
        key: &CacheKey,
        now: Duration,
    ) -> (SmallVec<[Arc<StoredResponse>; 4]>, bool) {
        let mut responses = SmallVec::new();
        let mut marked = false;
        let slots = self.key(key).into_iter().flat_map(|own| own.slots.iter().rev());
        for entry in slots.filter_map(|slot| self.entries.get(*slot)) {
            match &entry.item {
                Item::Response(response) => responses.push(Arc::clone(response)),
                Item::Mark { until, .. } => marked |= now < *until,
            }
        }
        (responses, marked)
    }

    pub(super) fn insert(&mut self, key: &CacheKey, item: Item) {
        let (base_hash, key_hash) = (key.hash(), key.full_hash());
        let queue = if self.queues.ghost.recall(key_hash) { FifoQueue::Main } else { FifoQueue::Small };
        *self.bytes_of(queue) += item.bytes();
        self.responses += u64::from(!item.is_mark());
        self.next_number += 1;
        let number = self.next_number;
        let uses = AtomicU8::new(0);
        let (is_asked_for, idle_sweeps) = (AtomicBool::new(true), 0);
        let slot = self.entries.insert(IndexEntry {
            item,
            number,
            base_hash,
            key_hash,
            queue,
            uses,
            is_asked_for,
            idle_sweeps,
        });
        self.queues.push(queue, Ticket { slot, number });
        let own = self.keys.entry(key_hash, |own| *own.bytes == *key.bytes(), |own| own.hash);
        let own = match own {
            hashbrown::hash_table::Entry::Occupied(own) => own,
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let bytes = key.bytes().into();
                let own = Key { hash: key_hash, base_len: key.base().len(), bytes, slots: SmallVec::new() };
                let base = self.bases.entry(base_hash, |base| base.hash == base_hash, |base| base.hash);
                let base = base.or_insert_with(|| Base { hash: base_hash, keys: SmallVec::new(), live: 0 });
                let base = base.into_mut();
                base.keys.push(key_hash);
                base.live += 1;
                vacant.insert(own)
            }
        };
        own.into_mut().slots.push(slot);
    }

    /// Swaps a response for its update in place: its queue and its uses stay.
    pub(super) fn replace(
        &mut self,
        key: &CacheKey,
        old: &Arc<StoredResponse>,
        new: Arc<StoredResponse>,
    ) -> Option<Arc<StoredResponse>> {
        let is_old = |slot: &usize| {
            let item = self.entries.get(*slot).and_then(|entry| entry.item.response());
            item.is_some_and(|response| response.is_same(old))
        };
        let slot = self.key(key)?.slots.iter().copied().find(is_old)?;
        let (before, after, queue) = {
            let entry = self.entries.get_mut(slot)?;
            let before = entry.item.bytes();
            entry.item = Item::Response(new);
            (before, entry.item.bytes(), entry.queue)
        };
        let bytes = self.bytes_of(queue);
        *bytes = bytes.saturating_sub(before) + after;
        Some(Arc::clone(old))
    }

    /// Whether there is an item under this key that `which` names.
    pub(super) fn has(&self, key: &CacheKey, which: impl Fn(&Item) -> bool) -> bool {
        let slots = self.key(key).into_iter().flat_map(|own| &own.slots);
        slots.filter_map(|slot| self.entries.get(*slot)).any(|entry| which(&entry.item))
    }

    /// Takes out the items under this key that `which` names.
    pub(super) fn remove(&mut self, key: &CacheKey, which: impl Fn(&Item) -> bool, dropped: &mut Vec<Item>) {
        let Some(own) = self.key(key) else { return };
        let is_named = |slot: &usize| self.entries.get(*slot).is_some_and(|entry| which(&entry.item));
        let slots: SmallVec<[usize; 8]> = own.slots.iter().copied().filter(is_named).collect();
        dropped.extend(slots.into_iter().filter_map(|slot| self.take(slot)));
    }

    /// Whether there is a key whose base has the hash of this one.
    pub(super) fn has_base(&self, key: &CacheKey) -> bool {
        self.bases.find(key.hash(), |base| base.hash == key.hash()).is_some()
    }

    /// Takes out everything under the base.
    pub(super) fn remove_base(&mut self, key: &CacheKey, dropped: &mut Vec<Item>) {
        let Some(base) = self.bases.find(key.hash(), |base| base.hash == key.hash()) else {
            return;
        };
        let mut slots = Vec::new();
        for hash in &base.keys {
            // Two bases may share a hash; and a hash may stand for a key that came back.
            let own = self.keys.find(*hash, |own| own.hash == *hash && own.base() == key.base());
            slots.extend(own.into_iter().flat_map(|own| own.slots.iter().copied()));
        }
        dropped.extend(slots.into_iter().filter_map(|slot| self.take(slot)));
    }

    /// Takes out the oldest items under this key until another has a place; says how many went.
    pub(super) fn make_way_for_variant(&mut self, key: &CacheKey, dropped: &mut Vec<Item>) -> u64 {
        let Some(own) = self.key(key) else { return 0 };
        let surplus = (own.slots.len() + 1).saturating_sub(VARIANTS_MAX);
        let slots: SmallVec<[usize; 8]> = own.slots.iter().copied().take(surplus).collect();
        dropped.extend(slots.into_iter().filter_map(|slot| self.take(slot)));
        surplus as u64
    }

    fn bytes_of(&mut self, queue: FifoQueue) -> &mut u64 {
        match queue {
            FifoQueue::Small => &mut self.small_bytes,
            FifoQueue::Main => &mut self.main_bytes,
        }
    }

    fn take(&mut self, slot: usize) -> Option<Item> {
        let entry = self.entries.try_remove(slot)?;
        let bytes = self.bytes_of(entry.queue);
        *bytes = bytes.saturating_sub(entry.item.bytes());
        self.responses -= u64::from(!entry.item.is_mark());
        let found = self.keys.find_entry(entry.key_hash, |own| own.slots.contains(&slot));
        if let Ok(mut own) = found {
            own.get_mut().slots.retain(|other| *other != slot);
            if own.get().slots.is_empty() {
                own.remove();
                self.forget_key(entry.base_hash);
            }
        }
        self.sweep_tickets();
        Some(entry.item)
    }

    /// A key of this base is gone.
    fn forget_key(&mut self, base_hash: u64) {
        let Ok(mut found) = self.bases.find_entry(base_hash, |base| base.hash == base_hash) else {
            return;
        };
        let base = found.get_mut();
        base.live -= 1;
        if base.live == 0 {
            found.remove();
        } else if base.keys.len() >= 2 * base.live + 8 {
            let mut seen = hashbrown::HashSet::with_hasher(foldhash::fast::RandomState::default());
            let keys = &self.keys;
            base.keys
                .retain(|hash| seen.insert(*hash) && keys.find(*hash, |own| own.hash == *hash).is_some());
        }
    }

    /// Replaced and removed items leave tickets behind; more dead ones than live ones are swept out.
    fn sweep_tickets(&mut self) {
        let tickets = self.queues.small.len() + self.queues.main.len();
        if tickets > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            let lives = |ticket: &Ticket| entries.get(ticket.slot).is_some_and(|e| e.number == ticket.number);
            self.queues.small.retain(lives);
            self.queues.main.retain(lives);
        }
    }

    /// The places of items from `from` on that a walk looks at before it releases the lock, and where it goes on; nothing
    /// behind the last of them.
    pub(super) fn slice(&self, from: usize) -> (std::ops::Range<usize>, Option<usize>) {
        let end = self.entries.capacity();
        let to = end.min(from.saturating_add(SLICE_ENTRIES));
        (from..to, (to < end).then_some(to))
    }

    /// Of a slice, the keys of responses that have been used since their last turn in the queues, each with the length of its
    /// base. A key with several responses may be there as often.
    pub(super) fn used(&self, slice: std::ops::Range<usize>) -> Vec<(Box<[u8]>, usize)> {
        let used = slice.filter_map(|slot| {
            let entry = self.entries.get(slot)?;
            let is_used = !entry.item.is_mark() && entry.uses.load(Ordering::Relaxed) > 0;
            let own = || self.keys.find(entry.key_hash, |own| own.slots.contains(&slot));
            is_used.then(own).flatten()
        });
        used.map(|own| (own.bytes.clone(), own.base_len)).collect()
    }

    /// Of a slice, the responses of which it is not known that no purge concerned them when the list of purges was in this state; each
    /// with its key and the length of that key's base.
    pub(super) fn not_cleared_at(
        &self,
        slice: std::ops::Range<usize>,
        state: u64,
    ) -> Vec<(Box<[u8]>, usize, Arc<StoredResponse>)> {
        let found = slice.filter_map(|slot| {
            let entry = self.entries.get(slot)?;
            let response = entry.item.response().filter(|response| !response.judged.is_cleared_at(state))?;
            let own = self.keys.find(entry.key_hash, |own| own.slots.contains(&slot))?;
            Some((own.bytes.clone(), own.base_len, Arc::clone(response)))
        });
        found.collect()
    }

    /// Takes out of a slice what nobody has asked for through so many sweeps, this one included.
    /// Gives back what goes, each with the hash of its base.
    pub(super) fn sweep_idle(&mut self, slice: std::ops::Range<usize>, sweeps: u8) -> Vec<(Item, u64)> {
        let mut idle = Vec::new();
        for slot in slice {
            let Some(entry) = self.entries.get_mut(slot) else { continue };
            entry.idle_sweeps = match std::mem::take(entry.is_asked_for.get_mut()) {
                true => 0,
                false => entry.idle_sweeps.saturating_add(1),
            };
            if entry.idle_sweeps >= sweeps {
                idle.push((slot, entry.base_hash));
            }
        }
        idle.into_iter().filter_map(|(slot, url)| Some((self.take(slot)?, url))).collect()
    }

    /// One move of the queues: takes out the item whose turn it is, or gives it another round for having been used.
    /// With `force` there is no other round.
    pub(super) fn step(&mut self, force: bool) -> Step {
        loop {
            let small_is_due = self.small_bytes * 10 >= self.small_bytes + self.main_bytes;
            let from_small = !self.queues.small.is_empty() && (small_is_due || self.queues.main.is_empty());
            let ticket =
                if from_small { self.queues.small.pop_front() } else { self.queues.main.pop_front() };
            let Some(ticket) = ticket else { return Step::Empty };
            let items = self.entries.len();
            let Some(entry) = self.entries.get_mut(ticket.slot).filter(|e| e.number == ticket.number) else {
                continue;
            };
            let uses = entry.uses.get_mut();
            if force || *uses == 0 || (from_small && *uses == 1) {
                let hash = entry.key_hash;
                if from_small {
                    self.queues.ghost.remember(hash, items);
                }
                let url = entry.base_hash;
                return self.take(ticket.slot).map_or(Step::Moved, |item| Step::Evicted(item, url));
            }
            *uses -= 1;
            if from_small {
                *uses = 0;
                entry.queue = FifoQueue::Main;
                let bytes = entry.item.bytes();
                self.small_bytes = self.small_bytes.saturating_sub(bytes);
                self.main_bytes += bytes;
            }
            self.queues.main.push_back(ticket);
            return Step::Moved;
        }
    }
}

/// What one move of the queues came to.
pub(super) enum Step {
    /// An item, and the hash of its base.
    Evicted(Item, u64),
    Moved,
    Empty,
}
