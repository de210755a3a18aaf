//! URLs: the bases of keys that are invalidated, and their removal.
//!
//! In: targets of an authority. Out: verdicts on what lies under them, notes for journals, and what was removed. A URL
//! that is to be removed is taken out of every store; each store knows what it has, so no predicate is needed.

use std::sync::Arc;

use larder_http::target::Target;
use larder_http::time::{Now, WallTime};
use larder_store::{CacheKey, Note, Store};

use super::counter::Invalidations;
use super::effects::How;
use super::kind::{Effect, Noted};

/// Begins a note of one base that has to be validated.
const BASE_INVALID: u8 = b'u';

/// What a note names, where it is of this kind.
pub(super) fn read(what: &[u8]) -> Option<Noted> {
    let base = what.strip_prefix(&[BASE_INVALID])?;
    Some(Noted::Base(CacheKey::hash_of_base(base), Effect::Validate))
}

/// The note of what lies under a base and has to be validated.
pub(super) fn of_base(base: &[u8], number: u64, at: WallTime) -> Note {
    Note { number, moment: at.0, what: [&[BASE_INVALID], base].concat() }
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
            How::Validate(_) | How::Soften(_) => {
                // Fetches first: one that ends in between is found in its store.
                let is_there = (under_way.any)(&key);
                let is_there =
                    stores.iter().fold(is_there, |is_there, store| store.has_base(&key) || is_there);
                if !is_there {
                    continue;
                }
                let number = invalidations.table.note(key.hash(), how, || invalidations.next());
                (under_way.tell)(&key, number, how);
                let note = of_base(key.base(), number, now.wall);
                stores.iter().for_each(|store| store.note_base(&key, &note));
                done.number = done.number.max(number);
            }
        }
    }
    done
}
