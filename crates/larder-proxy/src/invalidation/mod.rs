//! What was invalidated, and what that means for a response (RFC 9111 4.4, RFC 9875).
//!
//! In: invalidations, each with a number from one counter. Out: a [`Verdict`] on a response with a number of its own: that
//! of the last invalidation before its fetch began. Every look-up, every fill and every end of a fetch asks for it.
//! An invalidation names responses without looking for them. What is named by its URL is entered in a [`table`] by the hash of
//! its key's base; everything else is a predicate ([`predicates`]), and each kind of them is a file ([`kinds`]).
//! A response is compared with both when it is found, wherever it lies. An invalidation that removes URLs takes the responses out
//! of the stores as well, after it has marked the fetches under way ([`FetchMark`]). What has to outlive the process is noted
//! in the stores' journals ([`durable`]).

mod base;
mod bounds;
mod counter;
pub(crate) mod durable;
mod effects;
mod fetch;
mod groups;
mod hosts;
mod kind;
mod kinds;
mod memo;
mod paths;
mod patterns;
mod periods;
mod predicates;
mod purged;
mod reach;
mod retire;
mod sync;
mod table;
mod tags;

use std::borrow::Cow;

use larder_cache::{StoredHead, Verdict};
use larder_store::{CacheKey, Fate, StoredResponse};

pub use base::InvalidationKind;
pub(crate) use base::{UnderWay, invalidate};
pub(crate) use counter::Invalidations;
pub(crate) use durable::Writing;
pub(crate) use effects::How;
pub(crate) use fetch::FetchMark;
pub(crate) use groups::note_groups;
use kind::Subject;
pub(crate) use memo::Forgotten;
pub(crate) use periods::Belief;
pub use predicates::PredicateCounts;
pub(crate) use purged::{concerns, how, note_of};
pub use reach::{Heard, Reach};
pub(crate) use reach::{Joined, Trust};
pub(crate) use retire::StoreWalk;

impl Invalidations {
    /// What invalidations have left of a stored response that lies under `key` and was found at `since`. `None` where something was
    /// forgotten since that may have named it: it is used no more than one that is gone.
    #[inline]
    pub(crate) fn verdict(
        &self,
        key: &CacheKey,
        stored: &StoredResponse,
        since: Forgotten,
    ) -> Option<Verdict> {
        match self.is_known_good(&stored.judged, key.hash(), stored.number) {
            true => Some(Verdict::Good),
            false => self.compare(key, stored, since),
        }
    }

    #[cold]
    fn compare(&self, key: &CacheKey, stored: &StoredResponse, since: Forgotten) -> Option<Verdict> {
        let subject = Subject { key, head: Some(&stored.head) };
        let verdict = self.look_closer(&stored.judged, &subject, (stored.number, since))?;
        Some(match verdict {
            Verdict::Invalid { since: Some(since) } => {
                Verdict::Invalid { since: Some(stored.judged.note_invalid(since)) }
            }
            Verdict::Soft { since: Some(since) } => {
                Verdict::Soft { since: Some(stored.judged.note_invalid(since)) }
            }
            other => other,
        })
    }

    /// The same of a response that is not, or not yet, in an index: with this head, to a request for `key`, fetched after
    /// `number`. By the predicates that there are now.
    pub(crate) fn verdict_of(&self, key: &CacheKey, head: &StoredHead, number: u64) -> Verdict {
        let (of_base, _) = self.table.verdict(key.hash(), number);
        of_base.and(self.predicates.verdict(&Subject { key, head: Some(head) }, number, None).0)
    }

    /// Whether a purge that came after `number` names a response with this head by anything but its URL.
    pub(crate) fn is_named_since(&self, key: &CacheKey, head: &StoredHead, number: u64) -> bool {
        self.predicates.verdict(&Subject { key, head: Some(head) }, number, None).0 != Verdict::Good
    }

    /// The state of the predicates: another after each purge.
    pub(crate) fn state(&self) -> u64 {
        self.predicates.state()
    }

    /// The number of the last purge that concerns a stored response by anything but its URL.
    pub(crate) fn cause(&self, key: &CacheKey, stored: &StoredResponse) -> Option<u64> {
        self.predicates.cause(&Subject { key, head: Some(&stored.head) }, stored.number)
    }

    /// The same of a response that is not in an index.
    pub(crate) fn cause_of(&self, key: &CacheKey, head: &StoredHead, number: u64) -> Option<u64> {
        self.predicates.cause(&Subject { key, head: Some(head) }, number)
    }

    /// The head of a stored response that was found at `since`, as it counts where an origin fails: an invalidation has ended its
    /// lifetime. `None` where nothing of it may be used.
    pub(crate) fn head_of<'a>(
        &self,
        key: &CacheKey,
        stored: &'a StoredResponse,
        since: Forgotten,
    ) -> Option<Cow<'a, StoredHead>> {
        match self.verdict(key, stored, since)? {
            Verdict::Good => Some(Cow::Borrowed(&*stored.head)),
            Verdict::Soft { since } | Verdict::Invalid { since } => {
                Some(Cow::Owned(stored.head.invalidated(since)))
            }
            Verdict::Unproven | Verdict::Gone => None,
        }
    }

    /// The same for a request that came before what was removed meanwhile: it is for that request still.
    pub(crate) fn head_before_removal<'a>(
        &self,
        key: &CacheKey,
        stored: &'a StoredResponse,
        since: Forgotten,
    ) -> Option<Cow<'a, StoredHead>> {
        match self.verdict(key, stored, since)? {
            Verdict::Gone => Some(Cow::Borrowed(&*stored.head)),
            _ => self.head_of(key, stored, since),
        }
    }
}

/// Whom a request asks what invalidations have left of a response.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    invalidations: Option<&'a Invalidations>,
    /// The last invalidation when the request came: what was fetched after that is new enough for it.
    arrived: Option<u64>,
    /// What is judged was found after that.
    since: Forgotten,
    /// Nothing that was fetched before the request came is used without asking the origin.
    is_doubting: bool,
}

impl<'a> Judge<'a> {
    /// For a request that comes now, or has come when `arrived` was the last invalidation. It judges what is looked for from now on.
    pub(crate) fn new(invalidations: &'a Invalidations, arrived: Option<u64>) -> Self {
        Self::since(invalidations, arrived, invalidations.forgotten())
    }

    /// The same for what was looked for from `since` on.
    #[inline(always)]
    pub(crate) fn since(invalidations: &'a Invalidations, arrived: Option<u64>, since: Forgotten) -> Self {
        Self { invalidations: Some(invalidations), arrived, since, is_doubting: false }
    }

    /// One that finds every response good, for who wants to see all of them.
    pub(crate) fn lenient() -> Self {
        Self { invalidations: None, arrived: None, since: Forgotten::default(), is_doubting: false }
    }

    /// The same where, if `is_doubting`, nothing that was fetched before the request came is used without asking the origin.
    #[inline(always)]
    pub(crate) fn doubting(self, is_doubting: bool) -> Self {
        Self { is_doubting, ..self }
    }

    /// The same for what is looked for from now on.
    pub(crate) fn anew(self) -> Self {
        Self { since: self.invalidations.map_or(self.since, Invalidations::forgotten), ..self }
    }

    /// Whether predicates were forgotten since it began to look which may have named a response with this number: that was given no
    /// verdict, and is found anew by a look from now on, or has been taken out.
    pub(crate) fn is_in_doubt(&self, number: u64) -> bool {
        self.invalidations.is_some_and(|invalidations| !invalidations.remembers(number, self.since))
    }

    /// Whether predicates were forgotten since it began to look.
    pub(crate) fn is_outrun(&self) -> bool {
        self.invalidations.is_some_and(|invalidations| invalidations.forgotten() != self.since)
    }

    /// Whether a purge names a stored response by anything but its URL.
    pub(crate) fn is_named(&self, key: &CacheKey, stored: &StoredResponse) -> bool {
        let is_named =
            |invalidations: &Invalidations| invalidations.is_named_since(key, &stored.head, stored.number);
        self.invalidations.is_some_and(is_named)
    }

    /// The number of the last invalidation; `None` for one that finds every response good.
    pub(crate) fn current(&self) -> Option<u64> {
        self.invalidations.map(Invalidations::current)
    }

    /// How far predicates had been forgotten before what it judges was looked for.
    pub(crate) fn forgotten(&self) -> Forgotten {
        self.since
    }

    /// What is left of a stored response that lies under `key`.
    #[inline(always)]
    pub(crate) fn verdict(&self, key: &CacheKey, stored: &StoredResponse) -> Verdict {
        let Some(invalidations) = self.invalidations else { return Verdict::Good };
        match invalidations.verdict(key, stored, self.since) {
            Some(Verdict::Soft { .. } | Verdict::Invalid { .. } | Verdict::Unproven)
                if self.is_new_enough(stored.number) =>
            {
                Verdict::Good
            }
            Some(Verdict::Good) if self.doubts(stored.number) => Verdict::Invalid { since: None },
            Some(Verdict::Soft { since }) if self.doubts(stored.number) => Verdict::Invalid { since },
            verdict => verdict.unwrap_or(Verdict::Gone),
        }
    }

    /// Whether a response under `key` that is not in an index, and was fetched after `number`, may be used as it is.
    pub(crate) fn is_good(&self, key: &CacheKey, head: &StoredHead, number: u64) -> bool {
        let is_good = |invalidations: &Invalidations| {
            invalidations.verdict_of(key, head, number) == Verdict::Good
                && invalidations.remembers(number, self.since)
        };
        self.is_new_enough(number) || !self.is_doubting && self.invalidations.is_none_or(is_good)
    }

    /// Whether a response under `key` that is not in an index, and was fetched after `number`, may be used or validated.
    pub(crate) fn is_of_use(&self, key: &CacheKey, head: &StoredHead, number: u64) -> bool {
        self.invalidations.is_none_or(|invalidations| {
            invalidations.verdict_of(key, head, number).is_of_use(head.validators.etag.is_some())
                && invalidations.remembers(number, invalidations.forgotten())
        })
    }

    /// Whether nothing is used before the origin has been asked that was fetched before the request came.
    pub(crate) fn is_doubting(&self) -> bool {
        self.is_doubting
    }

    fn doubts(&self, number: u64) -> bool {
        self.is_doubting && !self.is_new_enough(number)
    }

    fn is_new_enough(&self, number: u64) -> bool {
        self.arrived.is_some_and(|arrived| number >= arrived)
    }
}

/// What becomes of a URL whose response goes at this verdict, because it cannot be used.
pub(crate) fn fate(verdict: Verdict) -> Fate {
    match verdict {
        Verdict::Gone => Fate::Purged,
        // Its body is not there any more.
        Verdict::Good | Verdict::Soft { .. } | Verdict::Invalid { .. } => Fate::Evicted,
        // Nothing is known to have ended it.
        Verdict::Unproven => Fate::Stored,
    }
}

#[cfg(test)]
mod tests;
