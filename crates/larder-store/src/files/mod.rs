//! A store of plain files: the body of a response lies where its URL says, for everybody to see.
//!
//! In: whole responses with status 200. Out: open files. `cat` shows an entry, `rm` removes it, an editor or a `cp` overrides
//! it, another web server may serve the directory, an application may write into it: the file system is the truth, and
//! every look-up asks it. What larder knows beyond the body lies in an attribute of the file and is void once the file is
//! not the one that it was written for. Names never leave the directory, whatever a request or a symbolic link says.
//!
//! A look-up is a plain call that never waits: what the kernel's caches cannot answer, it leaves to
//! [`look_blocking`](FileStore::look_blocking), which is for a pool. All changes are made by one thread of the store's own.
//! Deliberately absent: checksums (others may write), any judgement of HTTP but [`may_hold`].

mod arriving;
mod cursor;
mod doomed;
mod error;
mod export;
mod fill;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod health;
mod hit;
mod holdable;
mod index;
mod list;
mod meta;
pub mod metrics;
mod name;
mod open;
mod place;
mod queue;
mod reader;
mod refusals;
mod renew;
mod room;
mod sys;
#[cfg(test)]
mod tests;
mod tree;
mod walk;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;

pub(crate) use arriving::Arriving;
pub use cursor::FilesCursor;
pub use error::{FilesError, NotAFile, Refused};
pub use export::{ExportSettings, Exported, LeftOut, Page, export};
pub(crate) use fill::FilledBody;
pub use fill::{Done, FileFill};
pub(crate) use hit::FileStamp;
pub use hit::{FileHit, PIECE_BYTES, Source, freshness_by_hand};
pub use holdable::may_hold;
pub use list::{FilesPage, Listed, Odd, survey};
pub use meta::{Meta, StoredTimes};
pub use name::{TargetUri, Unnameable};
pub use open::FilesSettings;
pub(crate) use reader::{FileContent, FileReader};

use doomed::Doomed;
use fill::Filling;
use health::Health;
use hit::Opened;
use index::{Index, Noted};
use meta::Judged;
use name::Name;
use open::Threads;
use place::{Spare, TakenOut, is_absent};
use queue::Queue;
use refusals::{REASONS, Refusals};
use room::Room;
use tree::{Found, Glimpse, Tree};

/// Fills under way, each with a file open.
const FILLS_MAX: usize = 1024;

/// How often a file is opened anew that changes while it is read.
const READ_TRIES: usize = 3;

/// How long anybody waits for the writing thread.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What a look-up found.
#[derive(Debug)]
pub enum Look {
    /// A file that stands for the response.
    Found(Arc<FileHit>),
    /// There is none.
    Absent,
    /// Only [`FileStore::look_blocking`] can tell.
    WouldBlock,
}

/// Figures of a store, summed when asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesUsage {
    /// Files known, those of others included.
    pub files: u64,
    /// Bytes taken on the disk.
    pub bytes: u64,
    /// The cap on them.
    pub max_bytes: u64,
    /// The most that was ever taken at once.
    pub high_water_bytes: u64,
    /// Inodes taken.
    pub inodes: u64,
    /// The cap on them.
    pub max_inodes: u64,
    /// Responses stored.
    pub stored: u64,
    /// Files that got new fields and times, and kept their content.
    pub renewed: u64,
    /// Fills that were committed, and renewals, that came to nothing after all.
    pub failed: u64,
    /// Files evicted to make room.
    pub evicted: u64,
    /// Look-ups that found a file changed or gone since the last one.
    pub changed: u64,
    /// Responses that did not become files, by reason; see [`metrics`].
    pub refused: [u64; REASONS.len()],
    /// Errors of the file system.
    pub errors: u64,
    /// Whether everything has been counted once; nothing is stored before.
    pub is_counted: bool,
    /// Whether the file system has failed a moment ago, and nothing is stored for a while.
    pub is_failing: bool,
}

#[derive(Debug, Default)]
struct Counts {
    stored: AtomicU64,
    renewed: AtomicU64,
    failed: AtomicU64,
    evicted: AtomicU64,
    changed: AtomicU64,
    refusals: Refusals,
}

/// What workers, the writing thread and the counting thread share.
struct Shared {
    tree: Tree,
    index: Index,
    room: Room,
    queue: Arc<Queue>,
    health: Health,
    doomed: Doomed,
    counts: Counts,
    fills: Arc<AtomicUsize>,
    max_object: AtomicU64,
    default_type: Option<HeaderValue>,
    is_counted: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStore").field("path", &self.tree.path()).finish_non_exhaustive()
    }
}

/// The store. Shared by all workers; every method may be called from any of them.
#[derive(Debug)]
pub struct FileStore {
    shared: Arc<Shared>,
    threads: Threads,
}

impl FileStore {
    /// The directory.
    pub fn directory(&self) -> &Path {
        self.shared.tree.path()
    }

    /// Why nothing can be stored at this moment, whatever it is; only to be told.
    pub fn refuses(&self) -> Option<Refused> {
        if self.shared.health.is_failing() {
            return Some(Refused::Failing);
        }
        (!self.shared.is_counted.load(Ordering::Acquire)).then_some(Refused::Counting)
    }

    /// Looks for the file of `uri`. Never waits for a disk.
    pub fn look(&self, uri: &TargetUri<'_>) -> Look {
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
                    shared.counts.changed.fetch_add(1, Ordering::Relaxed);
                    shared.index.unkeep(&name);
                }
                Err(_) => {
                    shared.counts.changed.fetch_add(1, Ordering::Relaxed);
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

    /// The same where it may wait for a disk; for a pool. What cannot be read counts as absent: the origin may know better.
    pub fn look_blocking(&self, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
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
                Err(_) => return None,
            };
            if let Ok(hit) = self.shared.open(found, &name, uri) {
                return hit;
            }
        }
        None
    }

    /// Begins to store a response, whose body has `declared` bytes where that is known. Never waits.
    ///
    /// # Errors
    /// It cannot be stored now.
    pub fn begin(&self, uri: &TargetUri<'_>, declared: Option<u64>) -> Result<FileFill, Refused> {
        let begun = self.try_begin(uri, declared);
        if let Err(why) = &begun {
            self.shared.counts.refusals.note(why.token());
        }
        begun
    }

    fn try_begin(&self, uri: &TargetUri<'_>, declared: Option<u64>) -> Result<FileFill, Refused> {
        let shared = &self.shared;
        let name = Name::of(uri).map_err(Refused::Unnameable)?;
        if !shared.is_counted.load(Ordering::Acquire) {
            return Err(Refused::Counting);
        }
        if declared.is_some_and(|declared| declared > shared.max_object()) {
            return Err(Refused::TooLarge);
        }
        if shared.health.is_failing() {
            return Err(Refused::Failing);
        }
        let content = Arriving::new(shared.tree.is_in_memory(), &shared.queue);
        let filling = Filling::new(name, uri, declared, content, (&shared.fills, FILLS_MAX));
        let filling = filling.ok_or(Refused::QueueFull)?;
        Ok(FileFill::new(Arc::clone(shared), filling))
    }

    /// Removes what larder has stored for `uri`; what people put there stays. Does not wait: from now on no look-up finds
    /// it, and the file is gone a little later.
    pub fn invalidate(&self, uri: &TargetUri<'_>) {
        let Ok(name) = Name::of(uri) else { return };
        self.shared.doomed.add(&name);
        if self.shared.queue.push_removal(name.clone(), Spare::ByHand, None).is_err() {
            let _ = self.shared.remove_now(&name, Spare::ByHand, false);
            self.shared.doomed.done(&name);
        }
    }

    /// Removes the file of `uri`, whoever put it there, and waits until it is gone for good; for a pool. Whether there was one.
    ///
    /// # Errors
    /// It may still be there: it could not be removed, or not within a minute.
    pub fn remove(&self, uri: &TargetUri<'_>) -> Result<bool, FilesError> {
        let name = Name::of(uri)?;
        let (tell, told) = mpsc::sync_channel(1);
        self.shared.doomed.add(&name);
        // Its receiver may have gone by then; nobody wants to know.
        let done = Box::new(move |removed| drop(tell.send(removed)));
        let removed = match self.shared.queue.push_removal(name.clone(), Spare::Nothing, Some(done)) {
            Ok(()) => told.recv_timeout(WAIT_MAX).map_err(|_| FilesError::TooSlow)?,
            Err(_) => {
                let removed = self.shared.remove_now(&name, Spare::Nothing, true);
                self.shared.doomed.done(&name);
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

    /// Notes that a file cannot stand for a response of this store.
    pub(crate) fn note_not_a_file(&self, why: NotAFile) {
        self.shared.counts.refusals.note(why.token());
    }

    /// The directory.
    pub fn path(&self) -> &std::path::Path {
        self.shared.tree.path()
    }

    /// The largest body taken, in bytes.
    pub fn max_object(&self) -> u64 {
        self.shared.max_object()
    }

    /// Figures.
    pub fn usage(&self) -> FilesUsage {
        let shared = &self.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FilesUsage {
            files: shared.index.files() as u64,
            bytes: shared.room.bytes.used(),
            max_bytes: shared.room.bytes.cap(),
            high_water_bytes: shared.room.bytes.high_water(),
            inodes: shared.room.inodes.used(),
            max_inodes: shared.room.inodes.cap(),
            stored: count(&shared.counts.stored),
            renewed: count(&shared.counts.renewed),
            failed: count(&shared.counts.failed),
            evicted: count(&shared.counts.evicted),
            changed: count(&shared.counts.changed),
            refused: shared.counts.refusals.counts(),
            errors: shared.health.errors(),
            is_counted: shared.is_counted.load(Ordering::Acquire),
            is_failing: shared.health.is_failing(),
        }
    }

    /// What is worth a line of log, once: the file system fails, or works again.
    pub fn take_event(&self) -> Option<String> {
        self.shared.health.take_event()
    }
}

impl Shared {
    fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed)
    }

    /// Judges a file that was found and reads it. `None` where it was stored for the other scheme, or for nobody knows what.
    fn open(&self, found: Found, name: &Name, uri: &TargetUri<'_>) -> std::io::Result<Option<Arc<FileHit>>> {
        let now = SystemTime::now();
        let Some(opened) = self.judged(found, name, uri, now)? else { return Ok(None) };
        let is_by_hand = matches!(opened.source, Source::ByHand(_));
        let (bytes, inodes) = self.found_to_take(&opened.status, name);
        let noted = Noted { inode: opened.status.inode, bytes, is_by_hand, is_use: true };
        let claim = self.index.note(name, &noted, || self.room.take(bytes, inodes));
        let hit = Arc::new(FileHit::read(opened, Some(claim))?);
        self.index.keep(name, &hit, now);
        Ok(Some(hit))
    }

    /// What a file is for a request. `None` where it was stored for the other scheme, or for nobody knows what.
    fn judged(
        &self,
        found: Found,
        name: &Name,
        uri: &TargetUri<'_>,
        now: SystemTime,
    ) -> std::io::Result<Option<Opened>> {
        let Found { file, status, path } = found;
        let source = match self.tree.judge(&file, &status, name, Some(uri))? {
            Judged::Stored(meta) => Source::Stored(meta),
            Judged::OtherScheme | Judged::Torn => return Ok(None),
            Judged::ByHand => {
                let shown = String::from_utf8_lossy(name.shown());
                Source::ByHand(hit::fields_by_hand(&status, &shown, self.default_type.as_ref(), now))
            }
        };
        let (scheme, is_in_memory) = (uri.scheme, self.tree.is_in_memory());
        let closer = Arc::downgrade(&self.queue);
        Ok(Some(Opened { file: Arc::new(file), status, path, source, scheme, is_in_memory, closer }))
    }
}
