//! What a store of plain files has whatever directory is in use: its settings and its figures.
//!
//! In: settings. Out: the same, with caps that a reload may change, and counters that go on where one directory takes the
//! place of another. Deliberately absent: anything that is known of a directory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use larder_http::time::Clock;
use parking_lot::Mutex;

use super::health::Health;
use super::refusals::Refusals;
use super::remembered::Remembered;
use super::settings::FilesSettings;
use super::unreadable::UnreadableFiles;
use larder_tier::Note;
use larder_tier::backlog::Backlog;
use larder_tier::note::StockTaker;
use larder_tier::rank::RankedMutex;

#[derive(Debug, Default)]
pub(super) struct FileCounts {
    pub(super) stored: AtomicU64,
    pub(super) renewed: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) changed: AtomicU64,
    pub(super) refusals: Refusals,
}

/// The caps on what lies in the directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
}

/// Hears of a directory that is taken up while larder runs, before it is used: above every number that it knows, and its notes.
/// Whether what larder stored there may be used.
pub type Returns = dyn Fn(u64, Vec<Note>) -> bool + Send + Sync;

/// What all directories of a store share, one after the other.
pub(super) struct Base {
    pub(super) settings: FilesSettings,
    pub(super) clock: Clock,
    caps: Mutex<Caps>,
    max_object: AtomicU64,
    pub(super) health: Health,
    pub(super) unreadable: UnreadableFiles,
    pub(super) remembered: Remembered,
    /// The highest number of an invalidation that was asked for.
    last_number: AtomicU64,
    /// What every directory notes that is taken up.
    pub(super) mark: RankedMutex<Option<Note>>,
    /// Hears what a directory knows that comes later; set once.
    pub(super) returns: OnceLock<Arc<Returns>>,
    pub(super) counts: FileCounts,
    /// Knows which notes of the journals are needed still.
    pub(super) stock: StockTaker,
    pub(super) fills: Arc<AtomicUsize>,
    /// How many files may be open.
    pub(super) open_files: AtomicUsize,
    /// The most bytes that directories took which are not in use any more.
    pub(super) high_water: AtomicU64,
    /// What the queues of the directories may borrow; set once, by the store whose directory it is.
    pub(super) backlog: OnceLock<Arc<Backlog>>,
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Base {
    pub(super) fn new(settings: FilesSettings, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            caps: Mutex::new(Caps { bytes: settings.size, inodes: settings.inodes }),
            max_object: AtomicU64::new(settings.max_object),
            open_files: AtomicUsize::new(settings.open_files),
            settings,
            clock,
            health: Health::default(),
            unreadable: UnreadableFiles::default(),
            remembered: Remembered::default(),
            last_number: AtomicU64::new(0),
            mark: RankedMutex::default(),
            returns: OnceLock::new(),
            counts: FileCounts::default(),
            stock: StockTaker::default(),
            fills: Arc::default(),
            high_water: AtomicU64::new(0),
            backlog: OnceLock::new(),
        })
    }

    pub(super) fn note_number(&self, number: u64) {
        self.last_number.fetch_max(number, Ordering::AcqRel);
    }

    pub(super) fn last_number(&self) -> u64 {
        self.last_number.load(Ordering::Acquire)
    }

    pub(super) fn caps(&self) -> Caps {
        *self.caps.lock()
    }

    /// The largest body taken, in bytes.
    pub(super) fn max_object(&self) -> u64 {
        self.max_object.load(Ordering::Relaxed)
    }

    pub(super) fn resize(&self, caps: Caps, max_object: u64) {
        *self.caps.lock() = caps;
        self.max_object.store(max_object, Ordering::Relaxed);
    }
}
