//! The memory as what queues of tiers borrow of.
//!
//! In: so many bytes. Out: what the memory itself would give: of what is free, or by evicting.

use std::sync::Arc;

use larder_tier::backlog::Lender;

use super::MemoryStore;
use crate::budget::{Budget, Reservation};

impl Lender for MemoryStore {
    fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn make_room(&self, bytes: u64) -> Option<Reservation> {
        Self::make_room(self, bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use larder_tier::backlog::{Backlog, Borrowing};

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
    fn lending_holds_no_handle_of_the_memory_that_could_be_the_last() {
        let memory = memory(4000);
        let backlog = Backlog::of(&memory);
        let held = memory.reserve(3500).unwrap();
        drop(memory);
        assert!(backlog.lend(501).is_none() && backlog.lend(500).is_some());
        assert!(!backlog.make_room(1), "there is nobody who could evict");
        drop(held);
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
