//! The place of one disk in a store, which may be empty: the disk could not be opened, and is tried again.
//!
//! In: what a disk is opened with, and what changes while it is not there. Out: the disk, from then on for good. A disk
//! that fails later stays where it is: its index goes on hearing of everything, so that it may be used again as it is.
//! One that was absent has heard of nothing. Of what it holds only that is used which was neither replaced nor taken
//! out meanwhile ([`Missed`]). Nothing at all is used where something was invalidated before it was opened, since
//! numbers of this run may be smaller than those it holds.
//!
//! The lock guards what there is to say of the absence. It is taken by those who change something, only while the
//! disk is absent, and never held while a disk is asked for anything.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use larder_http::time::Clock;
use larder_tier::pause::next_pause;

use crate::engine::{Disk, DiskError, DiskSettings, DiskUsage};
use larder_tier::descriptors::Wanted;
use larder_tier::missed::Missed;
use larder_tier::rank::{Rank, RankedMutex};
use larder_tier::{CacheKey, Note};

/// Events that nobody took; older ones go.
const EVENTS_MAX: usize = 8;
/// How often what was missed is made good for while more comes, before everything is given up instead.
const ROUNDS_MAX: usize = 1000;

pub use larder_tier::tier::Admit;

/// What the operator should hear of a disk that was absent.
#[derive(Debug)]
pub enum AbsenceEvent {
    /// It cannot be opened; told once for each reason in turn.
    Absent(DiskError),
    /// It was opened.
    Back {
        /// Whether what it held was given up.
        is_anew: bool,
    },
}

/// One disk, or none yet.
#[derive(Debug)]
pub(super) struct DiskSlot {
    settings: DiskSettings,
    clock: Clock,
    /// Set once, under the lock.
    present: OnceLock<Present>,
    absence: RankedMutex<Absence>,
}

/// A disk that is in use.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) disk: Arc<Disk>,
    /// Its cap when it was opened: its weight.
    pub(super) bytes: u64,
}

impl Present {
    fn of(disk: Arc<Disk>) -> Self {
        let bytes = disk.usage().max_bytes.max(1);
        Self { disk, bytes }
    }
}

#[derive(Debug)]
struct Absence {
    missed: Missed,
    pause: Duration,
    next: Instant,
    is_trying: bool,
    is_closed: bool,
    /// It was looked at, and is not used yet.
    opened: Option<Arc<Disk>>,
    /// What it is to note when it comes.
    mark: Option<Note>,
    /// Why it was absent when that was last told.
    told: Option<String>,
    events: VecDeque<AbsenceEvent>,
}

impl DiskSlot {
    /// A disk that is there.
    pub(super) fn of(disk: Arc<Disk>) -> Self {
        let slot = Self::empty(disk.settings().clone(), Clock::default());
        slot.present.get_or_init(|| Present::of(disk));
        slot
    }

    /// Opens a disk, or notes why it is absent: whatever is wrong with a directory ends no start. Waits for the disk.
    pub(super) fn open(settings: DiskSettings, clock: &Clock) -> Self {
        match Disk::open_with(settings.clone(), clock.clone()) {
            Ok(disk) => Self::of(disk),
            Err(error) => {
                let slot = Self::empty(settings, clock.clone());
                slot.failed(error);
                slot
            }
        }
    }

    /// A disk that is still to be opened.
    pub(super) fn unopened(settings: DiskSettings, clock: &Clock) -> Self {
        Self::empty(settings, clock.clone())
    }

    /// Opens such a disk without using it, and shows what it knows. [`open_first`](Self::open_first) follows. Waits for the disk.
    pub(super) fn look_ahead(&self, look: &mut dyn FnMut(u64, &[Note])) {
        if !self.begin_trying() {
            return;
        }
        match Disk::open_with(self.settings.clone(), self.clock.clone()) {
            Ok(disk) => {
                disk.show_notes(look);
                let mut absence = self.absence.lock();
                absence.is_trying = false;
                absence.opened = Some(disk);
            }
            Err(error) => self.failed(error),
        }
    }

    /// Opens such a disk for the first time. Where what it holds is not believed, nothing of it is used, whenever it is there. Waits
    /// for the disk.
    pub(super) fn open_first(&self, admit: &Admit, is_believed: bool) {
        if !is_believed {
            self.absence.lock().missed.note_everything();
        }
        if self.begin_trying() {
            self.try_again(admit);
        }
    }

    fn empty(settings: DiskSettings, clock: Clock) -> Self {
        let absence = Absence {
            missed: Missed::default(),
            pause: Duration::ZERO,
            next: Instant::now(),
            is_trying: false,
            is_closed: false,
            opened: None,
            mark: None,
            told: None,
            events: VecDeque::new(),
        };
        Self { settings, clock, present: OnceLock::new(), absence: RankedMutex::new(Rank::Leaf, absence) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.settings.path
    }

    pub(super) fn present(&self) -> Option<&Present> {
        self.present.get()
    }

    pub(super) fn disk(&self) -> Option<&Arc<Disk>> {
        self.present.get().map(|present| &present.disk)
    }

    /// The disk, to change something under `key`; where it is absent, that is noted.
    pub(super) fn to_change(&self, key: &CacheKey) -> Option<&Arc<Disk>> {
        self.disk_or(|absence| absence.missed.note(key.base()))
    }

    /// The disk, to note something that concerns whatever it holds.
    pub(super) fn to_note(&self) -> Option<&Arc<Disk>> {
        self.disk_or(|absence| absence.missed.note_everything())
    }

    /// Notes it on the disk, now or when that comes.
    pub(super) fn mark(&self, note: &Note) {
        let disk = self.disk_or(|absence| absence.mark = Some(note.clone()));
        disk.into_iter().for_each(|disk| disk.note(note));
    }

    fn disk_or(&self, note: impl FnOnce(&mut Absence)) -> Option<&Arc<Disk>> {
        if let Some(disk) = self.disk() {
            return Some(disk);
        }
        let mut absence = self.absence.lock();
        // It may have come meanwhile; and it comes under the lock, so that nothing is missed without being noted.
        if self.disk().is_none() {
            note(&mut absence);
        }
        drop(absence);
        self.disk()
    }

    pub(super) fn usage(&self) -> DiskUsage {
        let absent = || DiskUsage { is_failing: true, is_absent: true, ..DiskUsage::default() };
        self.disk().map_or_else(absent, |disk| disk.usage())
    }

    /// From now on the disk may have so many files open, also where it is absent.
    pub(super) fn limit_files(&self, files: usize) {
        self.settings.files.set(files);
        if let Some(disk) = self.disk() {
            disk.close_surplus();
        }
    }

    pub(super) fn files_wanted(&self) -> Wanted {
        self.settings.files_wanted()
    }

    #[cfg(feature = "testing")]
    pub(super) fn is_in_use_elsewhere(&self) -> bool {
        let is_it = |event: &AbsenceEvent| matches!(event, AbsenceEvent::Absent(DiskError::InUse(_)));
        self.absence.lock().events.iter().any(is_it)
    }

    pub(super) fn take_event(&self) -> Option<AbsenceEvent> {
        self.absence.lock().events.pop_front()
    }

    /// Whether the disk is absent and to be tried again now; says so once for each time.
    pub(super) fn begin_trying(&self) -> bool {
        if self.disk().is_some() {
            return false;
        }
        let mut absence = self.absence.lock();
        let is_due = !absence.is_closed && !absence.is_trying && absence.next <= Instant::now();
        absence.is_trying |= is_due;
        is_due
    }

    /// Tries to open it. Waits for the disk.
    pub(super) fn try_again(&self, admit: &Admit) {
        let opened = match self.may_believe() {
            true => self.open_as_it_is(admit),
            false => Ok(None),
        };
        let opened = match opened {
            Ok(Some(())) => Ok(()),
            Ok(None) => self.open_anew(),
            Err(error) => Err(error),
        };
        if let Err(error) = opened {
            self.failed(error);
        }
    }

    fn may_believe(&self) -> bool {
        !self.absence.lock().missed.is_everything()
    }

    /// Opens it with what it holds; `None` where that cannot be believed.
    fn open_as_it_is(&self, admit: &Admit) -> Result<Option<()>, DiskError> {
        let disk = match self.take_opened() {
            Some(disk) => disk,
            None => Disk::open_with(self.settings.clone(), self.clock.clone())?,
        };
        let present = Present::of(Arc::clone(&disk));
        // From here on invalidations have higher numbers than anything that the disk knows.
        let Some(number) = admit(disk.last_number(), disk.notes()) else {
            disk.close();
            return Ok(None);
        };
        for _ in 0..ROUNDS_MAX {
            let missed = {
                let mut absence = self.absence.lock();
                if absence.missed.is_everything() {
                    break;
                }
                let missed = absence.missed.take();
                if missed.is_empty() {
                    let unused = self.settle(&mut absence, present, false);
                    drop(absence);
                    drop(unused);
                    self.note_mark();
                    return Ok(Some(()));
                }
                missed
            };
            for base in missed {
                disk.invalidate(&disk.address_at(&base, b""), number);
            }
        }
        disk.close();
        Ok(None)
    }

    fn take_opened(&self) -> Option<Arc<Disk>> {
        self.absence.lock().opened.take()
    }

    /// Opens it without what it holds.
    fn open_anew(&self) -> Result<(), DiskError> {
        self.take_opened().into_iter().for_each(|disk| disk.close());
        let held_any = self.settings.is_made();
        let disk = Disk::open_anew(self.settings.clone(), self.clock.clone())?;
        let present = Present::of(disk);
        let unused = self.settle(&mut self.absence.lock(), present, held_any);
        drop(unused);
        self.note_mark();
        Ok(())
    }

    fn note_mark(&self) {
        let mark = self.absence.lock().mark.take();
        if let Some((disk, mark)) = self.disk().zip(mark) {
            disk.note(&mark);
        }
    }

    /// It is used from now on, unless the store was closed meanwhile: then it is given back. Dropped behind the lock, it is told
    /// to end; nothing was written to it.
    fn settle(&self, absence: &mut Absence, present: Present, is_anew: bool) -> Option<Present> {
        absence.is_trying = false;
        absence.missed = Missed::default();
        if absence.is_closed {
            return Some(present);
        }
        self.present.get_or_init(|| present);
        // Of one that is there at once there is nothing to say, unless something was lost.
        if is_anew || absence.told.is_some() {
            absence.push(AbsenceEvent::Back { is_anew });
        }
        None
    }

    /// It could not be opened: it is tried again, after twice the time.
    pub(super) fn failed(&self, error: DiskError) {
        let mut absence = self.absence.lock();
        absence.is_trying = false;
        absence.pause = next_pause(absence.pause);
        absence.next = Instant::now() + absence.pause;
        let why = reason(&error);
        if absence.told.as_ref() != Some(&why) {
            absence.told = Some(why);
            absence.push(AbsenceEvent::Absent(error));
        }
    }

    /// Nothing more is opened; what is there is closed. Waits for the disk.
    pub(super) fn close(&self) {
        self.absence.lock().is_closed = true;
        self.take_opened().into_iter().for_each(|disk| disk.close());
        if let Some(disk) = self.disk() {
            disk.close();
        }
    }
}

/// The error and its cause.
fn reason(error: &DiskError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl Absence {
    fn push(&mut self, event: AbsenceEvent) {
        while self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
