//! Predicates that nothing is left for are forgotten.
//!
//! In: the highest number that may go, and the numbers that are needed. Out: room; and whether journals have so many notes of what has
//! gone that they should take stock. Look-ups go on meanwhile: the lock is held for a slice at a time.

use std::sync::Arc;

use super::{EnteredPattern, Numbers, Ordering, Predicates, State};

/// Journals take stock where at least so many of their notes are not needed any more.
const STOCK_MIN: u64 = 1024;
/// Names that are looked at under one hold of the lock.
const SLICE: usize = 256;

impl Predicates {
    /// Forgets what has numbers up to `upto` and is not among `needed`; and the floor, where it is this one and nothing is left below
    /// it. The lock is held for [`SLICE`] names at a time. Whether more was forgotten than is left since this was said last, and not just a few.
    pub(in crate::invalidation) fn retire(&self, upto: u64, needed: &Numbers, floor: Option<u64>) -> bool {
        // Under the lock, as what goes: who finds nothing of it finds this.
        let forget = |number| {
            self.forgotten.fetch_max(number, Ordering::AcqRel);
        };
        self.held.write().retire_patterns(upto, needed, floor, &forget);
        let mut kept = Vec::new();
        while self.held.write().retire_names(upto, needed, &mut kept, &forget) {}
        self.held.write().settle_after_retiring(kept)
    }
}

impl State {
    fn retire_patterns(&mut self, upto: u64, needed: &Numbers, floor: Option<u64>, forget: &impl Fn(u64)) {
        let is_kept = |one: &EnteredPattern| {
            let latest = one.scoped.effects.latest();
            latest > upto || needed.contains(&latest)
        };
        let going = self.patterns.iter().filter(|one| !is_kept(one));
        if let Some(last) = going.map(|one| one.scoped.effects.latest()).max() {
            forget(last);
            let before = self.patterns.len();
            Arc::make_mut(&mut self.patterns).retain(is_kept);
            self.retired += (before - self.patterns.len()) as u64;
        }
        // One that rose meanwhile stands for predicates that responses may be stale by.
        if floor == Some(self.floor) && self.floor <= upto {
            forget(self.floor);
            self.floor_retired = self.floor_retired.max(self.floor);
            self.floor = 0;
        }
    }

    /// The next names, in the order of their numbers; false behind the last. Those that stay go to `kept`.
    fn retire_names(
        &mut self,
        upto: u64,
        needed: &Numbers,
        kept: &mut Vec<(u64, u64)>,
        forget: &impl Fn(u64),
    ) -> bool {
        for _ in 0..SLICE {
            let Some((number, name)) = self.order.pop_front_if(|(number, _)| *number <= upto) else {
                return false;
            };
            let Some(entered) = self.exact.get_mut(&name) else { continue };
            if needed.contains(&number) {
                kept.push((number, name));
                continue;
            }
            forget(number);
            let before = entered.len();
            // One that was entered again stands in the order again.
            entered.retain(|scoped| scoped.effects.latest() != number);
            let gone = before - entered.len();
            if entered.is_empty() {
                self.exact.remove(&name);
            }
            self.names -= gone;
            self.retired += gone as u64;
        }
        true
    }

    /// What stays is the oldest again, and memory is given back. Says whether stock is due.
    fn settle_after_retiring(&mut self, kept: Vec<(u64, u64)>) -> bool {
        kept.into_iter().rev().for_each(|entry| self.order.push_front(entry));
        if self.exact.len() < self.exact.capacity() / 4 {
            self.exact.shrink_to(self.exact.len() * 2);
            self.order.shrink_to(self.order.len() * 2);
        }
        self.scopes.retain(|known| Arc::strong_count(known) > 1);
        let since = self.retired - self.retired_in_stock;
        let is_due = since >= STOCK_MIN.max(self.names as u64);
        if is_due {
            self.retired_in_stock = self.retired;
        }
        is_due
    }
}
