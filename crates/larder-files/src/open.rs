//! Opening and closing a store, and the threads that belong to it.
//!
//! In: settings. Out: a store whose directory is locked, without remains of an earlier one, being counted; or is absent, and
//! looked for. Four threads: one changes the directory, one counts it, one writes down what is invalidated ([`journal`]), and one sees
//! to it that the directory in use is the one that has the path ([`watch`]). They end when the store is closed or dropped; closing also waits for what is still to
//! be written.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use larder_http::time::{Clock, WallTime};
use parking_lot::{Condvar, Mutex};
use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use super::absence::Absence;
use super::base::Base;
use super::calls;
use super::directory::Directory;
use super::error::FilesError;
use super::in_use::{InUse, WAIT_MAX};
use super::index::Index;
use super::journal::{self, Journal};
use super::queue::FileJob;
use super::room::{DIRECTORY_BYTES, Room};
use super::settings::{FilesSettings, shares};
use super::threads::{Stop, Threads};
use super::tree::{Missing, OWN, Tree};
use super::walk::Walked;
use super::witness::Witness;
use super::{FileStore, watch, writer};

/// Small trees are counted before opening returns.
const COUNT_WAIT: Duration = Duration::from_millis(300);
/// When counting failed it is tried again.
const COUNT_AGAIN: Duration = Duration::from_secs(5);
/// Inodes and directories of larder's own.
const OWN_INODES: u64 = 7;

impl FileStore {
    /// [`open_with`](Self::open_with) a clock of its own.
    ///
    /// # Errors
    /// As there.
    pub fn open(settings: &FilesSettings) -> Result<Arc<Self>, FilesError> {
        Self::open_with(settings, Clock::default())
    }

    /// Opens a store. Blocks for a moment; counting a large directory goes on afterwards, and until it is over nothing is
    /// stored. A directory that cannot be used, or that another larder uses, is absent, and tried again; while larder runs, another that takes its place is
    /// taken up.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn open_with(settings: &FilesSettings, clock: Clock) -> Result<Arc<Self>, FilesError> {
        let base = Base::new(settings.clone(), clock);
        let mut absence = Absence::default();
        let in_use = match InUse::open(&base, Missing::Make, WallTime(0)) {
            Ok(in_use) => Some(in_use),
            Err(error) => {
                absence.failed(error, &settings.path);
                None
            }
        };
        let store = Arc::new(Self {
            base,
            in_use: ArcSwapOption::new(in_use),
            absence: Mutex::new(absence),
            watch: Arc::default(),
        });
        let (watched, stop) = (Arc::downgrade(&store), Arc::clone(&store.watch));
        std::thread::Builder::new()
            .name("files-watch".to_owned())
            .spawn(move || watch::run(&watched, &stop))
            .map_err(|source| failed_thread(settings, source))?;
        Ok(store)
    }

    /// Stops, after what waits to be written is written. Blocks. Files that are open stay readable.
    pub fn close(&self) {
        self.absence.lock().close();
        self.watch.stop();
        if let Some(in_use) = self.in_use.load_full() {
            in_use.close();
        }
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.watch.stop();
    }
}

fn failed_thread(settings: &FilesSettings, source: std::io::Error) -> FilesError {
    FilesError::Io { path: settings.path.clone(), step: "cannot start a thread", source }
}

/// Whether a directory could be used, without changing anything in it: it is there, or could be made, and takes a file with
/// content. For whoever checks a config.
///
/// # Errors
/// It could not be used now.
pub fn probe(path: &Path) -> Result<(), FilesError> {
    let failed =
        |step| move |source: Errno| FilesError::Io { path: path.to_owned(), step, source: source.into() };
    let is_missing =
        calls::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = if is_missing { above } else { path };
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = match calls::open(there, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file,
        // A file system without files that have no name: what the permissions say is all there is to know.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            let access = Access::WRITE_OK | Access::EXEC_OK;
            return calls::access(there, access).map_err(failed("cannot write to the directory"));
        }
        Err(error) => return Err(failed("cannot write to the directory")(error)),
    };
    match calls::write(&file, &[0; 4096]).and_then(|_| calls::fdatasync(&file)) {
        // Full of what larder has there: it makes room for itself.
        Err(Errno::NOSPC | Errno::DQUOT)
            if [OWN, "larder"].iter().any(|own| calls::exists(&path.join(own))) =>
        {
            Ok(())
        }
        written => written.map_err(failed("cannot write to the directory")),
    }
}

impl InUse {
    /// Opens a directory. What larder stored in it is used if it is from `believed_from` or later.
    pub(super) fn open(
        base: &Arc<Base>,
        missing: Missing,
        believed_from: WallTime,
    ) -> Result<Arc<Self>, FilesError> {
        let (settings, caps) = (&base.settings, base.caps());
        let mode = Mode::from_bits_truncate(settings.mode & 0o777);
        let tree = Tree::open(&settings.path, mode | Mode::RUSR | Mode::WUSR, missing)?;
        let failed =
            |source| FilesError::Io { path: settings.path.clone(), step: "cannot read the journal", source };
        let witness = Witness::of(&settings.path, tree.identity());
        let read = Journal::read(&tree, base.clock.now().wall, witness.is_there());
        let (journal, mut restored) = read.map_err(failed)?;
        let room = Room::new(caps.bytes, caps.inodes);
        let own = room.take(OWN_INODES * DIRECTORY_BYTES + 2 * journal::OWN_BYTES, OWN_INODES);
        let (_, kept_max) = shares(base.open_files.load(Ordering::Relaxed));
        let shared = Arc::new(Directory {
            base: Arc::clone(base),
            index: Index::new(kept_max, settings.memory, own),
            room,
            tree,
            queue: Arc::default(),
            noted: Default::default(),
            asides: Default::default(),
            is_counted: AtomicBool::new(false),
            believed_from: AtomicU64::new(believed_from.max(journal.begun()).0),
            journal,
            witness,
        });
        if believed_from > WallTime(0) {
            shared.journal.begin_anew(believed_from);
        }
        shared.make_good(&restored);
        shared.remove_left_aside();
        base.backlog.get().into_iter().for_each(|backlog| shared.queue.borrow_from(backlog));
        let stop = Arc::new(Stop::default());
        let counted = Arc::new((Mutex::new(false), Condvar::new()));
        let of_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("files-write".to_owned())
            .spawn(move || writer::run(&of_writer))
            .map_err(|source| failed_thread(settings, source))?;
        let of_journal = Arc::clone(&shared);
        let in_use = Arc::new(Self {
            shared: Arc::clone(&shared),
            threads: Threads {
                stop: Arc::clone(&stop),
                running: Mutex::new(vec![writer]),
                journal: Mutex::new(None),
            },
            notes: Mutex::new(std::mem::take(&mut restored.notes)),
        });
        let journal = std::thread::Builder::new()
            .name("files-journal".to_owned())
            .spawn(move || journal::thread::run(&of_journal))
            .map_err(|source| failed_thread(settings, source))?;
        *in_use.threads.journal.lock() = Some(journal);
        let (of_counter, every) = (Arc::clone(&counted), settings.recount);
        let counter = std::thread::Builder::new()
            .name("files-count".to_owned())
            .spawn(move || count(&shared, &stop, every, &of_counter))
            .map_err(|source| failed_thread(settings, source))?;
        in_use.threads.running.lock().push(counter);
        let (is_counted, changed) = &*counted;
        let mut is_counted = is_counted.lock();
        if !*is_counted {
            changed.wait_for(&mut is_counted, COUNT_WAIT);
        }
        Ok(in_use)
    }

    /// Takes over the caps, and evicts down to lower ones.
    pub(super) fn resize(&self) {
        let caps = self.shared.base.caps();
        self.shared.room.bytes.resize(caps.bytes);
        self.shared.room.inodes.resize(caps.inodes);
        evict_surplus(&self.shared);
    }

    pub(super) fn flush(&self) -> bool {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let reached = FileJob::Run(Box::new(move || {
            let _ = tell.send(());
        }));
        self.shared.queue.push_end(reached, || true).is_ok() && told.recv_timeout(WAIT_MAX).is_ok()
    }

    /// Stops, after what waits to be written is written, and lets others have the directory. Blocks.
    pub(super) fn close(&self) {
        self.shared.queue.close();
        self.threads.stop.stop();
        let running = std::mem::take(&mut *self.threads.running.lock());
        // A thread that panicked has nothing more to say.
        running.into_iter().for_each(|thread| drop(thread.join()));
        self.shared.journal.close();
        let journal = self.threads.journal.lock().take();
        journal.into_iter().for_each(|thread| drop(thread.join()));
        self.shared.tree.unlock();
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.journal.close();
        self.threads.stop.stop();
    }
}

/// On the writing thread, which alone removes files.
fn evict_surplus(shared: &Arc<Directory>) {
    let of_job = Arc::clone(shared);
    // A closed queue has nothing to evict for.
    let _ = shared.queue.push_end(FileJob::Run(Box::new(move || of_job.evict_surplus())), || true);
}

/// Counts the directory, once and then every so often.
fn count(shared: &Arc<Directory>, stop: &Stop, every: Duration, counted: &(Mutex<bool>, Condvar)) {
    let mut is_first = true;
    loop {
        let walked = match shared.tree.is_there() {
            true => shared.walk(is_first, &mut |time| stop.rest(time)),
            false => Err(std::io::ErrorKind::NotFound.into()),
        };
        match walked {
            Ok(Walked::All) => {
                is_first = false;
                shared.is_counted.store(true, Ordering::Release);
                *counted.0.lock() = true;
                counted.1.notify_all();
                evict_surplus(shared);
            }
            Ok(Walked::Stopped) => return,
            Err(error) => shared.base.health.fails("cannot count the directory", &error),
        }
        if !stop.rest(if is_first { COUNT_AGAIN.min(every) } else { every }) {
            return;
        }
    }
}
