//! What the writer puts together: the segment at the end of the log, and what goes there next.

use std::sync::Arc;

use super::outcome::Staged;
use crate::engine::format::record::Header;
use crate::engine::format::toc::TocEntry;
use crate::engine::segment::Segment;

/// The segment that is being written.
pub(super) struct Open {
    pub(super) segment: Arc<Segment>,
    /// Where the batch will go.
    pub(super) at: u64,
    /// Of all that was written or is in the batch.
    pub(super) entries: Vec<TocEntry>,
    pub(super) unsynced: u64,
    /// It could not be synced: what of it is on the disk nobody knows.
    pub(super) is_in_doubt: bool,
}

/// What is put together for one write.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) staged: Vec<Staged>,
    pub(super) entries: usize,
    pub(super) last_content_crc: u32,
}

/// What is written of an object or piece: its header without place and checksums, and its parts.
pub(super) struct Parts<'a> {
    pub(super) header: Header,
    pub(super) key: [&'a [u8]; 2],
    pub(super) head: &'a [u8],
    pub(super) content: &'a [&'a [u8]],
}
