//! What a successful unsafe request takes out of the cache (RFC 9111 4.4).
//!
//! Every invalidation has a number from one counter. A fetch notes the counter when it begins; an invalidation with a
//! higher number forbids it to store its result, and nobody who arrives later joins it. The order here is what makes
//! that hold: first the number, then the fetches in flight, then the index. Groups (RFC 9875) are in [`groups`].

pub(crate) mod durable;
mod groups;

use std::sync::atomic::{AtomicU64, Ordering};

use larder_cache::groups::GroupTags;
use larder_http::target::Target;
use larder_store::{CacheKey, Store};
use parking_lot::Mutex;

pub(crate) use groups::GroupInvalidations;

/// The counter, and what was invalidated without being looked for.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    last: AtomicU64,
    /// What `last` is for as long as nothing was invalidated since larder started. Held while numbers are taken over.
    begun: Mutex<u64>,
    groups: GroupInvalidations,
}

impl Numbering {
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

    /// Which groups went when.
    pub(crate) fn groups(&self) -> &GroupInvalidations {
        &self.groups
    }

    /// Invalidates every stored response that is in one of these groups, and gives the number of that; `None` where a
    /// response in the groups `own`, fetched after `since`, was invalidated already.
    pub(crate) fn invalidate_groups(&self, tags: &GroupTags, own: &GroupTags, since: u64) -> Option<u64> {
        if tags.is_empty() {
            return self.groups.hold(own, since).then_some(since);
        }
        let number = self.next();
        self.groups.note(tags, number, (own, since)).then_some(number)
    }
}

/// Drops everything stored under `targets` at `authority`; `ground` keeps the flights for a base from storing.
/// Returns how many stored responses went.
pub(crate) fn invalidate<'a>(
    numbering: &Numbering,
    stores: impl Iterator<Item = &'a Store> + Clone,
    authority: &str,
    targets: &[Target],
    ground: impl Fn(&CacheKey, u64),
) -> u64 {
    let mut gone = 0;
    for target in targets {
        let key = CacheKey::new(authority, target.as_str());
        let number = numbering.next();
        ground(&key, number);
        gone += stores.clone().map(|store| store.invalidate(&key, number)).sum::<u64>();
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_above_those_of_disks_and_an_invalidation_before_that_is_noticed() {
        let numbering = Numbering::default();
        assert_eq!(numbering.continue_after(7), Some(7));
        assert_eq!(numbering.continue_after(3), Some(7));
        assert_eq!(numbering.continue_after(9), Some(9));
        assert_eq!(numbering.next(), 10);
        assert_eq!(numbering.continue_after(5), None);
        assert_eq!(numbering.current(), 10);
        assert_eq!(numbering.continue_after(20), None, "never again in this run");
        assert_eq!(numbering.next(), 21);
    }
}
