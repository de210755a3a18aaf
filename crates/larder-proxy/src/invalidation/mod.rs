//! What was invalidated, and what that means for a response (RFC 9111 4.4, RFC 9875).
//!
//! In: invalidations, each with a number from one counter. Out: a [`Verdict`] on a response with a number of its own: that
//! of the last invalidation before its fetch began. Every look-up, every fill and every end of a fetch asks for it.
//! A predicate names responses without looking for them: URLs ([`mod@base`]) and cache groups ([`mod@groups`]) are the kinds.
//! It is entered in a [`table`] and touches nothing; a response is compared with it when it is found, wherever it lies. An
//! invalidation that removes takes the responses out of the stores as well, after it has marked the fetches under way
//! ([`FetchMark`]). What has to outlive the process is noted in the stores' journals ([`durable`]).

mod base;
pub(crate) mod durable;
mod fetch;
mod groups;
mod reach;
mod table;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use larder_cache::groups::GroupTags;
use larder_cache::{StoredHead, Verdict};
use larder_store::{CacheKey, StoredResponse};
use parking_lot::Mutex;

pub(crate) use base::{UnderWay, invalidate};
use durable::Named;
pub(crate) use durable::Writing;
pub(crate) use fetch::FetchMark;
pub(crate) use groups::note_groups;
pub(crate) use reach::Joined;
pub use reach::{Heard, Reach};
pub(crate) use table::How;
use table::Table;

/// A kind of predicate.
struct Kind {
    /// What the predicates of this kind say of a response with this number.
    verdict: fn(&Invalidations, Subject<'_>, u64) -> Verdict,
    /// Reads a note of a journal; `None` where it is of another kind.
    read: fn(&[u8]) -> Option<Named>,
}

/// Each kind is a file. A further kind has an entry here.
const KINDS: [Kind; 2] = [base::KIND, groups::KIND];

/// A response that a verdict is asked for.
#[derive(Clone, Copy)]
struct Subject<'a> {
    key: &'a CacheKey,
    groups: &'a GroupTags,
}

/// The counter, and what was invalidated without being looked for.
#[derive(Debug, Default)]
pub(crate) struct Invalidations {
    last: AtomicU64,
    /// What `last` is for as long as nothing was invalidated since larder started. Held while numbers are taken over.
    begun: Mutex<u64>,
    table: Table,
    /// Responses with smaller numbers that are in any group are gone.
    all_groups: AtomicU64,
}

impl Invalidations {
    /// The number of the last invalidation.
    pub(crate) fn current(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// The number of a new one.
    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Numbers from now on are higher than `number`, and than what is given back; `None` where something was invalidated
    /// since larder started. In one step: an invalidation that has its number already is seen here.
    fn continue_after(&self, number: u64) -> Option<u64> {
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

    /// What invalidations have left of a stored response that lies under `key`.
    #[inline]
    pub(crate) fn verdict(&self, key: &CacheKey, stored: &StoredResponse) -> Verdict {
        let latest = self.table.latest(key.hash());
        let is_good = latest <= stored.number || stored.judged.is_good_at(latest);
        match is_good && stored.head.groups.is_empty() {
            true => Verdict::Good,
            false => self.look_closer(key, stored),
        }
    }

    #[cold]
    fn look_closer(&self, key: &CacheKey, stored: &StoredResponse) -> Verdict {
        let (of_base, latest) = self.table.verdict(key.hash(), stored.number);
        if of_base == Verdict::Good {
            stored.judged.note_good_at(latest);
        }
        match self.verdict_of(key, &stored.head.groups, stored.number) {
            Verdict::Invalid { since: Some(since) } => {
                Verdict::Invalid { since: Some(stored.judged.note_invalid(since)) }
            }
            other => other,
        }
    }

    /// The same of a response that is not, or not yet, in an index: to a request for `key`, fetched after `number`.
    pub(crate) fn verdict_of(&self, key: &CacheKey, groups: &GroupTags, number: u64) -> Verdict {
        let subject = Subject { key, groups };
        KINDS.iter().fold(Verdict::Good, |all, kind| all.and((kind.verdict)(self, subject, number)))
    }

    /// The head of a stored response, as it counts where an origin fails: an invalidation has ended its lifetime. `None` where
    /// nothing of it may be used.
    pub(crate) fn head_of<'a>(
        &self,
        key: &CacheKey,
        stored: &'a StoredResponse,
    ) -> Option<Cow<'a, StoredHead>> {
        match self.verdict(key, stored) {
            Verdict::Good => Some(Cow::Borrowed(&*stored.head)),
            Verdict::Invalid { since } => Some(Cow::Owned(stored.head.invalidated(since))),
            Verdict::Gone => None,
        }
    }

    /// Enters what a journal says of an earlier run, or of another disk.
    fn restore(&self, hash: u64, how: How, number: u64) {
        self.table.note(hash, how, || number);
    }

    /// Nothing with a smaller number is proven to be good.
    fn restore_all(&self, number: u64) {
        self.table.note_all(number);
    }
}

/// Whom a request asks what invalidations have left of a response.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    invalidations: Option<&'a Invalidations>,
    /// The last invalidation when the request came: what was fetched after that is new enough for it.
    arrived: Option<u64>,
}

impl<'a> Judge<'a> {
    /// For a request that comes now, or has come when `arrived` was the last invalidation.
    pub(crate) fn new(invalidations: &'a Invalidations, arrived: Option<u64>) -> Self {
        Self { invalidations: Some(invalidations), arrived }
    }

    /// One that finds every response good, for who wants to see all of them.
    pub(crate) const fn lenient() -> Self {
        Self { invalidations: None, arrived: None }
    }

    /// What is left of a stored response that lies under `key`.
    #[inline(always)]
    pub(crate) fn verdict(&self, key: &CacheKey, stored: &StoredResponse) -> Verdict {
        let Some(invalidations) = self.invalidations else { return Verdict::Good };
        match invalidations.verdict(key, stored) {
            Verdict::Invalid { .. } if self.is_new_enough(stored.number) => Verdict::Good,
            verdict => verdict,
        }
    }

    /// Whether a response under `key` that is not in an index, and was fetched after `number`, may be used as it is.
    pub(crate) fn is_good(&self, key: &CacheKey, head: &StoredHead, number: u64) -> bool {
        self.is_new_enough(number)
            || self.invalidations.is_none_or(|invalidations| {
                invalidations.verdict_of(key, &head.groups, number) == Verdict::Good
            })
    }

    fn is_new_enough(&self, number: u64) -> bool {
        self.arrived.is_some_and(|arrived| number >= arrived)
    }
}

/// What took something out of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidationKind {
    /// A successful request of an unsafe method (RFC 9111 4.4).
    UnsafeMethod,
    /// An administrator's purge of a URL.
    Purge,
}

#[cfg(test)]
mod tests;
