//! What is known of one directory in use: by workers, by the thread that writes and by the one that counts.
//!
//! In: names, and what lies under them. Out: whether it may be used, and what is left of what was to be removed. It never becomes
//! another directory: where another takes its place, all of this is made anew.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::aside::waiting::Asides;
use super::base::Base;
use super::closing::Closer;
use super::hit::{self, FileHit, HitOwner, OpenedFile, Source};
use super::index::{Index, IndexedFile};
use super::journal::{Journal, Restored};
use super::meta::{JudgedMeta, Meta};
use super::name::{Name, TargetUri};
use super::noted::{Left, PendingRemovals};
use super::place::{Spare, TakenOut};
use super::queue::{FileJob, FileQueue};
use super::room::Room;
use super::sys::{Status, is_absent};
use super::tree::{FoundFile, Tree};
use super::unreadable::is_of_the_device;
use super::witness::Witness;

/// What workers, the writing thread and the counting thread share of a directory.
pub(super) struct Directory {
    pub(super) base: Arc<Base>,
    pub(super) tree: Tree,
    pub(super) index: Index,
    pub(super) room: Room,
    pub(super) queue: Arc<FileQueue>,
    pub(super) noted: PendingRemovals,
    pub(super) asides: Asides,
    pub(super) journal: Journal,
    pub(super) witness: Witness,
    pub(super) is_counted: AtomicBool,
    /// What larder stored before is not used: it may be what was invalidated while another directory was in use, or nobody
    /// wrote it down. Milliseconds since 1970.
    pub(super) believed_from: AtomicU64,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStore").field("path", &self.tree.path()).finish_non_exhaustive()
    }
}

impl Directory {
    /// Whether what larder stored under a name may be used.
    pub(super) fn believes(&self, name: &Name, meta: &Meta) -> bool {
        self.believed_from.load(Ordering::Acquire) <= meta.times.received.0
            && self.journal.floor() <= meta.number
            && !self.noted.hides(name, meta.number)
    }

    pub(super) fn believes_hit(&self, name: &Name, hit: &FileHit) -> bool {
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
            self.noted.add(&name, None);
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
        let is_older = |found: FoundFile| match self.tree.judge(&found.file, &found.status, name, None) {
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
    pub(super) fn open(
        self: &Arc<Self>,
        found: FoundFile,
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
        let noted = IndexedFile { inode: opened.status.inode, bytes, is_by_hand, is_use: true };
        let claim = self.index.note(name, &noted, || self.room.take(bytes, inodes));
        let hit = Arc::new(FileHit::read(opened, Some(claim))?);
        self.index.keep(name, &hit, now);
        Ok(Some(hit))
    }

    /// What a file is for a request. `None` where it was stored for the other scheme, or for nobody knows what.
    pub(super) fn judged(
        self: &Arc<Self>,
        found: FoundFile,
        name: &Name,
        uri: &TargetUri<'_>,
        now: SystemTime,
    ) -> std::io::Result<Option<OpenedFile>> {
        let FoundFile { file, status, path } = found;
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
        let weak = Arc::downgrade(self);
        let (name, owner) = (name.clone(), weak as Weak<dyn HitOwner>);
        Ok(Some(OpenedFile { file: Arc::new(file), status, name, path, source, scheme, is_in_memory, owner }))
    }

    /// A file cannot be opened, or not even what is known of it can be read.
    pub(super) fn note_unreadable(&self, name: &Name, file: Option<&Status>, error: &std::io::Error) {
        if is_of_the_device(error) {
            self.base.unreadable.note(name, name.bytes(), file, error);
        }
    }
}

impl Closer for Directory {
    fn close_behind(&self, what: Box<dyn Send>) {
        self.queue.close_behind(what);
    }
}

impl HitOwner for Directory {
    fn leave_unreadable(
        self: Arc<Self>,
        name: &Name,
        path: &[u8],
        file: &Status,
        is_stored: bool,
        error: &std::io::Error,
    ) {
        self.base.unreadable.note(name, path, Some(file), error);
        self.index.unkeep(name);
        if is_stored {
            let (shared, name, file) = (Arc::clone(&self), name.clone(), *file);
            let remove = move || {
                // What has its name by now may be another, which can be read.
                let is_it = shared.tree.find(&name).is_ok_and(|found| found.status.has_content_of(&file));
                if is_it {
                    // Whatever comes of it, nobody is served from it.
                    let _ = shared.remove_now(&name, Spare::ByHand, false);
                }
            };
            // A closed queue has nothing to remove any more.
            let _ = self.queue.push_end(FileJob::Run(Box::new(remove)), || true);
        }
    }
}
