//! A segment while larder runs: its file, its room, and how much of it is alive.
//!
//! The table of segments is looked at for each read, under a read lock; the writer alone changes it. A segment that was
//! given up is no longer in the table and its file has no name, but its room counts until the last holder has let go
//! ([`Graves`]): that is when the file system has it back. The writer holds one handle itself, so that the file is closed
//! there, where it may take a while, and never by an event loop.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::files::toc_path;
use super::format::toc::Toc;
use super::handles::OpenHandle;
use super::settings::SEGMENT_BYTES_MAX;
use super::space::toc_bytes_max;
use super::sys;
use larder_tier::budget::Reservation;
use larder_tier::rank::{Rank, RankedMutex, RankedRwLock};

/// A segment's file and what is known of it.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) id: u32,
    pub(super) file: Arc<OpenHandle>,
    /// Where its written part ends.
    pub(super) end: AtomicU64,
    /// Room of file and table; shrinks when the segment is full.
    pub(super) room: RankedMutex<Reservation>,
    /// Records of it that are in the index.
    pub(super) live: AtomicU32,
    pub(super) has_pieces: AtomicBool,
    /// Some of them are of objects whose records lie on other disks.
    pub(super) has_others_pieces: AtomicBool,
    /// Seconds after the disk was opened in which it was begun; zero where that was before.
    pub(super) begun: u32,
    /// Records died in it since its table was written.
    pub(super) is_toc_stale: AtomicBool,
    /// Records died in it at all: without its table it cannot be told which.
    pub(super) needs_toc: AtomicBool,
    /// Its table is on the disk.
    pub(super) has_toc: AtomicBool,
    /// No more is written to it.
    pub(super) is_sealed: AtomicBool,
}

impl Segment {
    /// What is written in it ends at `end`; it was `begun` so many seconds after the disk was opened.
    pub(super) fn new(
        id: u32,
        file: Arc<OpenHandle>,
        room: Reservation,
        (end, begun): (u64, u32),
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            file,
            end: AtomicU64::new(end),
            room: RankedMutex::new(Rank::Leaf, room),
            live: AtomicU32::new(0),
            has_pieces: AtomicBool::new(false),
            has_others_pieces: AtomicBool::new(false),
            begun,
            is_toc_stale: AtomicBool::new(false),
            needs_toc: AtomicBool::new(false),
            has_toc: AtomicBool::new(false),
            is_sealed: AtomicBool::new(false),
        })
    }

    /// Notes that a piece lies in it, of an object whose record may lie on another disk.
    pub(super) fn note_piece(&self, is_of_another: bool) {
        self.has_pieces.store(true, Ordering::Relaxed);
        self.has_others_pieces.fetch_or(is_of_another, Ordering::Relaxed);
    }

    /// Whether somebody beside the table and the asker holds it: a reader, or the fill of a body that lies in it.
    pub(super) fn is_pinned(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 2
    }

    /// Notes that a record in it died in a way that has to outlive a restart.
    pub(super) fn note_death(&self) {
        self.needs_toc.store(true, Ordering::Release);
        self.is_toc_stale.store(true, Ordering::Release);
    }
}

/// The table of a segment, `None` where what lies there is none of it. No more is read than the largest table has.
pub(super) fn read_toc(folder: &Path, disk: u64, id: u32) -> io::Result<Option<Toc>> {
    let file = sys::open(&toc_path(folder, id))?;
    let length = sys::metadata(&file)?.len().min(toc_bytes_max(SEGMENT_BYTES_MAX));
    let bytes = sys::read_up_to(&file, usize::try_from(length).unwrap_or(usize::MAX), 0)?;
    Ok(Toc::read(&bytes).filter(|toc| toc.disk == disk && toc.segment == id))
}

/// The segments of a disk, oldest first.
#[derive(Debug, Default)]
pub(super) struct Segments {
    table: RankedRwLock<BTreeMap<u32, Arc<Segment>>>,
    /// Those that were given up and may still be read by who has pinned them.
    given_up: RankedRwLock<BTreeMap<u32, Weak<Segment>>>,
}

impl Segments {
    pub(super) fn find(&self, id: u32) -> Option<Arc<Segment>> {
        self.table.read().get(&id).cloned()
    }

    pub(super) fn has(&self, id: u32) -> bool {
        self.table.read().contains_key(&id)
    }

    pub(super) fn insert(&self, segment: Arc<Segment>) {
        self.table.write().insert(segment.id, segment);
    }

    /// The same, or one that was given up and that somebody has pinned.
    pub(super) fn find_pinned(&self, id: u32) -> Option<Arc<Segment>> {
        self.find(id).or_else(|| self.given_up.read().get(&id)?.upgrade())
    }

    /// From now on it is found by those only who have pinned it.
    pub(super) fn take_out(&self, id: u32) -> Option<Arc<Segment>> {
        let segment = self.table.read().get(&id).cloned()?;
        let mut given_up = self.given_up.write();
        given_up.retain(|_, segment| segment.strong_count() > 0);
        given_up.insert(id, Arc::downgrade(&segment));
        drop(given_up);
        // In both tables for a moment, never in none.
        self.table.write().remove(&id)
    }

    pub(super) fn all(&self) -> Vec<Arc<Segment>> {
        self.table.read().values().cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.table.read().len()
    }

    /// The oldest segment that is full.
    pub(super) fn oldest(&self) -> Option<Arc<Segment>> {
        let table = self.table.read();
        table.values().find(|segment| segment.is_sealed.load(Ordering::Relaxed)).cloned()
    }

    /// Full segments without a live record, nor pieces, which may belong to a live record elsewhere.
    pub(super) fn empty(&self) -> usize {
        let is_empty = |segment: &&Arc<Segment>| {
            segment.is_sealed.load(Ordering::Relaxed)
                && segment.live.load(Ordering::Relaxed) == 0
                && !segment.has_pieces.load(Ordering::Relaxed)
        };
        self.table.read().values().filter(is_empty).count()
    }

    /// Notes a death in a segment whose record was counted out before.
    pub(super) fn note_death(&self, id: u32) {
        if let Some(segment) = self.table.read().get(&id) {
            segment.note_death();
        }
    }

    /// Counts records of a segment that came into the index.
    pub(super) fn count_in(&self, id: u32, records: u32) {
        if let Some(segment) = self.table.read().get(&id) {
            segment.live.fetch_add(records, Ordering::Relaxed);
        }
    }

    /// Counts one that left it. Where it died for a reason that the journal has to know, the table is out of date.
    pub(super) fn count_out(&self, id: u32, is_death: bool) {
        if let Some(segment) = self.table.read().get(&id) {
            // A place that is settled after its base went may be counted out first; it never goes below zero.
            let less = |live: u32| live.checked_sub(1);
            let _ = segment.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            if is_death {
                segment.note_death();
            }
        }
    }
}

/// Segments that were given up and are still being read.
#[derive(Debug, Default)]
pub(super) struct Graves(Vec<Arc<Segment>>);

impl Graves {
    /// Takes a segment whose files have been removed.
    pub(super) fn add(&mut self, segment: Arc<Segment>) {
        self.0.push(segment);
    }

    /// Room that will be free when their readers are gone, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|segment| segment.room.lock().bytes()).sum()
    }

    /// Lets go of those that nobody else holds; their room is free then.
    pub(super) fn clear(&mut self) {
        self.0.retain(|segment| Arc::strong_count(segment) > 1);
    }
}
