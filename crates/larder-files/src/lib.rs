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

mod absence;
mod arriving;
mod aside;
mod base;
mod calls;
mod closing;
mod cursor;
mod directory;
mod error;
mod events;
mod export;
mod fill;
mod filling;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod hit;
mod holdable;
mod in_use;
mod index;
mod journal;
mod keep;
mod list;
mod look;
mod meta;
pub mod metrics;
mod name;
mod noted;
mod open;
mod place;
mod queue;
mod reader;
mod refusals;
mod remembered;
mod renew;
mod renewal;
mod resolver;
mod room;
mod settings;
mod syncs;
mod sys;
#[cfg(test)]
mod tests;
mod threads;
mod tier;
mod told;
mod tree;
mod unreadable;
mod walk;
mod watch;
mod witness;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

pub use absence::FilesAbsence;
pub use base::Returns;
pub use cursor::FilesCursor;
pub use error::{FilesError, NotAFile, Refused};
pub use export::{ExportSettings, Exported, LeftOut, Page, export};
pub use fill::FileFill;
pub use filling::Done;
pub use hit::{FileHit, PIECE_BYTES, Source, freshness_by_hand};
pub use holdable::may_hold;
pub use list::{FilesPage, Listed, Odd, survey};
pub use look::Look;
pub use meta::{Meta, StoredTimes};
pub use name::{TargetUri, Unnameable};
pub use open::probe;
pub use refusals::NotFiled;
pub use resolver::{Cached, Links, READ, Resolver};
pub use settings::FilesSettings;
pub use unreadable::UnreadableFile;

use absence::Absence;
use aside::waiting::LeftAside;
use base::{Base, Caps};
use directory::Directory;
use in_use::InUse;
use journal::Owed;
use name::Name;
use settings::shares;
use threads::Stop;

use larder_tier::Note;
use larder_tier::rank::RankedMutex;
use larder_tier::tier::Written;

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
    /// Bytes of bodies that wait to be written.
    pub queued_bytes: u64,
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
    pub refused: [u64; NotFiled::ALL.len()],
    /// Reads that failed: the file counted as absent.
    pub unreadable: u64,
    /// Errors of the file system.
    pub errors: u64,
    /// Names under which something was invalidated and is not gone yet.
    pub invalidated: u64,
    /// Tries to write down what was invalidated that failed.
    pub journal_failures: u64,
    /// Whether what was invalidated is not written down, and only in memory.
    pub is_journal_behind: bool,
    /// Whether everything has been counted once; nothing is stored before.
    pub is_counted: bool,
    /// Whether the file system has failed a moment ago, and nothing is stored for a while; also while it is absent.
    pub is_failing: bool,
    /// Whether the directory is not there, or cannot be used.
    pub is_absent: bool,
}

impl FilesUsage {
    /// What was not taken, and could not be written: each reason by its fixed word. What no file can stand for is kept in memory.
    pub fn refused_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let reasons = NotFiled::ALL.into_iter().zip(self.refused);
        let refused = reasons.filter(|(reason, _)| !reason.is_kept_in_memory());
        refused.map(|(reason, count)| (reason.token(), count))
    }

    /// In what state the directory is, in a word.
    pub const fn state(&self) -> &'static str {
        match (self.is_absent, self.is_failing) {
            (true, _) => "absent",
            (false, true) => "failing",
            (false, false) => "ok",
        }
    }
}

/// The store. Shared by all workers; every method may be called from any of them. It goes on without its directory where
/// that cannot be used, and with another that takes its place.
#[derive(Debug)]
pub struct FileStore {
    base: Arc<Base>,
    in_use: ArcSwapOption<InUse>,
    absence: RankedMutex<Absence>,
    watch: Arc<Stop>,
}

impl FileStore {
    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.base.settings.path
    }

    /// From now on its queue may borrow of its store's memory, and so may those of directories that take its place.
    pub(crate) fn borrow_from(&self, backlog: &Arc<larder_tier::backlog::Backlog>) {
        self.base.backlog.get_or_init(|| Arc::clone(backlog));
        if let Some(in_use) = self.in_use.load().as_ref() {
            in_use.shared.queue.borrow_from(backlog);
        }
    }

    /// Why nothing can be stored at this moment, whatever it is; only to be told.
    pub fn refuses(&self) -> Option<Refused> {
        let in_use = self.in_use.load();
        let Some(in_use) = in_use.as_ref() else { return Some(Refused::Absent) };
        if self.base.health.is_failing() {
            return Some(Refused::Failing);
        }
        (!in_use.shared.is_counted.load(Ordering::Acquire)).then_some(Refused::Counting)
    }

    /// Looks for the file of `uri`. Never waits for a disk.
    pub fn look(&self, uri: &TargetUri<'_>) -> Look {
        self.in_use.load().as_ref().map_or(Look::Absent, |in_use| in_use.look(uri))
    }

    /// The same for a hit that is to be sent: what has to be waited for before its first byte can be read is only to be had from
    /// [`look_blocking`](Self::look_blocking), which finds out whether it can be read at all.
    pub fn look_to_send(&self, uri: &TargetUri<'_>) -> Look {
        self.in_use.load().as_ref().map_or(Look::Absent, |in_use| in_use.look_to_send(uri))
    }

    /// The same where it may wait for a disk; for a pool. What cannot be read counts as absent: the origin may know better.
    pub fn look_blocking(&self, uri: &TargetUri<'_>) -> Option<Arc<FileHit>> {
        self.in_use.load_full()?.look_blocking(uri)
    }

    /// Begins to store a response, whose body has `declared` bytes where that is known. Never waits.
    ///
    /// # Errors
    /// It cannot be stored now.
    pub fn begin(&self, uri: &TargetUri<'_>, declared: Option<u64>) -> Result<FileFill, Refused> {
        let begun = match self.in_use_or(uri) {
            Ok(in_use) => in_use.begin(uri, declared),
            Err(why) => Err(why),
        };
        if let Err(why) = &begun {
            self.base.counts.refusals.note(why.reason());
        }
        begun
    }

    /// Removes what larder has stored for `uri`; what people put there stays. Does not wait: from now on no look-up finds
    /// it, and the file is gone a little later.
    pub fn invalidate(&self, uri: &TargetUri<'_>) {
        let (Ok(name), Ok(in_use)) = (Name::of(uri), self.in_use_or(uri)) else { return };
        in_use.invalidate(&name, None);
    }

    /// The same for an invalidation with this number: it holds after a restart as well, and where the file cannot be removed. Who
    /// answers somebody because of it waits for [`written`](Self::written) before.
    pub fn invalidate_below(&self, uri: &TargetUri<'_>, number: u64) {
        self.invalidate_numbered(uri, number, Owed::Yes);
    }

    /// The same for a purge, which is acknowledged when [`remove`](Self::remove) is done and not before.
    pub fn purge_below(&self, uri: &TargetUri<'_>, number: u64) {
        self.invalidate_numbered(uri, number, Owed::No);
    }

    fn invalidate_numbered(&self, uri: &TargetUri<'_>, number: u64, owed: Owed) {
        self.base.note_number(number);
        let (Ok(name), Ok(in_use)) = (Name::of(uri), self.in_use_or(uri)) else { return };
        in_use.invalidate(&name, Some((number, owed)));
    }

    /// Notes a numbered predicate of the caller's, which is among [`notes`](Self::notes) at the next start.
    pub fn note(&self, note: &Note) {
        self.base.note_number(note.number);
        if let Some(in_use) = self.in_use_or_miss_all() {
            in_use.shared.journal.note(note);
        }
    }

    /// Notes what concerns nothing that is stored. A directory that is taken up later notes the last of them as well.
    pub fn mark(&self, note: &Note) {
        *self.base.mark.lock() = Some(note.clone());
        if let Some(in_use) = self.in_use.load().as_ref() {
            self.base.note_number(note.number);
            in_use.shared.journal.mark(note);
        }
    }

    /// What is noted so far is written down, so that it outlives the process; or it was tried in vain.
    pub fn written(&self) -> Written {
        self.in_use.load().as_ref().map_or_else(Written::default, |in_use| in_use.shared.journal.written())
    }

    /// A call that makes what is noted by then hold after a crash of the machine. It waits for the disk: it is for a pool.
    ///
    /// # Errors
    /// It could not be written, or the directory is absent.
    fn syncing(&self) -> impl FnOnce() -> Result<(), FilesError> + Send + 'static {
        let (in_use, path) = (self.in_use.load_full(), self.directory().to_owned());
        move || {
            let Some(in_use) = in_use else { return Err(FilesError::Absent { path }) };
            if !in_use.shared.journal.sync() {
                return Err(FilesError::NotWritten { path });
            }
            let synced = journal::sync_file(&in_use.shared.tree);
            synced.map_err(|source| FilesError::Io { path, step: "syncing the journal", source })
        }
    }

    /// The predicates that were noted before the last start. Handed out once.
    pub fn notes(&self) -> Vec<Note> {
        self.in_use.load().as_ref().map_or_else(Vec::new, |in_use| std::mem::take(&mut *in_use.notes.lock()))
    }

    /// A number above all that the directory knows of.
    pub fn last_number(&self) -> u64 {
        self.in_use.load().as_ref().map_or(0, |in_use| in_use.shared.journal.reached())
    }

    /// Whether something that was invalidated is not written down, so that closing it now would forget that.
    pub fn is_behind(&self) -> bool {
        self.in_use.load().as_ref().is_some_and(|in_use| in_use.shared.journal.is_behind())
    }

    /// What larder stored so far is not used any more: nobody knows what of it was invalidated. What people put there is. Waits
    /// until that is written down.
    pub fn distrust(&self) {
        if let Some(in_use) = self.in_use_or_miss_all() {
            // One in which nothing was stored before has nothing to lose.
            if in_use.shared.journal.reached() > 0 {
                self.tell_of_distrust();
            }
            in_use.distrust();
        }
    }

    /// Who hears of a directory that is taken up while larder runs. Only the first who asks does.
    pub fn tell_of_returns(&self, returns: Arc<Returns>) {
        self.base.returns.get_or_init(|| returns);
    }

    /// Removes the file of `uri`, whoever put it there, and waits until it is gone for good; for a pool. Whether there was one.
    ///
    /// # Errors
    /// It may still be there: it could not be removed, or not within a minute, or the directory is absent.
    pub fn remove(&self, uri: &TargetUri<'_>) -> Result<bool, FilesError> {
        let name = Name::of(uri)?;
        let absent = || FilesError::Absent { path: self.directory().to_owned() };
        loop {
            let in_use = self.in_use_or(uri).map_err(|_| absent())?;
            let removed = in_use.remove(&name)?;
            // Where another directory has taken its place meanwhile, it is to be gone there.
            if self.in_use.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, &in_use)) {
                return Ok(removed);
            }
        }
    }

    /// See [`Renewal`](renew): new meta for the file of `uri` that `stamp` is of. Never waits; `done` is told later.
    pub(crate) fn renew(
        &self,
        uri: &TargetUri<'_>,
        stamp: hit::FileStamp,
        meta: Meta,
        is_valid: impl FnOnce() -> bool,
        done: Done,
    ) {
        match self.in_use_or(uri) {
            Ok(in_use) => in_use.renew(uri, stamp, meta, is_valid, done),
            Err(why) => done(Err(why)),
        }
    }

    /// Notes that a file cannot stand for a response of this store.
    pub(crate) fn note_not_a_file(&self, why: NotAFile) {
        self.base.counts.refusals.note(why.reason());
    }

    /// The largest body taken, in bytes.
    pub fn max_object(&self) -> u64 {
        self.base.max_object()
    }

    /// From now on so many files may be open.
    pub fn limit_files(&self, files: usize) {
        self.base.open_files.store(files, Ordering::Relaxed);
        if let Some(in_use) = self.in_use.load().as_ref() {
            in_use.shared.index.keep_at_most(shares(files).1);
        }
    }

    /// Takes over new caps and evicts down to lower ones.
    pub fn resize(&self, size: u64, inodes: u64, max_object: u64) {
        self.base.resize(Caps { bytes: size, inodes }, max_object);
        if let Some(in_use) = self.in_use.load().as_ref() {
            in_use.resize();
        }
    }

    /// Waits until everything that was asked for so far is done, a minute at most; for a pool. Whether it is.
    pub fn flush(&self) -> bool {
        self.in_use.load_full().is_none_or(|in_use| in_use.flush())
    }

    /// Figures.
    pub fn usage(&self) -> FilesUsage {
        let Base { counts, health, unreadable, remembered, high_water, .. } = &*self.base;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (in_use, caps) = (self.in_use.load_full(), self.base.caps());
        let mut usage = FilesUsage {
            max_bytes: caps.bytes,
            high_water_bytes: count(high_water),
            max_inodes: caps.inodes,
            stored: count(&counts.stored),
            renewed: count(&counts.renewed),
            failed: count(&counts.failed),
            evicted: count(&counts.evicted),
            changed: count(&counts.changed),
            refused: counts.refusals.counts(),
            unreadable: unreadable.failures(),
            errors: health.errors(),
            journal_failures: remembered.failures(),
            is_journal_behind: remembered.is_behind(),
            is_failing: in_use.is_none() || health.is_failing() || remembered.is_behind(),
            is_absent: in_use.is_none(),
            ..FilesUsage::default()
        };
        if let Some(in_use) = in_use {
            let Directory { index, room, is_counted, noted, queue, .. } = &*in_use.shared;
            usage.queued_bytes = queue.bytes() as u64;
            usage.files = index.files() as u64;
            usage.invalidated = noted.len() as u64;
            (usage.bytes, usage.inodes) = (room.bytes.used(), room.inodes.used());
            usage.high_water_bytes = usage.high_water_bytes.max(room.bytes.high_water());
            usage.is_counted = is_counted.load(Ordering::Acquire);
        }
        usage
    }

    /// What is worth a line of log, once: the file system fails, or works again.
    pub fn take_event(&self) -> Option<String> {
        self.base.health.take_event()
    }

    /// The same of what is invalidated: it cannot be written down, or can again.
    pub fn take_journal_event(&self) -> Option<String> {
        self.base.remembered.take_event()
    }

    /// The same of a file that cannot be read.
    pub fn take_unreadable(&self) -> Option<UnreadableFile> {
        self.base.unreadable.take_event()
    }

    /// The same of a directory that was purged and cannot be removed.
    fn take_left_aside(&self) -> Option<LeftAside> {
        self.in_use.load().as_ref()?.shared.asides.take_event()
    }

    #[cfg(test)]
    fn shared(&self) -> Arc<Directory> {
        use crate::in_use::InUse;
        let in_use: Option<Arc<InUse>> = self.in_use.load_full();
        Arc::clone(&in_use.unwrap_or_else(|| panic!("the directory is absent")).shared)
    }
}
