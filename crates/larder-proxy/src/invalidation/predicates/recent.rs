//! What was entered last, for responses that were compared a short time ago.
//!
//! In: each entry, in the order of the states that they make. Out: whether anything since a state could concern a response
//! with these tags. Two Bloom filters ("Space/time trade-offs in hash coding with allowable errors", Bloom 1970) hold the
//! last tags: the later one takes in [`WINDOW_MAX`] of them, then it is the earlier one. Both together are smaller than
//! a core's first cache, where the table of all names is not. A response is never spared wrongly: a filter that has a name
//! says so, and one that says so of another name costs a look at the table. Of the responses with 20 tags that is one in
//! twenty-five where both filters are full.
//! Bounded: a response that was compared before both windows is compared with everything.

use std::mem;

use larder_cache::purge::tags::Tags;

/// Tags in one filter. At a thousand purges a second it is the last one to two seconds that are known.
const WINDOW_MAX: usize = 1024;
/// Bits of one filter: 8 KiB. Full, it says of one other name in a thousand that it may have it.
const BITS: usize = 1 << 16;
const BITS_OF_WORD: usize = u64::BITS as usize;
const WORDS: usize = BITS / BITS_OF_WORD;

/// What made a state another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entered {
    /// This tag.
    Tag(u64),
    /// Anything else: another name, a pattern, a floor.
    Other,
}

/// The last entries.
#[derive(Debug, Default)]
pub(super) struct Recent {
    later: Window,
    earlier: Window,
    /// The state that the last entry made which is no tag.
    other: u64,
}

/// Tags that were entered one after the other.
#[derive(Debug)]
struct Window {
    /// The state before the first of them.
    since: u64,
    count: usize,
    bits: Box<[u64; WORDS]>,
}

impl Default for Window {
    fn default() -> Self {
        Self { since: 0, count: 0, bits: Box::new([0; WORDS]) }
    }
}

impl Window {
    fn clear(&mut self, since: u64) {
        (self.since, self.count) = (since, 0);
        self.bits.fill(0);
    }

    fn insert(&mut self, name: u64) {
        self.count += 1;
        for (word, bit) in places(name).map(place) {
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
        }
    }

    #[inline]
    fn may_have(&self, name: u64) -> bool {
        // The first says no of nearly every name.
        places(name).into_iter().all(|part| {
            let (word, bit) = place(part);
            self.bits.get(word).is_some_and(|word| word & bit != 0)
        })
    }
}

/// The parts of a name that give a bit each. Names are hashes: they need no further mixing.
#[inline]
fn places(name: u64) -> [u64; 2] {
    [name, name >> 32]
}

/// A word, and its bit.
#[inline]
fn place(part: u64) -> (usize, u64) {
    let at = part as usize % BITS;
    (at / BITS_OF_WORD, 1 << (at % BITS_OF_WORD))
}

impl Recent {
    /// Notes what has made the state before this one another.
    pub(super) fn note(&mut self, entered: Entered, state: u64) {
        let Entered::Tag(name) = entered else {
            self.other = state;
            return;
        };
        if self.later.count == WINDOW_MAX {
            mem::swap(&mut self.later, &mut self.earlier);
            self.later.clear(state - 1);
        }
        self.later.insert(name);
    }

    /// Whether nothing that was entered since this state concerns a response with these tags.
    pub(super) fn spares(&self, tags: Option<&Tags>, since: u64) -> bool {
        if since < self.other || since < self.earlier.since {
            return false;
        }
        let Some(tags) = tags else { return true };
        let is_before = since < self.later.since;
        let may_be_named =
            |name: &u64| self.later.may_have(*name) || is_before && self.earlier.may_have(*name);
        !tags.carries_every() && !tags.hashes().iter().any(may_be_named)
    }
}
