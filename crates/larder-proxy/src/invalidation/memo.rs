//! What a stored response remembers: in which state of the tables no invalidation concerned it.
//!
//! In: that, and the tables. Out: whether they have to be looked at; and what they say, which the response then remembers. A response
//! that remembers a state was compared with all that had been entered before it. So nothing that is entered later is missed.

use larder_cache::Verdict;

use super::counter::Invalidations;
use super::kind::Subject;
use super::sync::Judged;

impl Invalidations {
    /// Whether nothing was entered since the response with this hash and number was last found to be good.
    #[inline(always)]
    pub(super) fn is_known_good(&self, judged: &Judged, hash: u64, number: u64) -> bool {
        let latest = self.table.latest(hash);
        (latest <= number || judged.is_good_at(latest)) && judged.is_cleared_at(self.predicates.state())
    }

    /// Compares it with everything.
    pub(super) fn look_closer(&self, judged: &Judged, subject: &Subject<'_>, number: u64) -> Verdict {
        let (of_base, latest) = self.table.verdict(subject.key.hash(), number);
        if of_base == Verdict::Good {
            judged.note_good_at(latest);
        }
        let (of_predicates, state) = self.predicates.verdict(subject, number);
        if of_predicates == Verdict::Good {
            judged.note_cleared_at(state);
        }
        of_base.and(of_predicates)
    }
}
