//! A store whose directory is not there, or is another than before.
//!
//! In: the path, looked at every half second, which costs a request nothing. Out: the directory in use is the one that the
//! path leads to. Another that takes its place (a rename, a link that was switched, a new one after `rm -r`) is taken up. One
//! that is gone is left at once. One that cannot be used is tried again: after a second, then less and less often up to once a
//! minute, and at once when the path leads elsewhere.
//!
//! What was stored and taken out meanwhile is noted ([`Missed`]) and taken out of the directory before that is used again. Another
//! directory than the last one may have been in use at any time: of what larder stored there before nothing is used, and what
//! people put there is.
//!
//! The lock of [`Absence`] guards what there is to say of the absence. It is taken by those who change something only while the directory
//! is absent, and never held while the file system is asked for anything.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use larder_http::time::WallTime;
use rustix::io::Errno;

use super::FileStore;
use super::absence::{Absence, FilesAbsence};
use super::error::{FilesError, Refused};
use super::in_use::InUse;
use super::journal::Owed;
use super::name::{Name, TargetUri};
use super::sys::Identity;
use super::threads::Stop;
use super::tree::Missing;
use larder_tier::missed::Missed;

/// How often it is looked where the path leads.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// How often what was missed is made good for while more comes, before nothing is believed instead.
const ROUNDS_MAX: usize = 1000;

/// Where a path leads.
enum Leads {
    /// To this directory.
    To(Identity),
    /// Nowhere.
    Nowhere(std::io::Error),
    /// Nobody knows: the look failed for a reason of its own.
    Unknown,
}

fn leads(path: &Path) -> Leads {
    match Identity::at(path) {
        Ok(identity) => Leads::To(identity),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG) => {
                Leads::Nowhere(error)
            }
            _ => Leads::Unknown,
        },
    }
}

/// Looks at the path until the store is closed or gone.
pub(super) fn run(store: &Weak<FileStore>, stop: &Stop) {
    while stop.rest(WATCH_EVERY) {
        let Some(store) = store.upgrade() else { return };
        store.look_after();
    }
}

impl FileStore {
    /// The oldest event that was not taken yet: that the directory is absent, back, or another.
    pub fn take_absence(&self) -> Option<FilesAbsence> {
        self.absence.lock().events.pop_front()
    }

    /// The directory, to change something for `uri`; where it is absent, that is noted.
    pub(super) fn in_use_or(&self, uri: &TargetUri<'_>) -> Result<Arc<InUse>, Refused> {
        if let Some(in_use) = self.in_use.load_full() {
            return Ok(in_use);
        }
        let name = Name::of(uri).map_err(Refused::Unnameable)?;
        let mut absence = self.absence.lock();
        // It may have come meanwhile; and it comes under the lock, so that nothing is missed without being noted.
        match self.in_use.load_full() {
            Some(in_use) => Ok(in_use),
            None => {
                absence.missed.note(name.bytes());
                Err(Refused::Absent)
            }
        }
    }

    /// The directory, to note what concerns whatever lies there; where it is absent, nothing is used of what larder stored.
    pub(super) fn in_use_or_miss_all(&self) -> Option<Arc<InUse>> {
        if let Some(in_use) = self.in_use.load_full() {
            return Some(in_use);
        }
        let mut absence = self.absence.lock();
        let in_use = self.in_use.load_full();
        if in_use.is_none() {
            absence.missed.note_everything();
        }
        in_use
    }

    /// What larder stored in it is not used, although it was there all the time.
    pub(super) fn tell_of_distrust(&self) {
        self.absence.lock().push(FilesAbsence::Back { is_anew: true });
    }

    /// Has what a directory knows heard before it is used, and gives whether that may be. Of one that begins anew nothing counts
    /// but its numbers.
    fn tell_of(&self, in_use: &InUse, is_anew: bool) -> bool {
        let mut notes = std::mem::take(&mut *in_use.notes.lock());
        if is_anew {
            notes.clear();
        }
        let returns = self.base.returns.get();
        returns.is_none_or(|returns| returns(in_use.shared.journal.reached(), notes))
    }

    /// Notes what every directory does that is taken up. Behind that: what comes meanwhile is noted there.
    fn note_mark(&self) {
        let (mark, in_use) = (self.base.mark.lock().clone(), self.in_use.load());
        if let Some((mark, in_use)) = mark.zip(in_use.as_ref()) {
            in_use.shared.journal.mark(&mark);
        }
    }

    /// Sees to it that the directory in use is the one that the path leads to. Waits for the file system.
    fn look_after(&self) {
        let path = self.directory();
        let leads = leads(path);
        let Some(in_use) = self.in_use.load_full() else {
            let there = if let Leads::To(identity) = leads { Some(identity) } else { None };
            if self.absence.lock().is_due(there) {
                self.try_again();
            }
            return;
        };
        match leads {
            Leads::Unknown => {}
            Leads::To(identity) if identity == in_use.shared.tree.identity() => {
                in_use.shared.remove_asides_again(Instant::now());
            }
            Leads::To(_) => self.replace(&in_use),
            Leads::Nowhere(source) => {
                let error = FilesError::Io { path: path.to_owned(), step: "the directory is gone", source };
                self.leave(&in_use, error);
            }
        }
    }

    /// Takes up the directory that has taken the place of another.
    fn replace(&self, old: &InUse) {
        let now = self.base.clock.now().wall;
        match InUse::open(&self.base, Missing::Leave, now) {
            Ok(new) => {
                self.tell_of(&new, true);
                {
                    let mut absence = self.absence.lock();
                    if absence.is_closed {
                        return new.close();
                    }
                    self.in_use.store(Some(new));
                    absence.push(FilesAbsence::Replaced);
                }
                self.note_mark();
                self.end(old);
            }
            Err(error) => self.leave(old, error),
        }
    }

    /// Goes on without it.
    fn leave(&self, old: &InUse, error: FilesError) {
        {
            let mut absence = self.absence.lock();
            absence.missed = Missed::default();
            absence.last = Some(old.shared.tree.identity());
            (absence.pause, absence.told) = (Duration::ZERO, None);
            self.in_use.store(None);
            absence.failed(error, self.directory());
        }
        self.end(old);
    }

    fn end(&self, old: &InUse) {
        self.base.high_water.fetch_max(old.shared.room.bytes.high_water(), Ordering::Relaxed);
        old.close();
    }

    /// Tries to use the directory again.
    fn try_again(&self) {
        let path = self.directory();
        let (last, is_everything) = {
            let absence = self.absence.lock();
            (absence.last, absence.missed.is_everything())
        };
        // One that was never in use is the one of the config, and is believed like at a start.
        let is_it = last.is_none_or(|last| Identity::at(path).is_ok_and(|there| there == last));
        let now = self.base.clock.now().wall;
        let believed_from = if is_it && !is_everything { WallTime(0) } else { now };
        // One that somebody removed is not made: they may be about to put another there.
        let missing = if last.is_none() { Missing::Make } else { Missing::Leave };
        match InUse::open(&self.base, missing, believed_from) {
            // It changed between the look and the opening: the next look sees what it is now.
            Ok(in_use) if is_it && last.is_some_and(|last| last != in_use.shared.tree.identity()) => {
                in_use.close()
            }
            Ok(in_use) => self.settle(in_use, believed_from > WallTime(0)),
            Err(error) => self.absence.lock().failed(error, path),
        }
    }

    /// It is used from now on, without what was missed, unless the store was closed meanwhile.
    fn settle(&self, in_use: Arc<InUse>, is_anew: bool) {
        let is_believed = self.tell_of(&in_use, is_anew);
        for round in 0..=ROUNDS_MAX {
            let missed = {
                let mut absence = self.absence.lock();
                let is_doubted = !is_believed || absence.missed.is_everything() || round == ROUNDS_MAX;
                let must_begin_anew = !is_anew && is_doubted;
                if absence.is_closed || must_begin_anew {
                    if must_begin_anew {
                        absence.missed.note_everything();
                    }
                    drop(absence);
                    // Tried again, it is not believed.
                    return in_use.close();
                }
                let missed = absence.missed.take();
                if missed.is_empty() || is_anew {
                    let events = std::mem::take(&mut absence.events);
                    *absence = Absence { events, ..Absence::default() };
                    absence.push(FilesAbsence::Back { is_anew });
                    self.in_use.store(Some(in_use));
                    drop(absence);
                    return self.note_mark();
                }
                missed
            };
            // Whatever was invalidated meanwhile had no higher number.
            let number = self.base.last_number().max(in_use.shared.journal.reached());
            let number = Some((number, Owed::Yes)).filter(|_| number > 0);
            missed.iter().for_each(|name| in_use.invalidate(&Name::found_at(name), number));
        }
    }
}
