//! The numbers of invalidations, and where what was invalidated is entered.

use super::effects::How;
use super::predicates::{PredicateCounts, Predicates};
use super::sync::{AtomicU64, Mutex, Ordering};
use super::table::Table;

/// The counter, and what was invalidated without being looked for.
#[derive(Debug, Default)]
pub(crate) struct Invalidations {
    pub(super) last: AtomicU64,
    /// What `last` is for as long as nothing was invalidated since larder started. Held while numbers are taken over.
    pub(super) begun: Mutex<u64>,
    /// How often a journal brought something back. Held while that is entered, and while predicates are forgotten.
    pub(super) taken_over: Mutex<u64>,
    pub(super) table: Table,
    pub(super) predicates: Predicates,
}

impl Invalidations {
    /// The number of the last invalidation.
    pub(crate) fn current(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// The same when every predicate up to it is entered, and the state in which they are.
    pub(crate) fn entered(&self) -> (u64, u64) {
        self.predicates.at(|| self.current())
    }

    /// The number of a new one.
    pub(super) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Numbers from now on are higher than `number`, and than what is given back; `None` where something was invalidated
    /// since larder started. In one step: an invalidation that has its number already is seen here.
    pub(crate) fn continue_after(&self, number: u64) -> Option<u64> {
        let mut begun = self.begun.lock();
        let next = number.max(*begun);
        match self.last.compare_exchange(*begun, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                *begun = next;
                Some(next)
            }
            Err(_) => {
                self.last.fetch_max(number, Ordering::AcqRel);
                None
            }
        }
    }

    /// Enters that URLs of this hash were invalidated, under a number that a journal gives.
    pub(super) fn restore_base(&self, hash: u64, how: How, number: u64) {
        self.table.note(hash, how, || number);
    }

    /// Nothing with a smaller number is proven to be good.
    pub(crate) fn restore_all(&self, number: u64) {
        self.predicates.raise_floor(number);
    }

    /// Nothing that was fetched before is proven to be good: purges may have been missed.
    pub(crate) fn raise_floor_to_now(&self) {
        self.predicates.raise_floor(self.next());
    }

    /// Asks for a request whether there is a lease. Where there is none, purges may be missed, and nothing that was fetched before is
    /// proven to be good; that is no loss of predicates. It ends once there is a lease again: then all that was purged meanwhile is in
    /// force, or the floor is raised.
    pub(crate) fn heed(&self, may_use: impl FnOnce() -> bool) -> bool {
        // Before the lease: a later doubt is that of a request which found this lease at its end.
        let doubted = self.predicates.doubted();
        let may_use = may_use();
        if !may_use {
            self.predicates.doubt(self.next());
        } else if doubted > 0 {
            self.predicates.lift(doubted);
        }
        may_use
    }

    /// A number that everything has which is fetched from now on, and nothing that was fetched before: for a request that may not use
    /// the latter without asking the origin.
    pub(crate) fn doubt_for_one(&self) -> u64 {
        let mut begun = self.begun.lock();
        let number = self.next();
        // Nothing was invalidated by that.
        if *begun + 1 == number {
            *begun = number;
        }
        number
    }

    /// Whether any predicate is kept, or a floor.
    pub(crate) fn has_predicates(&self) -> bool {
        let counts = self.predicates.counts();
        counts.names > 0 || counts.patterns > 0 || counts.floor > 0
    }

    /// How many predicates are kept.
    pub(crate) fn predicate_counts(&self) -> PredicateCounts {
        self.predicates.counts()
    }
}
