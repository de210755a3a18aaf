//! One directory in use: look-ups, fills and removals in it.
//!
//! In: a directory that is open, with its index, its queue and its threads. Out: what [`FileStore`](super::FileStore) is asked for.
//! It never becomes another directory: where another takes its place, all of this is made anew and this is closed. What
//! was found in it can be read to its end.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::arriving::Arriving;
use super::closing::Closer;
use super::directory::Directory;
use super::error::{FilesError, Refused};
use super::fill::FileFill;
use super::filling::Filling;
use super::hit::FileHit;
use super::journal::Owed;
use super::look::Look;
use super::name::{Name, TargetUri};
use super::place::{Spare, TakenOut};
use super::settings::shares;
use super::sys::is_absent;
use super::threads::Threads;
use super::tree::Glimpse;
use super::unreadable::is_of_the_device;
use larder_tier::Note;
use larder_tier::rank::RankedMutex;

/// How often a file is opened anew that changes while it is read.
const READ_TRIES: usize = 3;

/// How long anybody waits for the writing thread.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// The directory, and the threads that belong to it.
#[derive(Debug)]
pub(super) struct InUse {
    pub(super) shared: Arc<Directory>,
    pub(super) threads: Threads,
    /// What its journal said of groups; handed out once.
    pub(super) notes: RankedMutex<Vec<Note>>,
}

impl InUse {
    /// Looks for the file of `uri`. Never waits for a disk.
    pub(super) fn look(&self, uri: &TargetUri<'_>) -> Look {
        let shared = &self.shared;
        let Ok(name) = Name::of(uri) else { return Look::Absent };
        if shared.noted.is_pending(&name) {
            return Look::Absent;
        }
        if let Some(hit) = shared.index.kept(&name) {
            match hit.is_current(shared.tree.root()) {
                Ok(true) if !shared.believes_hit(&name, &hit) => return Look::Absent,
                Ok(true) if hit.is_for(uri.scheme) => return Look::Found(hit),
                Ok(true) => return Look::Absent,
                Ok(false) => {
                    shared.base.counts.changed.fetch_add(1, Ordering::Relaxed);
                    shared.index.unkeep(&name);
                }
                Err(_) => {
                    shared.base.counts.changed.fetch_add(1, Ordering::Relaxed);
                    shared.index.forget(&name);
                }
            }
        }
        match shared.tree.glimpse(&name) {
            Glimpse::Absent => Look::Absent,
            Glimpse::Unknown => Look::WouldBlock,
            Glimpse::Found(found) => match shared.open(found, &name, uri) {
                Ok(Some(hit)) => Look::Found(hit),
                Ok(None) => Look::Absent,
                Err(_) => Look::WouldBlock,
            },
        }
    }

    /// The same for a hit that is to be sent: what has to be waited for before its first byte can be read is only to be had from
    /// [`look_blocking`](Self::look_blocking), which finds out whether it can be read at all.
    pub(super) fn look_to_send(&self, uri: &TargetUri<'_>) -> Look {
        match self.look(uri) {
            Look::Found(hit) if !hit.begins_now() => Look::WouldBlock,
            look => look,
        }
    }

    /// The same where it may wait for a disk; for a pool. What cannot be read counts as absent: the origin may know better.
    pub(super) fn look_blocking(&self, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
        let name = Name::of(uri).ok()?;
        for _ in 0..READ_TRIES {
            if self.shared.noted.is_pending(&name) {
                return None;
            }
            let found = match self.shared.tree.find(&name) {
                Ok(found) => found,
                Err(error) if is_absent(&error) => {
                    self.shared.index.forget(&name);
                    return None;
                }
                Err(error) => {
                    self.shared.note_unreadable(&name, None, &error);
                    return None;
                }
            };
            match self.shared.open(found, &name, uri) {
                Ok(hit) => return hit,
                Err(error) if is_of_the_device(&error) => return None,
                // It has changed meanwhile.
                Err(_) => {}
            }
        }
        None
    }

    /// See [`FileStore::begin`](super::FileStore::begin).
    pub(super) fn begin(&self, uri: &TargetUri<'_>, declared: Option<u64>) -> Result<FileFill, Refused> {
        let shared = &self.shared;
        let name = Name::of(uri).map_err(Refused::Unnameable)?;
        if !shared.is_counted.load(Ordering::Acquire) {
            return Err(Refused::Counting);
        }
        if declared.is_some_and(|declared| declared > shared.base.max_object()) {
            return Err(Refused::TooLarge);
        }
        if shared.base.health.is_failing() {
            return Err(Refused::Failing);
        }
        let (fills_max, _) = shares(shared.base.open_files.load(Ordering::Relaxed));
        let queue = Arc::downgrade(&shared.queue);
        let content = Arriving::new(shared.tree.is_in_memory(), queue as Weak<dyn Closer>);
        let filling = Filling::new(name, uri, declared, content, (&shared.base.fills, fills_max));
        let filling = filling.ok_or(Refused::QueueFull)?;
        Ok(FileFill::new(Arc::clone(shared), filling))
    }

    /// Removes what larder has stored for `uri`; what people put there stays. Does not wait: from now on no look-up finds
    /// it, and the file is gone a little later. With the number of an invalidation it is written down, too.
    pub(super) fn invalidate(&self, name: &Name, number: Option<(u64, Owed)>) {
        self.shared.noted.add(name, number.map(|(number, _)| number));
        if let Some((number, owed)) = number {
            self.shared.journal.note_name(name, number, owed);
        }
        if self.shared.queue.push_removal(name.clone(), Spare::ByHand, None).is_err() {
            let removed = self.shared.remove_now(name, Spare::ByHand, false);
            self.shared.removed(name, Spare::ByHand, &removed);
        }
    }

    /// What larder stored so far is not used any more, nor at the next start. Waits until that is written down.
    pub(super) fn distrust(&self) {
        self.shared.distrust();
        self.shared.journal.sync();
    }

    /// Removes the file of `uri`, whoever put it there, and waits until it is gone for good; for a pool. Whether there was one.
    ///
    /// # Errors
    /// It may still be there: it could not be removed, or not within a minute.
    pub(super) fn remove(&self, name: &Name) -> Result<bool, FilesError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.shared.noted.add(name, None);
        // Its receiver may have gone by then; nobody wants to know.
        let done = Box::new(move |removed| drop(tell.send(removed)));
        let removed = match self.shared.queue.push_removal(name.clone(), Spare::Nothing, Some(done)) {
            Ok(()) => told.recv_timeout(WAIT_MAX).map_err(|_| FilesError::TooSlow)?,
            Err(_) => {
                let removed = self.shared.remove_now(name, Spare::Nothing, true);
                self.shared.removed(name, Spare::Nothing, &removed);
                removed
            }
        };
        let path = self.shared.tree.path().to_owned();
        match removed {
            Ok(TakenOut::Removed) => Ok(true),
            Ok(TakenOut::Absent | TakenOut::Spared) => Ok(false),
            Err(source) => Err(FilesError::Io { path, step: "cannot remove a file", source }),
        }
    }
}
