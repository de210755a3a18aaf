//! Opening and closing a store, and the threads that belong to it.
//!
//! In: settings. Out: a store whose directory is locked, without remains of an earlier one, being counted. Two threads: one
//! changes the directory, the other counts it. They end when the store is closed or dropped; closing also waits for what is
//! still to be written.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::{Condvar, Mutex};
use rustix::fs::Mode;

use super::error::FilesError;
use super::index::Index;
use super::queue::Job;
use super::room::{DIRECTORY_BYTES, Room};
use super::tree::Tree;
use super::walk::Walked;
use super::{FileStore, Shared, WAIT_MAX, writer};

/// Small trees are counted before opening returns.
const COUNT_WAIT: Duration = Duration::from_millis(300);
/// When counting failed it is tried again.
const COUNT_AGAIN: Duration = Duration::from_secs(5);
/// Inodes and directories of larder's own.
const OWN_INODES: u64 = 5;

/// What a store of files is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesSettings {
    /// The directory; made where it is missing.
    pub path: PathBuf,
    /// The cap, in bytes, on what all files take on the disk.
    pub size: u64,
    /// The cap on files and directories.
    pub inodes: u64,
    /// The permissions of files, 0o644 for instance; directories get what goes with that. No umask is applied.
    pub mode: u32,
    /// The type of a file that somebody put there and whose name shows none.
    pub default_type: Option<HeaderValue>,
    /// The largest body taken, in bytes.
    pub max_object: u64,
    /// How many files are kept open, so that a look-up costs one question to the file system.
    pub open_files: usize,
    /// How many bytes of their content are kept, in memory.
    pub memory: u64,
    /// How often the directory is counted anew, for what others write into it.
    pub recount: Duration,
}

impl FilesSettings {
    /// The usual settings for a directory and a cap in bytes.
    pub fn new(path: impl Into<PathBuf>, size: u64) -> Self {
        Self {
            path: path.into(),
            size,
            inodes: 1_000_000,
            mode: 0o644,
            default_type: None,
            max_object: size / 4,
            open_files: 1024,
            memory: 16 * 1024 * 1024,
            recount: Duration::from_secs(60),
        }
    }
}

/// What tells the counting thread to go.
#[derive(Debug, Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn stop(&self) {
        *self.is_stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Waits so long, or until it is told to go; whether to go on.
    fn rest(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut is_stopped = self.is_stopped.lock();
        while !*is_stopped && Instant::now() < until {
            self.changed.wait_until(&mut is_stopped, until);
        }
        !*is_stopped
    }
}

/// The threads of a store.
#[derive(Debug)]
pub(super) struct Threads {
    stop: Arc<Stop>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Waits so long, for somebody who gives way; false when the store is closing.
    pub(super) fn rest(&self, time: Duration) -> bool {
        self.stop.rest(time)
    }
}

impl FileStore {
    /// Opens a store. Blocks for a moment; counting a large directory goes on afterwards, and until it is over nothing is
    /// stored.
    ///
    /// # Errors
    /// The directory cannot be used, or another larder uses it.
    pub fn open(settings: &FilesSettings) -> Result<Arc<Self>, FilesError> {
        let mode = Mode::from_bits_truncate(settings.mode & 0o777);
        let tree = Tree::open(&settings.path, mode | Mode::RUSR | Mode::WUSR)?;
        let room = Room::new(settings.size, settings.inodes);
        let own = room.take(OWN_INODES * DIRECTORY_BYTES, OWN_INODES);
        let shared = Arc::new(Shared {
            index: Index::new(settings.open_files, settings.memory, own),
            room,
            tree,
            queue: Arc::default(),
            health: Default::default(),
            doomed: Default::default(),
            counts: Default::default(),
            fills: Arc::default(),
            max_object: AtomicU64::new(settings.max_object),
            default_type: settings.default_type.clone(),
            is_counted: AtomicBool::new(false),
        });
        let stop = Arc::new(Stop::default());
        let counted = Arc::new((Mutex::new(false), Condvar::new()));
        let failed =
            |source| FilesError::Io { path: settings.path.clone(), step: "cannot start a thread", source };
        let of_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("files-write".to_owned())
            .spawn(move || writer::run(&of_writer))
            .map_err(failed)?;
        let store = Arc::new(Self {
            shared: Arc::clone(&shared),
            threads: Threads { stop: Arc::clone(&stop), running: Mutex::new(vec![writer]) },
        });
        let (of_counter, every) = (Arc::clone(&counted), settings.recount);
        let counter = std::thread::Builder::new()
            .name("files-count".to_owned())
            .spawn(move || count(&shared, &stop, every, &of_counter))
            .map_err(failed)?;
        store.threads.running.lock().push(counter);
        let (is_counted, changed) = &*counted;
        let mut is_counted = is_counted.lock();
        if !*is_counted {
            changed.wait_for(&mut is_counted, COUNT_WAIT);
        }
        Ok(store)
    }

    /// Takes over new caps and evicts down to lower ones.
    pub fn resize(&self, size: u64, inodes: u64, max_object: u64) {
        self.shared.room.bytes.resize(size);
        self.shared.room.inodes.resize(inodes);
        self.shared.max_object.store(max_object, Ordering::Relaxed);
        evict_surplus(&self.shared);
    }

    /// Waits until everything that was asked for so far is done, a minute at most; for a pool. Whether it is.
    pub fn flush(&self) -> bool {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let reached = Job::Run(Box::new(move || {
            let _ = tell.send(());
        }));
        self.shared.queue.push_end(reached, || true).is_ok() && told.recv_timeout(WAIT_MAX).is_ok()
    }

    /// Stops, after what waits to be written is written. Blocks. Files that are open stay readable.
    pub fn close(&self) {
        self.shared.queue.close();
        self.threads.stop.stop();
        let running = std::mem::take(&mut *self.threads.running.lock());
        // A thread that panicked has nothing more to say.
        running.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.threads.stop.stop();
    }
}

/// On the writing thread, which alone removes files.
fn evict_surplus(shared: &Arc<Shared>) {
    let of_job = Arc::clone(shared);
    // A closed queue has nothing to evict for.
    let _ = shared.queue.push_end(Job::Run(Box::new(move || of_job.evict_surplus())), || true);
}

/// Counts the directory, once and then every so often.
fn count(shared: &Arc<Shared>, stop: &Stop, every: Duration, counted: &(Mutex<bool>, Condvar)) {
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
            Err(error) => shared.health.fails("cannot count the directory", &error),
        }
        if !stop.rest(if is_first { COUNT_AGAIN.min(every) } else { every }) {
            return;
        }
    }
}
