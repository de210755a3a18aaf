//! The head of a segment file: whose it is and which.
//!
//! Records follow it one after the other, each at a multiple of eight; zeros behind the last one are room that was
//! allocated and not used yet.

use super::{Whose, file_head_bytes, read_file_head, write_file_head};

const MAGIC: &[u8; 8] = b"LRDRSEGM";

/// Where the first record begins.
pub(in crate::engine) const SEGMENT_HEAD_BYTES: usize = file_head_bytes(2).next_multiple_of(8);

/// A segment's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct SegmentHead {
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) segment: u32,
}

impl SegmentHead {
    pub(in crate::engine) fn write(&self) -> Vec<u8> {
        let mut bytes = write_file_head(MAGIC, &[self.disk, self.segment.into()]);
        bytes.resize(SEGMENT_HEAD_BYTES, 0);
        bytes
    }

    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, segment] = read_file_head(MAGIC, bytes)?;
        Some(Self { disk, segment: segment.try_into().ok()? })
    }

    /// Whose a file is that has the name of this segment and begins with `bytes`; any disk's will do for `None`.
    pub(in crate::engine) fn judge(bytes: &[u8], disk: Option<u64>, segment: u32) -> Whose {
        match Self::read(bytes) {
            Some(head) if head.segment == segment && disk.is_none_or(|disk| head.disk == disk) => Whose::Ours,
            Some(_) => Whose::OtherDisk,
            None if bytes.iter().all(|byte| *byte == 0) => Whose::Unwritten,
            None if bytes.starts_with(MAGIC) => Whose::Damaged,
            None => Whose::Foreign,
        }
    }
}
