//! S3-FIFO: who is evicted next.
//!
//! ```text
//!   new ---> small (a tenth) --used--> main --used--> main again, one use less
//!              |                         |
//!              | unused                  | unused
//!              v                         v
//!            ghost (names only)         out
//!              |  comes back
//!              +---------> main
//! ```
//! A queue holds tickets, not items: an item that was removed or replaced leaves its ticket behind, which is thrown
//! away when its turn comes. Tickets carry the item's number, so that a reused slot is never mistaken for its
//! predecessor.

use std::collections::VecDeque;

use hashbrown::HashSet;

/// Names a place in the shard and who lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) slot: usize,
    pub(super) number: u64,
}

/// Which queue an item is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FifoQueue {
    Small,
    Main,
}

/// Evicted lately: hashes in order of leaving, bounded by the number of items that stay.
#[derive(Default)]
pub(super) struct Ghost {
    order: VecDeque<u64>,
    present: HashSet<u64, foldhash::fast::RandomState>,
}

impl Ghost {
    /// Remembers at least so many names, so that a small cache still learns.
    const MIN: usize = 64;

    pub(super) fn remember(&mut self, hash: u64, items: usize) {
        if self.present.insert(hash) {
            self.order.push_back(hash);
        }
        while self.order.len() > items.max(Self::MIN) {
            if let Some(oldest) = self.order.pop_front() {
                self.present.remove(&oldest);
            }
        }
    }

    /// Whether `hash` left lately. Its place in the order stays until it ages out, which only shortens the memory.
    pub(super) fn recall(&mut self, hash: u64) -> bool {
        self.present.remove(&hash)
    }
}

/// The two queues of a shard.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) small: VecDeque<Ticket>,
    pub(super) main: VecDeque<Ticket>,
    pub(super) ghost: Ghost,
}

impl Queues {
    pub(super) fn push(&mut self, queue: FifoQueue, ticket: Ticket) {
        match queue {
            FifoQueue::Small => self.small.push_back(ticket),
            FifoQueue::Main => self.main.push_back(ticket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_recalled_once_and_ages_out() {
        let mut ghost = Ghost::default();
        ghost.remember(7, 0);
        assert!(ghost.recall(7));
        assert!(!ghost.recall(7));
        for hash in 0..=Ghost::MIN as u64 {
            ghost.remember(hash + 100, 0);
        }
        assert!(!ghost.recall(100), "the oldest has aged out");
        assert!(ghost.recall(101));
    }
}
