//! What a stored response remembers: in which state of the tables no invalidation concerned it.
//!
//! In: that, and the tables. Out: whether they have to be looked at; and what they say, which the response then remembers. A response
//! that remembers a state was compared with all that had been entered before it. So nothing that is entered later is missed.
//! What was found before predicates were forgotten, and is compared afterwards, may have been named by them: the walk after which they
//! went has taken it out meanwhile. So whoever looks notes first how far they had been forgotten ([`Forgotten`]).

use larder_cache::Verdict;

use super::counter::Invalidations;
use super::kind::Subject;
use super::sync::Judged;

/// How far predicates had been forgotten when something could still be found: it is judged by that.
/// Nothing yet, by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forgotten(u64);

impl Invalidations {
    /// How far predicates are forgotten now; to be asked before something is looked for.
    #[inline(always)]
    pub(crate) fn forgotten(&self) -> Forgotten {
        Forgotten(self.predicates.forgotten())
    }

    /// Whether what has named a response with this number, found at `since`, is still among the predicates. To be asked after these were
    /// compared with it.
    pub(super) fn remembers(&self, number: u64, since: Forgotten) -> bool {
        self.predicates.forgotten() <= number.max(since.0)
    }

    /// Whether nothing was entered since the response with this hash and number was last found to be good.
    #[inline(always)]
    pub(super) fn is_known_good(&self, judged: &Judged, hash: u64, number: u64) -> bool {
        let latest = self.table.latest(hash);
        (latest <= number || judged.is_good_at(latest)) && judged.is_cleared_at(self.predicates.state())
    }

    /// Compares it with everything. `None` where something was forgotten since that may have named it.
    pub(super) fn look_closer(
        &self,
        judged: &Judged,
        subject: &Subject<'_>,
        (number, since): (u64, Forgotten),
    ) -> Option<Verdict> {
        let (of_base, latest) = self.table.verdict(subject.key.hash(), number);
        if of_base == Verdict::Good {
            judged.note_good_at(latest);
        }
        let (of_predicates, state) = self.predicates.verdict(subject, number, Some(judged.cleared_at()));
        if !self.remembers(number, since) {
            return None;
        }
        if of_predicates == Verdict::Good {
            judged.note_cleared_at(state);
        }
        Some(of_base.and(of_predicates))
    }
}
