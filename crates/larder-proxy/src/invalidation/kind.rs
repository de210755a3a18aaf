//! A kind of predicate: by which names it knows a response, and what its notes in a journal say.

use larder_cache::StoredHead;
use larder_cache::purge::Predicate;
use larder_store::CacheKey;

use super::effects::How;

/// A kind of predicate that is found by the hash of a name.
pub(super) struct NameKind {
    /// Calls its second argument with the hash of each name of this kind that a response has, until that says that it is enough.
    pub(super) names: fn(&Subject<'_>, &mut dyn FnMut(u64)),
    /// Its names are tags.
    pub(super) has_tags: bool,
    /// Reads a note of a journal; `None` where it is of another kind.
    pub(super) read: fn(&[u8]) -> Option<Noted>,
}

/// A response that a verdict is asked for; or a key alone, of which the names are known that need no response.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) key: &'a CacheKey,
    pub(super) head: Option<&'a StoredHead>,
}

impl<'a> Subject<'a> {
    /// Its host, without port: what stands in front of the path in the base of its key.
    pub(super) fn host(&self) -> &'a str {
        let base = self.key.base();
        let authority = base.split(|byte| *byte == b'/').next().unwrap_or_default();
        let authority = std::str::from_utf8(authority).unwrap_or_default();
        match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => authority.get(..address.len() + 2).unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        }
    }

    /// Its path and query, as they are keyed.
    pub(super) fn target(&self) -> &'a str {
        let base = self.key.base();
        let path = base.iter().position(|byte| *byte == b'/').unwrap_or(base.len());
        base.get(path..).and_then(|target| std::str::from_utf8(target).ok()).unwrap_or_default()
    }
}

/// What a note names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// The base of a key, by its hash, and what was done.
    Base(u64, Effect),
    /// A name of a kind, by its hash, at every host.
    Name(u64, Effect),
    /// A predicate of a purge.
    Purge(Predicate),
    /// Nothing: which invalidations the journal's store has heard of.
    Periods,
    /// Everything.
    All,
}

/// An effect without its moment, which stands beside it in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Validate,
    Remove,
}

impl Effect {
    /// With its moment, on the monotonic clock.
    pub(super) fn since(self, since: Option<std::time::Duration>) -> How {
        match self {
            Self::Validate => How::Validate(since),
            Self::Remove => How::Remove,
        }
    }
}
