//! What was invalidated, until the servers have confirmed that it is deleted.
//!
//! In: bases with the names of their values, and confirmations. Out: whether what lies under a base is believed, whether an answer
//! that was asked for before is, and whether a stored response may be written. Order is decided under one lock: what is queued
//! under it for a name is carried out in that order, so a deletion never overtakes an older value, nor a value that is outdated
//! already a deletion.
//! A base has a note until the deletion of each of its names is confirmed, be that hours. There are 65 536 notes. Who needs one
//! more gets none, and from then on nothing is believed: what was not deleted could not be told from the rest.
//! Answers on their way, and writes, are compared by counters that many bases share. Where two meet, something is asked for or
//! fetched once more.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::RandomState;
use larder_remote::RemoteError;
use larder_tier::rank::RankedMutex;
use tokio::sync::Notify;

/// The most bases with a note.
const NOTES_MAX: usize = 65_536;
/// Counters; a power of two.
const SLOTS: usize = 4096;

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Notes {
    slots: Box<[Slot]>,
    /// Whether there is any note, so that a look need not take the lock.
    is_any: AtomicBool,
    noted: RankedMutex<Noted>,
    confirmed: Notify,
}

/// What was invalidated of the bases that share it.
#[derive(Debug, Default)]
struct Slot {
    /// How often.
    times: AtomicU64,
    /// The highest number of those that have one. Changed under the lock.
    number: AtomicU64,
}

#[derive(Debug, Default)]
struct Noted {
    bases: HashMap<Box<[u8]>, Note, RandomState>,
    /// Deletions that are queued and not confirmed.
    queued: BTreeSet<u64>,
    last: u64,
    /// Nothing is believed any more.
    is_everything: bool,
}

/// Of one base.
#[derive(Debug, Default)]
struct Note {
    /// Deletions that are queued for it.
    queued: u32,
    /// A deletion found no room in the queue. It is tried again when the base is looked for.
    is_lacking: bool,
    /// Nothing was queued behind the last of them.
    is_last: bool,
}

/// Whether what lies under a base is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    Yes,
    /// Its deletion is queued.
    Awaited,
    /// Its deletion has to be queued again.
    Lacking,
    /// Nothing is.
    Never,
}

/// Why not all deletions are confirmed, and will not be soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotDeleted {
    #[error("more deletions wait for the server of values than its queue takes")]
    Lacking,
    #[error(
        "more deletions wait for the server of values than can be noted: its values are not used until larder starts again"
    )]
    Everything,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            is_any: AtomicBool::new(false),
            noted: RankedMutex::default(),
            confirmed: Notify::new(),
        }
    }
}

impl Notes {
    fn slot(&self, hash: u64) -> &Slot {
        &self.slots[hash as usize % SLOTS]
    }

    /// What tells whether something under a base of this hash was invalidated meanwhile. To be taken before it is asked whether the
    /// base is [believed](Self::belief).
    pub(crate) fn ticket(&self, hash: u64) -> u64 {
        self.slot(hash).times.load(Ordering::Acquire)
    }

    pub(crate) fn is_current(&self, hash: u64, ticket: u64) -> bool {
        self.ticket(hash) == ticket
    }

    pub(crate) fn belief(&self, base: &[u8]) -> Belief {
        if !self.is_any.load(Ordering::Acquire) {
            return Belief::Yes;
        }
        let noted = self.noted.lock();
        match noted.bases.get(base) {
            _ if noted.is_everything => Belief::Never,
            None => Belief::Yes,
            Some(note) if note.queued == 0 => Belief::Lacking,
            Some(_) => Belief::Awaited,
        }
    }

    /// What lies under a base is outdated, and the values of these names are to be deleted, each by one call of `delete`, which queues
    /// it and is given what to call when that is confirmed. `number` is that of the invalidation, where it has one.
    pub(crate) fn invalidate<N>(
        self: &Arc<Self>,
        (base, hash): (&[u8], u64),
        number: Option<u64>,
        names: &[N],
        mut delete: impl FnMut(&N, Confirmed) -> Result<(), RemoteError>,
    ) {
        let mut noted = self.noted.lock();
        if !names.is_empty() {
            // First: who has a ticket of the new count sees that there are notes.
            self.is_any.store(true, Ordering::Release);
        }
        let slot = self.slot(hash);
        slot.times.fetch_add(1, Ordering::Release);
        slot.number.fetch_max(number.unwrap_or(0), Ordering::Relaxed);
        if names.is_empty() {
            return;
        }
        let noted = &mut *noted;
        let is_known = noted.bases.contains_key(base);
        if !is_known && noted.bases.len() >= NOTES_MAX {
            noted.is_everything = true;
            self.confirmed.notify_waiters();
            return;
        }
        let note = noted.bases.entry(base.into()).or_default();
        if note.queued > 0 && note.is_last && !note.is_lacking {
            // What is queued will do.
            return;
        }
        (note.is_last, note.is_lacking) = (true, false);
        for name in names {
            noted.last += 1;
            let confirmed = Confirmed { notes: Arc::clone(self), base: base.into(), deletion: noted.last };
            match delete(name, confirmed) {
                Ok(()) => {
                    note.queued += 1;
                    noted.queued.insert(noted.last);
                }
                Err(_) => note.is_lacking = true,
            }
        }
        if note.is_lacking {
            self.confirmed.notify_waiters();
        }
    }

    /// Calls `write`, which may queue a value or a deletion of it, unless something under the base was invalidated since number
    /// `number`: what began before is outdated. Then `write` is told so.
    pub(crate) fn write(&self, (base, hash): (&[u8], u64), number: u64, write: impl FnOnce(bool)) {
        let mut noted = self.noted.lock();
        let is_new = self.slot(hash).number.load(Ordering::Relaxed) <= number;
        if let Some(note) = noted.bases.get_mut(base) {
            note.is_last = false;
        }
        write(is_new);
    }

    fn confirm(&self, base: &[u8], deletion: u64) {
        {
            let mut noted = self.noted.lock();
            noted.queued.remove(&deletion);
            if let Some(note) = noted.bases.get_mut(base) {
                note.queued = note.queued.saturating_sub(1);
                if note.queued == 0 && !note.is_lacking {
                    noted.bases.remove(base);
                }
            }
            if noted.bases.is_empty() && !noted.is_everything {
                self.is_any.store(false, Ordering::Release);
            }
        }
        self.confirmed.notify_waiters();
    }

    /// Waits until every deletion is confirmed that is queued now. Who waits sets a bound.
    ///
    /// # Errors
    /// One of them was not even queued.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub(crate) async fn confirmed(&self) -> Result<(), NotDeleted> {
        let last = self.noted.lock().last;
        loop {
            let mut changed = std::pin::pin!(self.confirmed.notified());
            changed.as_mut().enable();
            if let Some(ended) = self.noted.lock().ended(last) {
                return ended;
            }
            changed.await;
        }
    }

    /// Whether nothing is believed any more.
    pub(crate) fn is_everything(&self) -> bool {
        self.noted.lock().is_everything
    }

    /// Whether a deletion is not confirmed, or was not queued.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }
}

impl Noted {
    /// How the wait for the deletions up to `last` ends, if it does.
    fn ended(&self, last: u64) -> Option<Result<(), NotDeleted>> {
        match () {
            () if self.is_everything => Some(Err(NotDeleted::Everything)),
            () if self.bases.values().any(|note| note.is_lacking) => Some(Err(NotDeleted::Lacking)),
            () => self.queued.first().is_none_or(|first| *first > last).then_some(Ok(())),
        }
    }
}

/// To be told that a deletion is confirmed. Dropped instead, it stays noted.
#[derive(Debug)]
pub(crate) struct Confirmed {
    notes: Arc<Notes>,
    base: Box<[u8]>,
    deletion: u64,
}

impl Confirmed {
    pub(crate) fn tell(self) {
        self.notes.confirm(&self.base, self.deletion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that holds what is to be confirmed.
    #[derive(Default)]
    struct Queue {
        waiting: Vec<Confirmed>,
        is_full: bool,
    }

    impl Queue {
        fn invalidate(&mut self, notes: &Arc<Notes>, base: &str, number: u64) {
            notes.invalidate((base.as_bytes(), hash(base)), Some(number), &[base], |_, confirmed| {
                match self.is_full {
                    true => return Err(RemoteError::QueueFull),
                    false => self.waiting.push(confirmed),
                }
                Ok(())
            });
        }

        fn confirm_one(&mut self) {
            self.waiting.remove(0).tell();
        }
    }

    fn hash(base: &str) -> u64 {
        base.bytes().fold(0, |hash, byte| hash * 31 + u64::from(byte))
    }

    fn may_write(notes: &Notes, base: &str, number: u64) -> bool {
        let mut may = false;
        notes.write((base.as_bytes(), hash(base)), number, |is_new| may = is_new);
        may
    }

    #[test]
    fn a_base_is_not_believed_until_its_deletion_is_confirmed() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue::default());
        let ticket = notes.ticket(hash("a"));
        assert_eq!(notes.belief(b"a"), Belief::Yes);
        queue.invalidate(&notes, "a", 1);
        assert_eq!((notes.belief(b"a"), notes.belief(b"b")), (Belief::Awaited, Belief::Yes));
        assert!(!notes.is_current(hash("a"), ticket) && notes.is_behind());
        queue.confirm_one();
        assert_eq!(notes.belief(b"a"), Belief::Yes);
        assert!(!notes.is_current(hash("a"), ticket), "an answer from before is none");
        assert!(!notes.is_behind());
    }

    #[test]
    fn a_base_is_deleted_once_more_only_behind_what_was_written_meanwhile() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue::default());
        queue.invalidate(&notes, "a", 1);
        queue.invalidate(&notes, "a", 2);
        assert_eq!(queue.waiting.len(), 1);
        assert!(may_write(&notes, "a", 2));
        queue.invalidate(&notes, "a", 3);
        assert_eq!(queue.waiting.len(), 2);
        queue.confirm_one();
        assert_eq!(notes.belief(b"a"), Belief::Awaited);
        queue.confirm_one();
        assert_eq!(notes.belief(b"a"), Belief::Yes);
    }

    #[test]
    fn what_began_before_an_invalidation_is_not_written_after_it() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue::default());
        assert!(may_write(&notes, "a", 0));
        queue.invalidate(&notes, "a", 5);
        queue.confirm_one();
        assert!(!may_write(&notes, "a", 4) && may_write(&notes, "a", 5) && may_write(&notes, "b", 4));
    }

    #[test]
    fn a_deletion_without_room_is_told_and_tried_again() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue { is_full: true, ..Queue::default() });
        queue.invalidate(&notes, "a", 1);
        assert_eq!(notes.belief(b"a"), Belief::Lacking);
        assert_eq!(notes.noted.lock().ended(0), Some(Err(NotDeleted::Lacking)));
        queue.is_full = false;
        queue.invalidate(&notes, "a", 2);
        assert_eq!(notes.belief(b"a"), Belief::Awaited);
        queue.confirm_one();
        assert_eq!(notes.belief(b"a"), Belief::Yes);
    }

    #[test]
    fn where_there_are_too_many_notes_nothing_is_believed() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue::default());
        for number in 0..NOTES_MAX {
            queue.invalidate(&notes, &number.to_string(), 1);
        }
        assert_eq!(notes.belief(b"x"), Belief::Yes);
        queue.invalidate(&notes, "0", 2);
        assert!(!notes.is_everything(), "one that has a note needs no other");
        queue.invalidate(&notes, "x", 2);
        assert_eq!((notes.belief(b"x"), notes.belief(b"y")), (Belief::Never, Belief::Never));
        queue.waiting.drain(..).for_each(Confirmed::tell);
        assert_eq!(notes.belief(b"y"), Belief::Never);
    }

    #[tokio::test]
    async fn who_waits_is_told_when_all_from_before_is_confirmed() {
        let (notes, mut queue) = (Arc::new(Notes::default()), Queue::default());
        assert_eq!(notes.confirmed().await, Ok(()));
        queue.invalidate(&notes, "a", 1);
        queue.invalidate(&notes, "b", 2);
        let mut waiting = Box::pin(notes.confirmed());
        let mut is_over = async || {
            tokio::select! {
                biased;
                ended = &mut waiting => Some(ended),
                () = std::future::ready(()) => None,
            }
        };
        assert_eq!(is_over().await, None);
        queue.invalidate(&notes, "c", 3);
        queue.confirm_one();
        assert_eq!(is_over().await, None);
        queue.confirm_one();
        assert_eq!(is_over().await, Some(Ok(())), "it does not wait for what came later");
    }
}
