//! What waits to be written behind a store's memory, beyond what each queue has of its own.
//!
//! In: a queue that is full, and wants so many bytes more. Out: the right to hold them, which counts against the store's memory
//! like everything that is kept there, and is at most a quarter of it for all queues of the store together.
//! [`Backlog::lend`] takes what is free and never evicts, since it is called under the locks of those who store;
//! [`Backlog::make_room`] evicts, and is for who holds no lock.

use std::sync::{Arc, Weak};

use crate::budget::{Budget, Reservation};
use crate::memory::MemoryStore;

/// The part of a store's memory that may wait to be written.
const MEMORY_PART: u64 = 4;

/// What the queues of one store may borrow.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// What all of them have borrowed, and the most they may.
    borrowed: Arc<Budget>,
    // The memory holds bodies that hold the disks that hold this.
    memory: Weak<MemoryStore>,
}

/// Bytes that a queue has borrowed; given back on drop.
#[derive(Debug)]
pub(crate) struct Lent {
    borrowed: Reservation,
    memory: Reservation,
}

impl Backlog {
    pub(crate) fn of(memory: &Arc<MemoryStore>) -> Arc<Self> {
        let borrowed = Budget::new(memory.cap() / MEMORY_PART);
        Arc::new(Self { borrowed, memory: Arc::downgrade(memory) })
    }

    /// The memory has another cap.
    pub(crate) fn resize(&self, memory_bytes: u64) {
        self.borrowed.resize(memory_bytes / MEMORY_PART);
    }

    /// The most that may be borrowed.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.borrowed.cap()
    }

    /// So many bytes of what is free.
    pub(crate) fn lend(&self, bytes: u64) -> Option<Lent> {
        let borrowed = self.borrowed.reserve(bytes)?;
        let memory = self.memory.upgrade()?.reserve_free(bytes)?;
        Some(Lent { borrowed, memory })
    }

    /// Sees to it that so many bytes can be lent, by evicting; false where that is no use.
    pub(crate) fn make_room(&self, bytes: u64) -> bool {
        let may_borrow = self.borrowed.reserve(bytes).is_some();
        may_borrow && self.memory.upgrade().is_some_and(|memory| memory.make_room(bytes).is_some())
    }
}

impl Lent {
    pub(crate) fn bytes(&self) -> u64 {
        self.borrowed.bytes()
    }

    pub(crate) fn absorb(&mut self, more: Self) {
        self.borrowed.absorb(more.borrowed);
        self.memory.absorb(more.memory);
    }

    /// Keeps `bytes` and gives the rest back. Never grows.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        self.borrowed.shrink_to(bytes);
        self.memory.shrink_to(bytes);
    }
}

/// What one queue has: so many bytes of its own, and beyond them what it has borrowed. Behind the queue's lock.
#[derive(Debug, Default)]
pub(crate) struct Borrowing {
    from: Option<Arc<Backlog>>,
    lent: Option<Lent>,
}

impl Borrowing {
    /// From now on it may borrow there.
    pub(crate) fn begin(&mut self, from: &Arc<Backlog>) {
        self.from = Some(Arc::clone(from));
    }

    /// Whether so many bytes may be held, of which `own` need no loan; borrows what is missing.
    pub(crate) fn allows(&mut self, bytes: u64, own: u64) -> bool {
        let missing = bytes.saturating_sub(own).saturating_sub(self.lent());
        if missing == 0 {
            return true;
        }
        let Some(more) = self.from.as_ref().and_then(|from| from.lend(missing)) else { return false };
        match &mut self.lent {
            Some(lent) => lent.absorb(more),
            None => self.lent = Some(more),
        }
        true
    }

    /// No more than so many bytes are held: what was borrowed beyond that goes back.
    pub(crate) fn held(&mut self, bytes: u64, own: u64) {
        match bytes.saturating_sub(own) {
            0 => self.lent = None,
            borrowed => self.lent.iter_mut().for_each(|lent| lent.shrink_to(borrowed)),
        }
    }

    /// Bytes borrowed.
    fn lent(&self) -> u64 {
        self.lent.as_ref().map_or(0, Lent::bytes)
    }

    /// The most that the queue may hold, were it alone.
    pub(crate) fn max_bytes(&self, own: u64) -> u64 {
        own + self.from.as_ref().map_or(0, |from| from.max_bytes())
    }

    /// See [`Backlog::make_room`].
    pub(crate) fn source(&self) -> Option<Arc<Backlog>> {
        self.from.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::memory::MemoryStoreSettings;

    fn memory(bytes: u64) -> Arc<MemoryStore> {
        MemoryStore::new(&MemoryStoreSettings { memory: bytes, max_object: bytes })
    }

    #[test]
    fn all_queues_together_borrow_a_quarter_and_it_counts_against_the_memory() {
        let memory = memory(4000);
        let backlog = Backlog::of(&memory);
        let [mut one, mut other] = [Borrowing::default(), Borrowing::default()];
        assert!(!one.allows(101, 100), "nothing to borrow of yet");
        one.begin(&backlog);
        other.begin(&backlog);
        assert!(one.allows(100, 100) && one.allows(700, 100));
        assert_eq!(memory.usage().bytes, 600);
        assert!(other.allows(500, 100) && !other.allows(501, 100));
        assert_eq!(memory.usage().bytes, 1000);
        one.held(300, 100);
        assert!(other.allows(501, 100));
        assert_eq!(memory.usage().bytes, 601);
        one.held(50, 100);
        drop(other);
        assert_eq!(memory.usage().bytes, 0);
    }

    #[test]
    fn nothing_is_lent_of_what_others_hold() {
        let memory = memory(4000);
        let backlog = Backlog::of(&memory);
        let held = memory.reserve(3500).unwrap();
        assert!(backlog.lend(501).is_none() && backlog.lend(500).is_some());
        assert!(!backlog.make_room(501) && backlog.make_room(500));
        drop(held);
        assert!(!backlog.make_room(1001));
        backlog.resize(400);
        assert!(backlog.lend(101).is_none());
    }
}
