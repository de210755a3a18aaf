//! A kind of predicate: what it says of a response, and what its notes in a journal name.

use larder_cache::Verdict;
use larder_cache::groups::GroupTags;
use larder_store::CacheKey;

use super::counter::Invalidations;

/// A kind of predicate.
pub(super) struct Kind {
    /// What the predicates of this kind say of a response with this number.
    pub(super) verdict: fn(&Invalidations, Subject<'_>, u64) -> Verdict,
    /// Reads a note of a journal; `None` where it is of another kind.
    pub(super) read: fn(&[u8]) -> Option<Named>,
}

/// A response that a verdict is asked for.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) key: &'a CacheKey,
    pub(super) groups: &'a GroupTags,
}

/// What a note names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// What has this hash, in this way.
    One(u64, Mode),
    /// Every group.
    AllGroups,
    /// Everything.
    All,
}

/// What is to become of the responses that a note names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Validate,
    Remove,
}
