//! What a successful unsafe request, or a purge, means for what is stored (RFC 9111 4.4, RFC 9875).
//!
//! Every invalidation has a number from one counter. A fetch notes the counter when it begins, and what it brings
//! carries that number. An invalidation that removes forbids every fetch with a lower number to store its result, and
//! takes out what lies in the stores: first the number, then the fetches in flight, then the index. One that wants a
//! validation is entered in a [`table`] and touches nothing: a response is compared with it when it is found, wherever
//! it lies, and fetches under way are compared when they are over.

pub(crate) mod durable;
mod reach;
mod table;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_cache::groups::GroupTags;
use larder_cache::{StoredHead, Verdict};
use larder_http::target::Target;
use larder_http::time::Now;
use larder_store::files::Written;
use larder_store::{CacheKey, Store, StoredResponse};
use parking_lot::Mutex;

pub(crate) use reach::Joined;
pub use reach::{Heard, Reach};
pub(crate) use table::How;
use table::Table;

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
        match of_base.and(self.of_groups(&stored.head.groups, stored.number)) {
            Verdict::Invalid { since: Some(since) } => {
                Verdict::Invalid { since: Some(stored.judged.note_invalid(since)) }
            }
            other => other,
        }
    }

    /// The same of what is not, or not yet, in an index: a response to a request for `key`, fetched after `number`.
    pub(crate) fn verdict_of(&self, key: &CacheKey, groups: &GroupTags, number: u64) -> Verdict {
        self.table.verdict(key.hash(), number).0.and(self.of_groups(groups, number))
    }

    /// Whether nothing concerns what was fetched after `number`, as [`Self::verdict_of`] has it.
    pub(crate) fn is_good(&self, key: &CacheKey, head: &StoredHead, number: u64) -> bool {
        self.verdict_of(key, &head.groups, number) == Verdict::Good
    }

    fn of_groups(&self, groups: &GroupTags, number: u64) -> Verdict {
        if groups.is_empty() {
            return Verdict::Good;
        }
        if number < self.all_groups.load(Ordering::Acquire) {
            return Verdict::Gone;
        }
        let touched =
            groups.iter().map(|group| group.hash()).filter(|hash| self.table.latest(*hash) > number);
        let judged = touched.map(|hash| self.table.verdict(hash, number).0);
        judged.fold(Verdict::Good, Verdict::and)
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

    /// Invalidates every stored response that is in one of these groups. Gives the number of that, and whether a response in
    /// the groups `own`, fetched after `since`, was good until then.
    pub(crate) fn invalidate_groups(
        &self,
        (tags, how): (&GroupTags, How),
        own: &GroupTags,
        since: u64,
    ) -> (u64, bool) {
        let was_good = self.of_groups(own, since) == Verdict::Good;
        let numbers = tags.iter().map(|tag| self.table.note(tag.hash(), how, || self.next()));
        (numbers.fold(since, u64::max), was_good)
    }

    /// Enters what a journal says of an earlier run, or of another disk.
    fn restore(&self, hash: u64, how: How, number: u64) {
        self.table.note(hash, how, || number);
    }

    /// Nothing with a smaller number is proven to be good.
    fn restore_all(&self, number: u64) {
        self.table.note_all(number);
    }

    /// Nothing with a smaller number that is in any group is good.
    fn restore_all_groups(&self, number: u64) {
        self.all_groups.fetch_max(number, Ordering::AcqRel);
    }
}

/// How long the answer to an unsafe request waits until what it has invalidated is written down. A file system that takes longer
/// than that keeps nobody waiting.
const WRITTEN_TIME: Duration = Duration::from_secs(1);

/// What was invalidated, on its way to where it outlives the process.
#[derive(Debug, Default)]
pub(crate) struct Writing(Vec<Written>);

impl Writing {
    pub(crate) fn of(stores: &[Arc<Store>]) -> Self {
        Self(stores.iter().map(|store| store.written()).collect())
    }

    /// Waits for it, within a bound.
    pub(crate) async fn wait(self) {
        let all = async {
            for written in self.0 {
                written.wait().await;
            }
        };
        // Later it is written all the same; and until then it is remembered.
        let _ = tokio::time::timeout(WRITTEN_TIME, all).await;
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

/// What an invalidation of URLs meets beside stores: fetches under way.
pub(crate) struct UnderWay<'a> {
    /// Whether there is one for the base of a key.
    pub(crate) any: &'a (dyn Fn(&CacheKey) -> bool + Sync),
    /// Tells those for the base of a key that an invalidation with this number concerns them.
    pub(crate) tell: &'a (dyn Fn(&CacheKey, u64, How) + Sync),
}

/// What an invalidation came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Invalidated {
    /// Stored responses that were removed.
    pub(crate) removed: u64,
    /// The highest number that it took; zero where there was nothing to number.
    pub(crate) number: u64,
}

/// Invalidates everything under `targets` at `authority`. What is to be removed is gone afterwards, out of all
/// stores; what is to be validated is not used again before that.
pub(crate) fn invalidate(
    invalidations: &Invalidations,
    stores: &[Arc<Store>],
    (authority, targets): (&str, &[Target]),
    (kind, how, now): (InvalidationKind, How, Now),
    under_way: &UnderWay<'_>,
) -> Invalidated {
    let mut done = Invalidated::default();
    for target in targets {
        let key = CacheKey::new(authority, target.as_str());
        match how {
            How::Remove => {
                let number = invalidations.next();
                (under_way.tell)(&key, number, how);
                let take_out = |store: &Arc<Store>| match kind {
                    InvalidationKind::Purge => store.purge(&key, number),
                    InvalidationKind::UnsafeMethod => store.invalidate(&key, number),
                };
                done.removed += stores.iter().map(take_out).sum::<u64>();
                done.number = done.number.max(number);
            }
            How::Validate(_) => {
                // Fetches first: one that ends in between is found in its store.
                let is_there = (under_way.any)(&key);
                let is_there =
                    stores.iter().fold(is_there, |is_there, store| store.has_base(&key) || is_there);
                if !is_there {
                    continue;
                }
                let number = invalidations.table.note(key.hash(), how, || invalidations.next());
                (under_way.tell)(&key, number, how);
                let note = durable::of_base(key.base(), number, now.wall);
                stores.iter().for_each(|store| store.note_base(&key, &note));
                done.number = done.number.max(number);
            }
        }
    }
    done
}

#[cfg(test)]
mod tests;
