//! One directory in use: look-ups, fills and removals in it.
//!
//! In: a directory that is open, with its index, its queue and its threads. Out: what [`FileStore`](super::FileStore) is asked for.
//! It never becomes another directory: where another takes its place, all of this is made anew and this is closed. What
//! was found in it can be read to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::SystemTime;

use larder_http::time::WallTime;

use super::arriving::Arriving;
use super::base::Base;
use super::doomed::Doomed;
use super::error::{FilesError, Refused};
use super::fill::{FileFill, Filling};
use super::hit::{self, FileHit, Opened, Source};
use super::index::{Index, Noted};
use super::meta::{Judged, Meta};
use super::name::{Name, TargetUri};
use super::open::{Threads, shares};
use super::place::{Spare, TakenOut, is_absent};
use super::queue::Queue;
use super::room::Room;
use super::tree::{Found, Glimpse, Tree};
use super::unreadable::is_of_the_device;
use super::{Look, READ_TRIES, WAIT_MAX};

/// What workers, the writing thread and the counting thread share.
pub(super) struct Shared {
    pub(super) base: Arc<Base>,
    pub(super) tree: Tree,
    pub(super) index: Index,
    pub(super) room: Room,
    pub(super) queue: Arc<Queue>,
    pub(super) doomed: Doomed,
    pub(super) is_counted: AtomicBool,
    /// What larder stored before is not used: it may be what was invalidated while another directory was in use.
    pub(super) believed_from: WallTime,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStore").field("path", &self.tree.path()).finish_non_exhaustive()
    }
}

/// The directory, and the threads that belong to it.
#[derive(Debug)]
pub(super) struct InUse {
    pub(super) shared: Arc<Shared>,
    pub(super) threads: Threads,
    /// When it took the place of another, or was found after it had been absent; 0 for the first.
    pub(super) since: WallTime,
}

impl InUse {
    /// Looks for the file of `uri`. Never waits for a disk.
    pub(super) fn look(&self, uri: &TargetUri<'_>) -> Look {
        let shared = &self.shared;
        let Ok(name) = Name::of(uri) else { return Look::Absent };
        if shared.doomed.has(&name) {
            return Look::Absent;
        }
        if let Some(hit) = shared.index.kept(&name) {
            match hit.is_current(shared.tree.root()) {
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
            if self.shared.doomed.has(&name) {
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
        let content = Arriving::new(shared.tree.is_in_memory(), &shared.queue);
        let filling = Filling::new(name, uri, declared, content, (&shared.base.fills, fills_max));
        let filling = filling.ok_or(Refused::QueueFull)?;
        Ok(FileFill::new(Arc::clone(shared), filling))
    }

    /// Removes what larder has stored for `uri`; what people put there stays. Does not wait: from now on no look-up finds
    /// it, and the file is gone a little later.
    pub(super) fn invalidate(&self, name: &Name) {
        self.shared.doomed.add(name);
        if self.shared.queue.push_removal(name.clone(), Spare::ByHand, None).is_err() {
            let _ = self.shared.remove_now(name, Spare::ByHand, false);
            self.shared.doomed.done(name);
        }
    }

    /// Removes the file of `uri`, whoever put it there, and waits until it is gone for good; for a pool. Whether there was one.
    ///
    /// # Errors
    /// It may still be there: it could not be removed, or not within a minute.
    pub(super) fn remove(&self, name: &Name) -> Result<bool, FilesError> {
        let (tell, told) = mpsc::sync_channel(1);
        self.shared.doomed.add(name);
        // Its receiver may have gone by then; nobody wants to know.
        let done = Box::new(move |removed| drop(tell.send(removed)));
        let removed = match self.shared.queue.push_removal(name.clone(), Spare::Nothing, Some(done)) {
            Ok(()) => told.recv_timeout(WAIT_MAX).map_err(|_| FilesError::TooSlow)?,
            Err(_) => {
                let removed = self.shared.remove_now(name, Spare::Nothing, true);
                self.shared.doomed.done(name);
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

impl Shared {
    /// Whether what larder stored may be used.
    pub(super) fn believes(&self, meta: &Meta) -> bool {
        self.believed_from <= meta.times.received
    }

    /// Judges a file that was found and reads it. `None` where it was stored for the other scheme, or for nobody knows what.
    fn open(
        self: &Arc<Self>,
        found: Found,
        name: &Name,
        uri: &TargetUri<'_>,
    ) -> std::io::Result<Option<Arc<FileHit>>> {
        if self.base.unreadable.has(name, &found.status) {
            return Ok(None);
        }
        let now = SystemTime::now();
        let status = found.status;
        let judged = self.judged(found, name, uri, now);
        let judged = judged.inspect_err(|error| self.note_unreadable(name, Some(&status), error));
        let Some(opened) = judged? else { return Ok(None) };
        let is_by_hand = matches!(opened.source, Source::ByHand(_));
        let (bytes, inodes) = self.found_to_take(&opened.status, name);
        let noted = Noted { inode: opened.status.inode, bytes, is_by_hand, is_use: true };
        let claim = self.index.note(name, &noted, || self.room.take(bytes, inodes));
        let hit = Arc::new(FileHit::read(opened, Some(claim))?);
        self.index.keep(name, &hit, now);
        Ok(Some(hit))
    }

    /// What a file is for a request. `None` where it was stored for the other scheme, or for nobody knows what.
    pub(super) fn judged(
        self: &Arc<Self>,
        found: Found,
        name: &Name,
        uri: &TargetUri<'_>,
        now: SystemTime,
    ) -> std::io::Result<Option<Opened>> {
        let Found { file, status, path } = found;
        let source = match self.tree.judge(&file, &status, name, Some(uri))? {
            Judged::Stored(meta) if !self.believes(&meta) => return Ok(None),
            Judged::Stored(meta) => Source::Stored(meta),
            Judged::OtherScheme | Judged::Torn => return Ok(None),
            Judged::ByHand => {
                let shown = String::from_utf8_lossy(name.shown());
                Source::ByHand(hit::fields_by_hand(
                    &status,
                    &shown,
                    self.base.settings.default_type.as_ref(),
                    now,
                ))
            }
        };
        let (scheme, is_in_memory) = (uri.scheme, self.tree.is_in_memory());
        let (name, owner) = (name.clone(), Arc::downgrade(self));
        Ok(Some(Opened { file: Arc::new(file), status, name, path, source, scheme, is_in_memory, owner }))
    }
}
