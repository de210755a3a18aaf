//! The figures of a disk: counters that everybody raises, and a snapshot of them.
//!
//! Counters only; nothing here decides anything. Bytes of objects are known to an eighth, since the index has eight bits
//! for them; bytes on the disk are exact.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Refused;
use super::refusals::{Refusals, RefusedCounts};

/// Figures of a disk at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Objects in the index.
    pub objects: u64,
    /// Bytes of those objects, rounded up by at most an eighth each.
    pub bytes: u64,
    /// The cap at this moment.
    pub max_bytes: u64,
    /// Bytes allocated on the disk: segments, their tables, the journal.
    pub allocated_bytes: u64,
    /// The most that was ever allocated at once.
    pub high_water_bytes: u64,
    /// Segments on the disk.
    pub segments: u64,
    /// Memory of the index, in bytes.
    pub index_bytes: u64,
    /// Bytes that wait to be written.
    pub queued_bytes: u64,
    /// Objects that wait to be written.
    pub queued_objects: u64,
    /// Bytes written since the start, journal and tables left out.
    pub written_bytes: u64,
    /// Objects written since the start.
    pub written_objects: u64,
    /// What was not stored, by reason.
    pub refused: RefusedCounts,
    /// Segments given up to make room.
    pub reclaimed_segments: u64,
    /// Objects that were written again because they had been in use.
    pub rescued_objects: u64,
    /// Objects that went with their segment.
    pub dropped_objects: u64,
    /// Objects that went because nobody asked for them.
    pub idle_objects: u64,
    /// Records and pieces found damaged.
    pub damaged: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Whether the disk is left alone because it failed, or is absent.
    pub is_failing: bool,
    /// Whether the disk could not be opened so far; all figures are 0 then.
    pub is_absent: bool,
    /// Whether nothing is stored because others fill the file system.
    pub is_without_room: bool,
    /// Whether room is allocated before it is written; elsewhere zeros are written first.
    pub is_preallocating: bool,
}

impl DiskUsage {
    /// How the disk is, in a word.
    pub fn state(&self) -> &'static str {
        match self {
            Self { is_absent: true, .. } => "absent",
            Self { is_failing: true, .. } => "failing",
            Self { is_without_room: true, .. } => "no-room",
            _ => "ok",
        }
    }
}

/// A counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a disk.
#[derive(Debug, Default)]
pub(super) struct DiskCounts {
    pub(super) written_bytes: Count,
    pub(super) written_objects: Count,
    refusals: Refusals,
    pub(super) reclaimed_segments: Count,
    pub(super) rescued_objects: Count,
    pub(super) dropped_objects: Count,
    pub(super) idle_objects: Count,
    pub(super) damaged: Count,
    pub(super) read_errors: Count,
    pub(super) write_errors: Count,
}

impl DiskCounts {
    /// Counts a refusal and hands it on.
    pub(super) fn refuse(&self, why: Refused) -> Refused {
        self.refusals.note(why.into());
        why
    }

    /// The part of the snapshot that is counted here.
    pub(super) fn snapshot(&self) -> DiskUsage {
        DiskUsage {
            written_bytes: self.written_bytes.now(),
            written_objects: self.written_objects.now(),
            refused: self.refusals.counts(),
            reclaimed_segments: self.reclaimed_segments.now(),
            rescued_objects: self.rescued_objects.now(),
            dropped_objects: self.dropped_objects.now(),
            idle_objects: self.idle_objects.now(),
            damaged: self.damaged.now(),
            read_errors: self.read_errors.now(),
            write_errors: self.write_errors.now(),
            ..DiskUsage::default()
        }
    }
}
