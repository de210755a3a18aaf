//! One shard of the index: base keys to items, items in a slab, tickets in the eviction queues.
//!
//! Everything here runs under the shard's lock and is bounded by what a single key or a single eviction needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;

use super::queue::{Queue, Queues, Ticket};
use super::{Lookup, VARIANTS_MAX};
use crate::budget::Reservation;
use crate::key::CacheKey;
use crate::stored::StoredResponse;

/// Uses beyond this make no difference to eviction.
const USES_MAX: u8 = 3;

/// What lies under a key.
pub(super) enum Item {
    Response(Arc<StoredResponse>),
    /// "Do not queue for this one", until a moment of the monotonic clock.
    Mark {
        variant: Box<[u8]>,
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

    pub(super) fn is_mark(&self) -> bool {
        matches!(self, Self::Mark { .. })
    }

    fn variant(&self) -> &[u8] {
        match self {
            Self::Response(response) => &response.variant,
            Self::Mark { variant, .. } => variant,
        }
    }

    /// Bytes counted for it.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Response(response) => response.room.bytes() + response.body.length(),
            Self::Mark { room, .. } => room.bytes(),
        }
    }
}

struct Entry {
    item: Item,
    number: u64,
    base_hash: u64,
    queue: Queue,
    uses: AtomicU8,
}

struct Base {
    hash: u64,
    key: Box<[u8]>,
    /// Oldest first.
    slots: SmallVec<[usize; 1]>,
}

/// A shard.
#[derive(Default)]
pub(super) struct Shard {
    bases: HashTable<Base>,
    entries: Slab<Entry>,
    queues: Queues,
    small_bytes: u64,
    main_bytes: u64,
    responses: u64,
    next_number: u64,
}

impl Shard {
    pub(super) fn responses(&self) -> u64 {
        self.responses
    }

    fn base(&self, key: &CacheKey) -> Option<&Base> {
        self.bases.find(key.hash(), |base| *base.key == *key.base())
    }

    pub(super) fn lookup(
        &self,
        key: &CacheKey,
        now: Duration,
        selects: impl Fn(&StoredResponse) -> bool,
    ) -> Lookup {
        let Some(base) = self.base(key) else {
            return Lookup::Absent;
        };
        let mut others = SmallVec::new();
        let (mut marked, mut other_variant) = (false, false);
        for slot in base.slots.iter().rev() {
            let Some(entry) = self.entries.get(*slot) else {
                continue;
            };
            if entry.item.variant() != key.variant() {
                other_variant |= !entry.item.is_mark();
                continue;
            }
            match &entry.item {
                Item::Response(response) if selects(response) => {
                    if entry.uses.load(Ordering::Relaxed) < USES_MAX {
                        entry.uses.fetch_add(1, Ordering::Relaxed);
                    }
                    return Lookup::Selected(Arc::clone(response));
                }
                Item::Response(response) => others.push(Arc::clone(response)),
                Item::Mark { until, .. } => marked |= now < *until,
            }
        }
        if marked {
            Lookup::HitForMiss
        } else if !others.is_empty() {
            Lookup::VaryMiss(others)
        } else if other_variant {
            Lookup::OtherVariant
        } else {
            Lookup::Absent
        }
    }

    pub(super) fn insert(&mut self, key: &CacheKey, item: Item) {
        let queue = if self.queues.ghost.recall(key.hash()) {
            Queue::Main
        } else {
            Queue::Small
        };
        *self.bytes_of(queue) += item.bytes();
        self.responses += u64::from(!item.is_mark());
        self.next_number += 1;
        let number = self.next_number;
        let entry = Entry {
            item,
            number,
            base_hash: key.hash(),
            queue,
            uses: AtomicU8::new(0),
        };
        let slot = self.entries.insert(entry);
        self.queues.push(queue, Ticket { slot, number });
        let base = self
            .bases
            .entry(key.hash(), |base| *base.key == *key.base(), |base| base.hash);
        let base = base.or_insert_with(|| Base {
            hash: key.hash(),
            key: key.base().into(),
            slots: SmallVec::new(),
        });
        base.into_mut().slots.push(slot);
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
            item.is_some_and(|response| Arc::ptr_eq(response, old))
        };
        let slot = self.base(key)?.slots.iter().copied().find(is_old)?;
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

    /// Takes out the items of this variant that `which` names.
    pub(super) fn remove(&mut self, key: &CacheKey, which: impl Fn(&Item) -> bool, dropped: &mut Vec<Item>) {
        let Some(base) = self.base(key) else { return };
        let of_variant = |slot: &usize| {
            let item = self.entries.get(*slot).map(|entry| &entry.item);
            item.is_some_and(|item| item.variant() == key.variant() && which(item))
        };
        let slots: SmallVec<[usize; 8]> = base.slots.iter().copied().filter(of_variant).collect();
        dropped.extend(slots.into_iter().filter_map(|slot| self.take(slot)));
    }

    /// Takes out everything under the base.
    pub(super) fn remove_base(&mut self, key: &CacheKey, dropped: &mut Vec<Item>) {
        let Some(base) = self.base(key) else { return };
        let slots = base.slots.clone();
        dropped.extend(slots.into_iter().filter_map(|slot| self.take(slot)));
    }

    /// Takes out the oldest responses of this variant until another has a place; says how many went.
    pub(super) fn make_way_for_variant(&mut self, key: &CacheKey, dropped: &mut Vec<Item>) -> u64 {
        let Some(base) = self.base(key) else { return 0 };
        let of_variant = |slot: &usize| {
            self.entries
                .get(*slot)
                .is_some_and(|entry| entry.item.variant() == key.variant())
        };
        let slots: SmallVec<[usize; 8]> = base.slots.iter().copied().filter(of_variant).collect();
        let surplus = (slots.len() + 1).saturating_sub(VARIANTS_MAX);
        dropped.extend(slots.into_iter().take(surplus).filter_map(|slot| self.take(slot)));
        surplus as u64
    }

    fn bytes_of(&mut self, queue: Queue) -> &mut u64 {
        match queue {
            Queue::Small => &mut self.small_bytes,
            Queue::Main => &mut self.main_bytes,
        }
    }

    fn take(&mut self, slot: usize) -> Option<Item> {
        let entry = self.entries.try_remove(slot)?;
        let bytes = self.bytes_of(entry.queue);
        *bytes = bytes.saturating_sub(entry.item.bytes());
        self.responses -= u64::from(!entry.item.is_mark());
        let found = self
            .bases
            .find_entry(entry.base_hash, |base| base.slots.contains(&slot));
        if let Ok(mut base) = found {
            base.get_mut().slots.retain(|other| *other != slot);
            if base.get().slots.is_empty() {
                base.remove();
            }
        }
        self.sweep_tickets();
        Some(entry.item)
    }

    /// Replaced and removed items leave tickets behind; more dead ones than live ones are swept out.
    fn sweep_tickets(&mut self) {
        let tickets = self.queues.small.len() + self.queues.main.len();
        if tickets > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            let lives = |ticket: &Ticket| {
                entries
                    .get(ticket.slot)
                    .is_some_and(|e| e.number == ticket.number)
            };
            self.queues.small.retain(lives);
            self.queues.main.retain(lives);
        }
    }

    /// One move of the queues: takes out the item whose turn it is, or gives it another round for having been used.
    /// With `force` there is no other round.
    pub(super) fn step(&mut self, force: bool) -> Step {
        loop {
            let small_is_due = self.small_bytes * 10 >= self.small_bytes + self.main_bytes;
            let from_small = !self.queues.small.is_empty() && (small_is_due || self.queues.main.is_empty());
            let ticket = if from_small {
                self.queues.small.pop_front()
            } else {
                self.queues.main.pop_front()
            };
            let Some(ticket) = ticket else { return Step::Empty };
            let items = self.entries.len();
            let Some(entry) = self
                .entries
                .get_mut(ticket.slot)
                .filter(|e| e.number == ticket.number)
            else {
                continue;
            };
            let uses = entry.uses.get_mut();
            if force || *uses == 0 || (from_small && *uses == 1) {
                let hash = entry.base_hash;
                if from_small {
                    self.queues.ghost.remember(hash, items);
                }
                return self.take(ticket.slot).map_or(Step::Moved, Step::Evicted);
            }
            *uses -= 1;
            if from_small {
                *uses = 0;
                entry.queue = Queue::Main;
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
    Evicted(Item),
    Moved,
    Empty,
}
