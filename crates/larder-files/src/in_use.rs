//! One directory in use: look-ups, fills and removals in it.
//!
//! In: a directory that is open, with its index, its queue and its threads. Out: what [`FileStore`](super::FileStore) is asked for.
//! It never becomes another directory: where another takes its place, all of this is made anew and this is closed. What
//! was found in it can be read to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::arriving::Arriving;
use super::base::Base;
use super::error::{FilesError, Refused};
use super::fill::{FileFill, Filling};
use super::hit::{self, FileHit, Opened, Source};
use super::index::{Index, IndexedFile as Known};
use super::journal::{Journal, Owed, Restored};
use super::meta::{JudgedMeta, Meta};
use super::name::{Name, TargetUri};
use super::noted::{Left, PendingRemovals};
use super::open::{Threads, shares};
use super::place::{Spare, TakenOut};
use super::queue::{FileJob, FileQueue};
use super::room::Room;
use super::sys::is_absent;
use super::tree::{Found, Glimpse, Tree};
use super::unreadable::is_of_the_device;
use super::witness::Witness;
use super::{Look, READ_TRIES, WAIT_MAX};
use larder_tier::Note;

/// What workers, the writing thread and the counting thread share.
pub(super) struct Shared {
    pub(super) base: Arc<Base>,
    pub(super) tree: Tree,
    pub(super) index: Index,
    pub(super) room: Room,
    pub(super) queue: Arc<FileQueue>,
    pub(super) noted: PendingRemovals,
    pub(super) journal: Journal,
    pub(super) witness: Witness,
    pub(super) is_counted: AtomicBool,
    /// What larder stored before is not used: it may be what was invalidated while another directory was in use, or nobody
    /// wrote it down. Milliseconds since 1970.
    pub(super) believed_from: AtomicU64,
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
    /// What its journal said of groups; handed out once.
    pub(super) notes: Mutex<Vec<Note>>,
}

impl InUse {
    /// Looks for the file of `uri`. Never waits for a disk.
    pub(super) fn look(&self, uri: &TargetUri<'_>) -> Look {
        let shared = &self.shared;
        let Ok(name) = Name::of(uri) else { return Look::Absent };
        if shared.noted.is_doomed(&name) {
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
            if self.shared.noted.is_doomed(&name) {
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
    /// it, and the file is gone a little later. With the number of an invalidation it is written down, too.
    pub(super) fn invalidate(&self, name: &Name, number: Option<(u64, Owed)>) {
        self.shared.noted.doom(name, number.map(|(number, _)| number));
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
        self.shared.noted.doom(name, None);
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

impl Shared {
    /// Whether what larder stored under a name may be used.
    pub(super) fn believes(&self, name: &Name, meta: &Meta) -> bool {
        self.believed_from.load(Ordering::Acquire) <= meta.times.received.0
            && !self.noted.hides(name, meta.number)
    }

    fn believes_hit(&self, name: &Name, hit: &FileHit) -> bool {
        match hit.source() {
            Source::Stored(meta) => self.believes(name, meta),
            Source::ByHand(_) => !hit.is_refused_by(&self.noted),
        }
    }

    /// Nothing that larder stored so far is used any more, and that is written down.
    pub(super) fn distrust(&self) {
        let now = self.base.clock.now().wall;
        self.believed_from.fetch_max(now.0, Ordering::AcqRel);
        self.noted.forget_kept();
        self.journal.begin_anew(now);
    }

    /// A removal that was noted has come to this.
    pub(super) fn removed(&self, name: &Name, spare: Spare, removed: &std::io::Result<TakenOut>) {
        let left = self.left_of(name, spare, removed);
        if left != Left::Nothing {
            self.index.unkeep(name);
        }
        if self.noted.done(name, left).is_err() {
            self.distrust();
        }
    }

    /// What is still there that was to be removed. Nobody knows what cannot be looked at.
    fn left_of(&self, name: &Name, spare: Spare, removed: &std::io::Result<TakenOut>) -> Left {
        if matches!(removed, Ok(TakenOut::Removed | TakenOut::Absent)) {
            return Left::Nothing;
        }
        let found = match self.tree.find(name) {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Left::Nothing,
            Err(_) => return Left::Stored,
        };
        match self.tree.judge(&found.file, &found.status, name, None) {
            Ok(JudgedMeta::ByHand) if spare == Spare::Nothing => Left::ByHand(found.status),
            Ok(JudgedMeta::ByHand) => Left::Nothing,
            Ok(JudgedMeta::Stored(_) | JudgedMeta::OtherScheme | JudgedMeta::Torn) | Err(_) => Left::Stored,
        }
    }

    /// Tries once more to remove what could not be removed.
    pub(super) fn remove_left(&self) {
        for name in self.noted.left() {
            self.noted.doom(&name, None);
            if self.queue.push_removal(name.clone(), Spare::ByHand, None).is_err() {
                // It stays what it was.
                let _ = self.noted.done(&name, Left::Stored);
                return;
            }
        }
    }

    /// Removes what an earlier run has invalidated and left behind.
    pub(super) fn make_good(self: &Arc<Self>, restored: &Restored) {
        restored.names.iter().for_each(|(name, number)| self.noted.restore(name, *number));
        if restored.names.is_empty() {
            return;
        }
        let (shared, names) = (Arc::clone(self), restored.names.clone());
        let make_good = move || names.iter().for_each(|(name, number)| shared.make_good_of(name, *number));
        // A closed queue has nothing to make good any more.
        let _ = self.queue.push_end(FileJob::Run(Box::new(make_good)), || true);
    }

    fn make_good_of(&self, name: &Name, number: u64) {
        let is_older = |found: Found| match self.tree.judge(&found.file, &found.status, name, None) {
            Ok(JudgedMeta::Stored(meta)) => Some(meta.number < number),
            Ok(JudgedMeta::ByHand) => Some(false),
            Ok(JudgedMeta::OtherScheme | JudgedMeta::Torn) | Err(_) => None,
        };
        let is_over = match self.tree.find(name) {
            Ok(found) => match is_older(found) {
                Some(false) => true,
                Some(true) | None => {
                    let removed = self.remove_now(name, Spare::ByHand, false);
                    self.left_of(name, Spare::ByHand, &removed) == Left::Nothing
                }
            },
            Err(error) => is_absent(&error),
        };
        if is_over {
            self.noted.made_good(name, number);
        }
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
        let noted = Known { inode: opened.status.inode, bytes, is_by_hand, is_use: true };
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
            JudgedMeta::Stored(meta) if !self.believes(name, &meta) => return Ok(None),
            JudgedMeta::Stored(meta) => Source::Stored(meta),
            JudgedMeta::OtherScheme | JudgedMeta::Torn => return Ok(None),
            JudgedMeta::ByHand if self.noted.refuses(name, &status) => return Ok(None),
            JudgedMeta::ByHand => {
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
