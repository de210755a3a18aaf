//! Predicates that have nothing left to be compared with are forgotten.
//!
//! In: a walk through everything that is stored. Out: which predicates no stored response needs any more. A response with a smaller number
//! than a predicate, which was not compared with it yet, lies in a store or is being fetched. So a predicate may go once a walk that
//! began after it has met everything, what it concerned is gone, and all fetches from before it have ended. One that
//! a response still owes its staleness to stays.
//! What a journal brings back while a walk is under way comes with responses that the walk may have missed: then nothing goes.

use larder_cache::{StoredHead, Verdict};
use larder_store::CacheKey;

use super::counter::Invalidations;
use super::kind::Subject;
use super::predicates::{EXACT_MAX, Numbers, PATTERNS_MAX};

/// One walk.
#[derive(Debug)]
pub(crate) struct StoreWalk {
    /// Predicates with higher numbers are not forgotten by it.
    upto: u64,
    /// The last number when it began: what has one up to this is met by all of it.
    last: u64,
    /// A response that was cleared in this state was compared with all that are judged.
    pub(crate) state: u64,
    /// How often a journal had brought something back when it began.
    taken_over: u64,
    /// Predicates that responses are stale by.
    needed: Numbers,
    /// The floor when it began.
    floor: u64,
    /// Something is older than the floor, and is validated for that.
    has_unproven: bool,
    /// Nothing was missed so far.
    is_whole: bool,
}

impl StoreWalk {
    /// The last number of all when it began.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Something was there that could not be looked at.
    pub(crate) fn missed(&mut self) {
        self.is_whole = false;
    }
}

impl Invalidations {
    /// Begins a walk. `oldest` gives the lowest number of a fetch under way, where there is one: it is asked after the last number of
    /// this walk is known, so that whatever begins later has a higher one.
    pub(crate) fn begin_walk(&self, oldest: impl FnOnce() -> Option<u64>) -> StoreWalk {
        let taken_over = *self.taken_over.lock();
        let (last, state) = self.entered();
        StoreWalk {
            upto: oldest().map_or(last, |oldest| oldest.min(last)),
            last,
            state,
            taken_over,
            floor: self.predicates.floor(),
            needed: Numbers::default(),
            has_unproven: false,
            is_whole: true,
        }
    }

    /// A response was met that stays, and is not good.
    pub(crate) fn note_needed(
        &self,
        walk: &mut StoreWalk,
        (key, head, number): (&CacheKey, &StoredHead, u64),
        verdict: Verdict,
    ) {
        walk.has_unproven |= verdict == Verdict::Unproven;
        self.predicates.each_concerning(&Subject { key, head: Some(head) }, number, &mut |number| {
            walk.needed.insert(number);
        });
        if walk.needed.len() > 2 * (EXACT_MAX + PATTERNS_MAX) {
            walk.missed();
        }
    }

    /// Ends it, and forgets what is not needed. Whether journals have so many notes of that that they should take stock.
    pub(crate) fn end_walk(&self, walk: StoreWalk) -> bool {
        let taken_over = self.taken_over.lock();
        if !walk.is_whole || *taken_over != walk.taken_over {
            return false;
        }
        let floor = (!walk.has_unproven).then_some(walk.floor);
        self.predicates.retire(walk.upto, &walk.needed, floor)
    }
}
