//! What is known of one disk while it runs.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Weak};

use larder_http::time::{Clock, Now};

use super::format::superblock::Superblock;
use super::handles::Handles;
use super::health::Health;
use super::in_flight::InFlight;
use super::index::Index;
use super::journal::Journal;
use super::pool::Pool;
use super::queue::WriteQueue;
use super::replaced::Replaced;
use super::segment::Segments;
use super::settings::DiskSettings;
use super::space::Space;
use super::sys::ReadMode;
use super::usage::DiskCounts;
use larder_tier::note::StockTaker;
use larder_tier::rank::RankedRwLock;

/// What the disk's own threads and its callers share.
#[derive(Debug)]
pub(super) struct DiskState {
    pub(super) settings: DiskSettings,
    pub(super) superblock: Superblock,
    /// The superblock's file; the lock goes with it.
    pub(super) _lock: std::fs::File,
    pub(super) segment_bytes: u64,
    pub(super) record_bytes_max: u64,
    pub(super) read_mode: ReadMode,
    pub(super) index: Index,
    pub(super) replaced: Replaced,
    pub(super) in_flight: InFlight,
    pub(super) segments: Segments,
    pub(super) handles: Arc<Handles>,
    pub(super) space: Space,
    pub(super) queue: WriteQueue,
    pub(super) journal: Journal,
    pub(super) neighbours: Neighbours,
    pub(super) pool: Pool,
    pub(super) health: Health,
    pub(super) counts: DiskCounts,
    pub(super) clock: Clock,
    pub(super) opened: Now,
    pub(super) is_zeroing: AtomicBool,
    pub(super) last_segment: AtomicU32,
    pub(super) last_pending: AtomicU64,
    pub(super) highest: AtomicU64,
    /// Knows which notes are needed still.
    pub(super) stock: StockTaker,
}

impl DiskState {
    /// Seconds since the disk was opened: what use is noted in.
    pub(super) fn seconds(&self) -> u32 {
        u32::try_from(self.clock.now().since(&self.opened).as_secs()).unwrap_or(u32::MAX)
    }
}

/// The other disks of a store; nothing until a disk has been told of them.
#[derive(Debug, Default)]
pub(super) struct Neighbours(pub(super) RankedRwLock<Option<Vec<Neighbour>>>);

/// Another disk, by its identity.
type Neighbour = (u64, Weak<DiskState>);
