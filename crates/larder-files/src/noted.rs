//! Names under which something was invalidated, for as long as a file of theirs may be one of before.
//!
//! In: invalidations as they are asked for, what came of each removal, and files that got their names. Out: which
//! files are not used, and what the journal has to say of them at the next start. While a removal waits for the
//! writing thread, these are all files of the name. Where a file could not be removed, it is that file until another
//! has taken its place. Nearly always empty, and then a look costs one load.
//!
//! Bounded: what is kept of names whose removal is over takes at most [`KEPT_BYTES_MAX`]; beyond that the caller believes nothing
//! that was stored before. Lock: a leaf, for the length of a look.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_tier::rank::RankedRwLock;

use super::name::Name;
use super::sys::Status;

/// What may be kept of names whose removal is over, in bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// What a name takes beside itself.
const NAME_BYTES: usize = 96;
/// Invalidations of which it is known, by a digest of the name, whether they came during a fetch that is stored now.
const RECENT_MAX: usize = 32 * 1024;

/// What is known of a name.
#[derive(Debug, Default)]
struct Entry {
    /// Removals that wait.
    waiting: u32,
    /// What was stored with a smaller number is not used.
    below: u64,
    /// The same for the next start: the journal has to say this.
    written: u64,
    /// A file that a purge could not remove, whoever put it there.
    refused: Option<Status>,
}

impl Entry {
    fn is_over(&self) -> bool {
        self.waiting == 0 && self.below == 0 && self.written == 0 && self.refused.is_none()
    }

    fn is_kept(&self) -> bool {
        self.waiting == 0 && !self.is_over()
    }
}

/// The last invalidations: the number of each, also when its file is long gone.
#[derive(Debug, Default)]
struct Recent {
    numbers: HashMap<u64, u64, foldhash::fast::RandomState>,
    order: VecDeque<(u64, u64)>,
    /// That of the latest that was forgotten.
    floor: u64,
}

impl Recent {
    fn note(&mut self, digest: u64, number: u64) {
        let last = self.numbers.entry(digest).or_default();
        *last = number.max(*last);
        self.order.push_back((digest, number));
        while self.order.len() > RECENT_MAX {
            let Some((digest, number)) = self.order.pop_front() else { return };
            self.floor = self.floor.max(number);
            if self.numbers.get(&digest) == Some(&number) {
                self.numbers.remove(&digest);
            }
        }
    }

    fn latest(&self, digest: u64) -> u64 {
        self.numbers.get(&digest).copied().unwrap_or_default().max(self.floor)
    }
}

#[derive(Debug, Default)]
struct State {
    names: HashMap<Name, Entry>,
    /// Of entries that wait for no removal.
    kept_bytes: usize,
    recent: Recent,
}

/// What a removal has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// No file that was invalidated.
    Nothing,
    /// A file of larder's.
    Stored,
    /// A person's file that was to go as well.
    ByHand(Status),
}

/// There are more names than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// The names.
#[derive(Debug, Default)]
pub(super) struct PendingRemovals {
    count: AtomicUsize,
    state: RankedRwLock<State>,
    hasher: foldhash::quality::RandomState,
}

impl PendingRemovals {
    /// A removal begins to wait: that of an invalidation with this number, or of a file that has been replaced.
    pub(super) fn add(&self, name: &Name, number: Option<u64>) {
        self.change(name, |entry| {
            entry.waiting += 1;
            entry.written = entry.written.max(number.unwrap_or_default());
        });
        if let Some(number) = number {
            self.state.write().recent.note(self.hasher.hash_one(name), number);
        }
    }

    /// What an earlier run has written down: what was stored under the name with a smaller number is not used.
    pub(super) fn restore(&self, name: &Name, number: u64) {
        self.change(name, |entry| {
            entry.below = entry.below.max(number);
            entry.written = entry.written.max(number);
        });
    }

    /// Nothing is left that what was restored would hide.
    pub(super) fn made_good(&self, name: &Name, number: u64) {
        self.change(name, |entry| {
            if entry.below == number {
                entry.below = 0;
            }
            if entry.written == number && entry.waiting == 0 {
                entry.written = 0;
            }
        });
    }

    /// One removal of it is done, and has left this.
    ///
    /// # Errors
    /// Too much is left: nothing that was stored so far may be used any more.
    pub(super) fn done(&self, name: &Name, left: Left) -> Result<(), TooMany> {
        self.change(name, |entry| {
            entry.waiting = entry.waiting.saturating_sub(1);
            match left {
                Left::Nothing if entry.waiting == 0 => *entry = Entry::default(),
                Left::Nothing => (entry.below, entry.refused) = (0, None),
                Left::Stored => entry.below = u64::MAX,
                Left::ByHand(status) => entry.refused = Some(status),
            }
        });
        self.check()
    }

    /// Before a file gets its name that was fetched after `number`: the number of an invalidation that came since, which
    /// the journal has to say first.
    pub(super) fn overtaken(&self, name: &Name, number: u64) -> Option<u64> {
        let latest = self.state.read().recent.latest(self.hasher.hash_one(name));
        (latest > number).then(|| {
            self.change(name, |entry| entry.written = entry.written.max(latest));
            latest
        })
    }

    /// A file that was fetched after `number` has the name now, or what is known of it was renewed then.
    pub(super) fn placed(&self, name: &Name, number: u64) {
        let latest = self.state.read().recent.latest(self.hasher.hash_one(name));
        if latest <= number && self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        self.change(name, |entry| {
            (entry.below, entry.refused) = (0, None);
            if latest > number {
                entry.written = entry.written.max(latest);
            } else if number >= entry.written && entry.waiting == 0 {
                entry.written = 0;
            }
        });
    }

    /// No file has the name any more: nothing is left that could be older than it should be.
    pub(super) fn gone(&self, name: &Name) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        self.change(name, |entry| {
            (entry.below, entry.refused) = (0, None);
            // What waits says so itself, once it is done.
            if entry.waiting == 0 {
                entry.written = 0;
            }
        });
    }

    fn change(&self, name: &Name, change: impl FnOnce(&mut Entry)) {
        let bytes = name.bytes().len() + NAME_BYTES;
        let mut state = self.state.write();
        let State { names, kept_bytes, .. } = &mut *state;
        let entry = match names.get_mut(name) {
            Some(entry) => entry,
            None => names.entry(name.clone()).or_default(),
        };
        let was_kept = entry.is_kept();
        change(entry);
        let (is_kept, is_over) = (entry.is_kept(), entry.is_over());
        match (was_kept, is_kept) {
            (false, true) => *kept_bytes += bytes,
            (true, false) => *kept_bytes = kept_bytes.saturating_sub(bytes),
            _ => {}
        }
        if is_over {
            names.remove(name);
        }
        self.count.store(names.len(), Ordering::Release);
    }

    fn check(&self) -> Result<(), TooMany> {
        match self.state.read().kept_bytes > KEPT_BYTES_MAX {
            true => Err(TooMany),
            false => Ok(()),
        }
    }

    /// Nothing that was stored so far is used: what is kept of names need not say so any more.
    pub(super) fn forget_kept(&self) {
        let mut state = self.state.write();
        state.names.retain(|_, entry| !entry.is_kept());
        state.kept_bytes = 0;
        self.count.store(state.names.len(), Ordering::Release);
    }

    /// Whether a removal of whatever has the name waits.
    pub(super) fn is_pending(&self, name: &Name) -> bool {
        self.look(name, |entry| entry.waiting > 0)
    }

    /// Whether what larder stored under the name with this number is not used.
    pub(super) fn hides(&self, name: &Name, number: u64) -> bool {
        self.look(name, |entry| number < entry.below)
    }

    /// The same of a person's file.
    pub(super) fn refuses(&self, name: &Name, file: &Status) -> bool {
        self.look(name, |entry| entry.refused.is_some_and(|refused| file.has_content_of(&refused)))
    }

    fn look(&self, name: &Name, look: impl FnOnce(&Entry) -> bool) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.state.read().names.get(name).is_some_and(look)
    }

    /// What the journal has to say.
    pub(super) fn written(&self) -> Vec<(Name, u64)> {
        let state = self.state.read();
        let written = state.names.iter().filter(|(_, entry)| entry.written > 0);
        written.map(|(name, entry)| (name.clone(), entry.written)).collect()
    }

    /// Names whose file could not be removed.
    pub(super) fn left(&self) -> Vec<Name> {
        let state = self.state.read();
        let left = state.names.iter().filter(|(_, entry)| entry.waiting == 0 && entry.below > 0);
        left.map(|(name, _)| name.clone()).collect()
    }

    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn name(name: &str) -> Name {
        Name::found(name.as_bytes())
    }

    #[test]
    fn a_name_is_known_until_its_file_is_gone_or_another_has_taken_its_place() {
        let (noted, a) = (PendingRemovals::default(), name("h/a"));
        noted.add(&a, Some(7));
        assert!(noted.is_pending(&a) && !noted.is_pending(&name("h/b")));
        assert_eq!(noted.written(), [(a.clone(), 7)]);
        noted.done(&a, Left::Stored).unwrap();
        assert!(!noted.is_pending(&a) && noted.hides(&a, 6) && noted.hides(&a, 9), "it could not be removed");
        assert_eq!((noted.left(), noted.written()), (vec![a.clone()], vec![(a.clone(), 7)]));
        noted.placed(&a, 7);
        assert_eq!((noted.len(), noted.hides(&a, 6)), (0, false));
        noted.add(&a, None);
        assert!(noted.written().is_empty(), "it was no invalidation");
        noted.done(&a, Left::Nothing).unwrap();
        assert_eq!(noted.len(), 0);
    }

    #[test]
    fn a_second_invalidation_is_not_forgotten_with_the_first() {
        let (noted, a) = (PendingRemovals::default(), name("h/a"));
        noted.add(&a, Some(7));
        noted.add(&a, Some(8));
        noted.done(&a, Left::Nothing).unwrap();
        // What was fetched between the two.
        noted.placed(&a, 7);
        assert!(noted.is_pending(&a));
        assert_eq!(noted.written(), [(a.clone(), 8)]);
        noted.done(&a, Left::Nothing).unwrap();
        assert_eq!(noted.len(), 0);
    }

    #[test]
    fn a_file_whose_fetch_was_overtaken_is_written_down_until_it_is_renewed() {
        let (noted, a) = (PendingRemovals::default(), name("h/a"));
        noted.add(&a, Some(7));
        noted.done(&a, Left::Nothing).unwrap();
        assert_eq!((noted.overtaken(&a, 7), noted.overtaken(&name("h/b"), 3)), (None, None));
        assert_eq!(noted.overtaken(&a, 6), Some(7));
        noted.placed(&a, 6);
        assert!(!noted.hides(&a, 6), "this run compares numbers");
        assert_eq!(noted.written(), [(a.clone(), 7)], "the next one is told");
        noted.placed(&a, 7);
        assert!(noted.written().is_empty());
        noted.overtaken(&a, 6);
        noted.gone(&a);
        assert_eq!(noted.len(), 0, "an eviction has taken it");
        (0..RECENT_MAX as u64).for_each(|number| noted.add(&name(&number.to_string()), Some(100)));
        assert_eq!(noted.overtaken(&a, 6), Some(7), "forgotten ones count for all");
    }

    #[test]
    fn too_many_names_are_told() {
        let noted = PendingRemovals::default();
        let mut names = (0..).map(|number| name(&format!("h/{number}")));
        let told = names.find(|name| {
            noted.add(name, Some(1));
            noted.done(name, Left::Stored).is_err()
        });
        assert!(told.is_some() && noted.len() > 5_000, "{}", noted.len());
        noted.forget_kept();
        assert_eq!(noted.len(), 0);
    }

    #[test]
    fn what_an_earlier_run_wrote_down_hides_what_is_older() {
        let (noted, a) = (PendingRemovals::default(), name("h/a"));
        noted.restore(&a, 7);
        assert!(!noted.is_pending(&a) && noted.hides(&a, 6) && !noted.hides(&a, 7));
        noted.add(&a, Some(9));
        noted.made_good(&a, 7);
        assert!(noted.is_pending(&a) && noted.written() == [(a.clone(), 9)], "another came meanwhile");
        noted.done(&a, Left::Nothing).unwrap();
        noted.restore(&a, 11);
        noted.made_good(&a, 11);
        assert_eq!(noted.len(), 0);
    }
}
