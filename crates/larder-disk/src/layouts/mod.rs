//! Several disks as one: which of them an object, or a piece of it, goes to, and where it is found again.
//!
//! In: what is to be kept. Out: the same again, by key, or piece by piece. What one of
//! them does not take (its queue is full, it is failing, or absent) is not there on it, and nobody waits for it.
//!
//! | layout | an object | its pieces |
//! |---|---|---|
//! | `single` | on the one disk | there too |
//! | `mirror` | on every disk | each copy on its disk |
//! | `stripe` | on the disk that its key chooses | in turns over all disks, from there on |
//! | `hash` | on the disk that its key chooses | there too |
//!
//! A key chooses by weighted rendezvous hashing (Thaler and Ravishankar 1998; weights by Schindelhauer and Schomaker
//! 2005). Each disk draws a number from the key and its own seed, and the least draw per size wins. So a disk more or
//! less moves only its own share.

mod body;
mod choice;
mod events;
mod fill;
mod listing;
pub mod metrics;
mod mirror;
mod records;
mod since;
mod slot;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod tier;
mod usage;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use larder_http::time::Clock;
use smallvec::SmallVec;

use crate::engine::{self, Address, Disk, DiskError, DiskSettings, Location, Note};
use larder_tier::CacheKey;
use larder_tier::backlog::Backlog;
use larder_tier::descriptors::split;
use larder_tier::note::Needed;
use larder_tier::rank::RankedMutex;
use slot::DiskSlot;
pub use slot::{AbsenceEvent, Admit};
pub use usage::DisksUsage;

/// Bodies up to this lie inside their record, larger ones in pieces of this size.
pub(crate) const PIECE_BYTES: usize = larder_tier::CHUNK_BYTES;

/// How objects and pieces are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One disk.
    #[default]
    Single,
    /// Everything on every disk.
    Mirror,
    /// Pieces in turns over all.
    Stripe,
    /// Each object on one of them.
    Hash,
}

/// The disks of a store.
#[derive(Debug)]
pub struct Disks {
    layout: Layout,
    slots: Box<[DiskSlot]>,
    /// The largest body taken, in bytes.
    max_object: AtomicU64,
    /// What the disks' queues may borrow; set once, by the store whose disks they are.
    backlog: OnceLock<Arc<Backlog>>,
    /// Knows which notes are needed still; set once.
    needed: OnceLock<Arc<Needed>>,
    /// What was not as it should be on disks that came back, by their folders; told after that they are back.
    findings_to_tell: RankedMutex<VecDeque<(String, String)>>,
}

/// Where something may lie.
#[derive(Debug)]
pub(crate) struct DiskCandidate {
    disk: usize,
    at: Address,
    place: Location,
}

impl Disks {
    /// The disks in the order of the config. Bodies larger than `max_object` are not taken.
    pub fn new(layout: Layout, disks: Vec<Arc<Disk>>, max_object: u64) -> Arc<Self> {
        let slots = disks.into_iter().map(DiskSlot::of).collect();
        Self::of(layout, slots, max_object)
    }

    /// Opens disks, or makes them, in the order of the config. One that fails, is not larder's, is in use by another or too small
    /// is absent: see [`Disks::try_absent`]. Waits for the disks; not for an event loop.
    pub fn open(layout: Layout, disks: Vec<DiskSettings>, max_object: u64, clock: &Clock) -> Arc<Self> {
        let slots = disks.into_iter().map(|settings| DiskSlot::open(settings, clock));
        Self::of(layout, slots.collect(), max_object)
    }

    /// The same, but none is opened yet: [`Disks::open_all`] is to follow.
    pub fn unopened(layout: Layout, disks: Vec<DiskSettings>, max_object: u64, clock: &Clock) -> Arc<Self> {
        let slots = disks.into_iter().map(|settings| DiskSlot::unopened(settings, clock));
        Self::of(layout, slots.collect(), max_object)
    }

    /// Opens those that are to be opened, without using them, and shows the highest number of each and its notes.
    pub fn look_ahead(&self, look: &mut dyn FnMut(u64, &[Note])) {
        self.slots.iter().for_each(|slot| slot.look_ahead(look));
    }

    /// Opens those that are to be opened. Where they are not believed, nothing is used of what they hold: something was invalidated of
    /// which they have not heard. One that cannot be opened is absent. Waits for the disks; not for an event loop.
    pub fn open_all(&self, admit: &Admit, is_believed: bool) {
        self.slots.iter().for_each(|slot| slot.open_first(admit, is_believed));
        self.introduce();
    }

    fn of(layout: Layout, slots: Box<[DiskSlot]>, max_object: u64) -> Arc<Self> {
        let disks = Self {
            layout,
            slots,
            max_object: AtomicU64::new(max_object),
            backlog: OnceLock::new(),
            needed: OnceLock::new(),
            findings_to_tell: RankedMutex::default(),
        };
        disks.introduce();
        Arc::new(disks)
    }

    /// Tells those that are there of each other, and of what they may borrow.
    fn introduce(&self) {
        let all: Vec<Arc<Disk>> = self.disks().cloned().collect();
        all.iter().for_each(|disk| disk.meet(&all));
        let backlog = self.backlog.get();
        backlog.into_iter().for_each(|backlog| all.iter().for_each(|disk| disk.borrow_from(backlog)));
        let needed = self.needed.get();
        needed.into_iter().for_each(|needed| all.iter().for_each(|disk| disk.take_stock_by(needed)));
    }

    /// From now on their queues may borrow there.
    pub(crate) fn borrow_from(&self, backlog: &Arc<Backlog>) {
        self.backlog.get_or_init(|| Arc::clone(backlog));
        self.introduce();
    }

    /// From now on this is asked which notes are needed still, also of disks that come back later: each was admitted before.
    pub(crate) fn take_stock_by(&self, needed: &Arc<Needed>) {
        self.needed.get_or_init(|| Arc::clone(needed));
        self.introduce();
    }

    /// The largest body taken, in bytes.
    pub fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed)
    }

    /// From now on larger bodies than this are not taken. What is there stays.
    pub fn resize(&self, max_object: u64) {
        self.max_object.store(max_object, Ordering::Relaxed);
    }

    /// The disks that are there.
    pub fn disks(&self) -> impl Iterator<Item = &Arc<Disk>> {
        self.slots.iter().filter_map(DiskSlot::disk)
    }

    /// The disk of this number, where it is there.
    pub fn disk(&self, number: usize) -> Option<&Arc<Disk>> {
        self.slots.get(number)?.disk()
    }

    /// Tries disks that are absent again, each when its pause is over (a second, doubling to a minute), on threads of their own.
    /// To be called every second.
    pub fn try_absent(self: &Arc<Self>, admit: &Arc<Admit>) {
        for (number, slot) in self.slots.iter().enumerate() {
            if !slot.begin_trying() {
                continue;
            }
            let (disks, admit) = (Arc::clone(self), Arc::clone(admit));
            let work = move || {
                disks.slots.get(number).into_iter().for_each(|slot| slot.try_again(&*admit));
                disks.introduce();
            };
            if let Err(error) = thread::Builder::new().name("larder-open".to_owned()).spawn(work) {
                slot.failed(DiskError::io("cannot start a thread for", slot.path())(error));
            }
        }
    }

    /// The oldest event that was not taken yet: that a disk is absent, or back, by its folder.
    pub fn take_absence(&self) -> Option<(PathBuf, AbsenceEvent)> {
        self.slots.iter().find_map(|slot| Some((slot.path().to_owned(), slot.take_event()?)))
    }

    /// From now on they may have so many files open together.
    pub fn limit_files(&self, files: usize) {
        let wanted: Vec<_> = self.slots.iter().map(DiskSlot::files_wanted).collect();
        for (slot, files) in self.slots.iter().zip(split(files, &wanted)) {
            slot.limit_files(files);
        }
    }

    /// The highest number of an invalidation that any disk knows of.
    pub fn last_number(&self) -> u64 {
        self.disks().map(|disk| disk.last_number()).max().unwrap_or_default()
    }

    /// Whether anything lies under `key`.
    pub(crate) fn has(&self, key: &CacheKey) -> bool {
        self.disks().any(|disk| !disk.find(&disk.address(key)).is_empty())
    }

    /// Where responses under `key` may lie: the chosen disk first, and of a mirror the less busy one.
    pub(crate) fn candidates(&self, key: &CacheKey) -> Vec<DiskCandidate> {
        let mut order: SmallVec<[usize; 8]> = self.preference(key);
        if self.layout == Layout::Mirror {
            order.sort_by_key(|disk| self.disk(*disk).map_or(usize::MAX, |disk| disk.reads_waiting()));
        }
        let mut candidates = Vec::new();
        for disk in order {
            let Some(own) = self.disk(disk) else { continue };
            let at = own.address(key);
            candidates.extend(own.find(&at).into_iter().map(|place| DiskCandidate { disk, at, place }));
        }
        candidates
    }

    /// Whether the index of its disk still has it.
    pub(crate) fn holds(&self, candidate: &DiskCandidate) -> bool {
        self.disk(candidate.disk).is_some_and(|disk| disk.holds(&candidate.at, candidate.place))
    }

    /// It is in use.
    pub(crate) fn note_use(&self, candidate: &DiskCandidate) {
        if let Some(disk) = self.disk(candidate.disk) {
            disk.note_use(&candidate.at, candidate.place);
        }
    }

    /// Whatever lies under a key of these two levels is in use.
    pub(crate) fn note_use_at(&self, base: &[u8], variant: &[u8]) {
        for disk in self.disks() {
            let at = disk.address_at(base, variant);
            disk.find(&at).into_iter().for_each(|place| disk.note_use(&at, place));
        }
    }

    /// Whatever lies under `key` on these disks is in use.
    fn note_use_of(&self, key: &CacheKey, on: &[usize]) {
        for disk in on.iter().filter_map(|disk| self.disk(*disk)) {
            let at = disk.address(key);
            disk.find(&at).into_iter().for_each(|place| disk.note_use(&at, place));
        }
    }

    /// It is of no use.
    pub(crate) fn forget(&self, candidate: &DiskCandidate) {
        if let Some(disk) = self.disk(candidate.disk) {
            disk.remove(&candidate.at, candidate.place);
        }
    }

    /// Writes down what was taken out, replaced or invalidated before this call, on each disk, without waiting. Not under a lock
    /// of memory's, and before anybody is told.
    pub(crate) fn write_journals(&self) {
        self.disks().for_each(|disk| disk.write_journal());
    }

    /// Takes out what has this identity.
    pub(crate) fn remove(&self, key: &CacheKey, identity: u64) {
        for disk in self.slots.iter().filter_map(|slot| slot.to_change(key)) {
            disk.remove_identity(&disk.address(key), identity);
        }
    }

    /// Drops everything under the base of `key`; says how many responses that were, copies counted once.
    pub(crate) fn invalidate(&self, key: &CacheKey, number: u64) -> u64 {
        let disks = self.slots.iter().filter_map(|slot| slot.to_change(key));
        let gone = disks.map(|disk| disk.take_out(&disk.address(key), number));
        match self.layout {
            Layout::Mirror => gone.fold(0, u64::max),
            Layout::Single | Layout::Stripe | Layout::Hash => gone.sum(),
        }
    }

    /// Waits until every invalidation so far is on the disks, so that it holds after a crash.
    ///
    /// # Errors
    /// A disk did not confirm it, or is absent.
    ///
    /// # Cancel safety
    /// Dropped, what was noted may be on the disks or not.
    pub async fn sync(&self) -> Result<(), engine::DiskError> {
        let mut first = Ok(());
        for slot in &self.slots {
            let synced = match slot.disk() {
                Some(disk) => disk.sync_journal().await,
                None => Err(DiskError::Absent(slot.path().to_owned())),
            };
            first = first.and(synced);
        }
        first
    }

    /// Notes a numbered predicate that is tested at look-up, for the time after a restart.
    pub fn note(&self, note: &Note) {
        self.slots.iter().filter_map(DiskSlot::to_note).for_each(|disk| disk.note(note));
    }

    /// The same for one that concerns nothing that is stored: a disk that is absent notes the last of them when it comes.
    pub(crate) fn mark(&self, note: &Note) {
        self.slots.iter().for_each(|slot| slot.mark(note));
    }

    /// The same for one that concerns nothing but what lies under the base of `key`: a disk that is absent forgets that.
    pub(crate) fn note_base(&self, key: &CacheKey, note: &Note) {
        self.slots.iter().filter_map(|slot| slot.to_change(key)).for_each(|disk| disk.note(note));
    }

    /// Whether anything lies under the base of `key`, on a disk that is there. One that is absent forgets what it has.
    pub(crate) fn has_base(&self, key: &CacheKey) -> bool {
        let disks = self.slots.iter().filter_map(|slot| slot.to_change(key));
        // All of them are asked: each that is absent takes note.
        disks.filter(|disk| disk.has_base(&disk.address(key))).count() > 0
    }

    /// The predicates that were noted before the last start.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<_> = self.disks().flat_map(|disk| disk.notes()).collect();
        notes.sort();
        notes.dedup();
        notes
    }

    /// The figures of each.
    pub fn usage(&self) -> DisksUsage {
        DisksUsage(self.slots.iter().map(|slot| (slot.path().to_owned(), slot.usage())).collect())
    }

    /// What is left in the queues is written, within a bound, and the next start needs to read little. Waits for that, and not
    /// for a disk that is being opened: it is not used any more.
    pub fn close(&self) {
        thread::scope(|scope| {
            for slot in &self.slots {
                if thread::Builder::new().spawn_scoped(scope, || slot.close()).is_err() {
                    slot.close();
                }
            }
        });
    }
}
