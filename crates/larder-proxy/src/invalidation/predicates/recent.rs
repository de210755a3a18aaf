//! What was entered last, for responses that were compared a moment ago.
//!
//! In: each entry, in the order of the states that they make. Out: whether anything since a state could concern a response with
//! these tags. A response that many ask for is compared after each purge; the names of one purge are fewer than its own.
//! Bounded: [`RECENT_MAX`] entries; a response that was compared before them is compared with everything.

use std::collections::VecDeque;

use larder_cache::purge::tags::Tags;

/// Beyond that, looking up all tags of a response takes no longer.
const RECENT_MAX: usize = 32;

/// What made a state another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entered {
    /// This tag.
    Tag(u64),
    /// Anything else: another name, a pattern, a floor.
    Other,
}

/// The last entries, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Entered>);

impl Recent {
    pub(super) fn note(&mut self, entered: Entered) {
        if self.0.len() == RECENT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(entered);
    }

    /// Whether nothing that was entered between the two states concerns a response with these tags.
    pub(super) fn spares(&self, tags: Option<&Tags>, (before, now): (u64, u64)) -> bool {
        let count = now.checked_sub(before).and_then(|count| usize::try_from(count).ok());
        let Some(first) = count.and_then(|count| self.0.len().checked_sub(count)) else { return false };
        let carries = |name: &u64| {
            tags.is_some_and(|tags| tags.carries_every() || tags.hashes().binary_search(name).is_ok())
        };
        self.0.range(first..).all(|entered| match entered {
            Entered::Tag(name) => !carries(name),
            Entered::Other => false,
        })
    }
}
