//! What lies on a disk, read and written again; for [`crate::fuzzing`].
//!
//! In: any bytes. Out: what the formats make of them, as bytes. Each function is a `read` and its `write`, nothing else:
//! what has to hold is said by the targets.

use super::format::journal::{JournalHead, read_entries};
use super::format::record::{Record, read_pieces, write_pieces};
use super::format::segment::SegmentHead;
use super::format::superblock::Superblock;
use super::format::toc::Toc;

/// Where the first entry of a journal begins.
pub const JOURNAL_HEAD_BYTES: usize = super::format::journal::JOURNAL_HEAD_BYTES;
/// Where the first record of a segment begins.
pub const SEGMENT_HEAD_BYTES: usize = super::format::segment::SEGMENT_HEAD_BYTES;

/// The identity of a disk.
pub fn identity(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(Superblock::read(bytes)?.write())
}

/// The head of a segment.
pub fn segment_head(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(SegmentHead::read(bytes)?.write())
}

/// The head of a journal.
pub fn journal_head(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(JournalHead::read(bytes)?.write())
}

/// The record or piece at the front of `bytes`.
pub fn record(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = Record::read(bytes)?;
    let mut again = Vec::new();
    record.header.write(&mut again);
    for part in [record.base, record.variant, record.head, record.content] {
        again.extend_from_slice(part);
    }
    Some(again)
}

/// A list of pieces.
pub fn pieces(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(write_pieces(&read_pieces(bytes)?))
}

/// The table of a segment.
pub fn table(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(Toc::read(bytes)?.write())
}

/// What was read of a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct Entries {
    /// All entries, written again.
    pub again: Vec<u8>,
    /// Where the last of them ended.
    pub end: usize,
    /// Numbers up to which entries may be missing before the end.
    pub lost_up_to: Option<u64>,
}

/// The entries of a journal, from behind its head.
pub fn journal(bytes: &[u8]) -> Entries {
    let read = read_entries(bytes);
    let mut again = Vec::new();
    read.entries.iter().for_each(|entry| entry.write(&mut again));
    Entries { again, end: read.end, lost_up_to: read.lost_up_to }
}
