//! The head of a segment file: whose it is and which.
//!
//! Records follow it one after the other, each at a multiple of eight; zeros behind the last one are room that was
//! allocated and not used yet.

use super::{file_head_bytes, read_file_head, write_file_head};

const MAGIC: &[u8; 8] = b"LRDRSEGM";

/// Where the first record begins.
pub(in crate::disk) const SEGMENT_HEAD_BYTES: usize = file_head_bytes(2).next_multiple_of(8);

/// A segment's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::disk) struct SegmentHead {
    pub(in crate::disk) disk: u64,
    pub(in crate::disk) segment: u32,
}

impl SegmentHead {
    pub(in crate::disk) fn write(&self) -> Vec<u8> {
        let mut bytes = write_file_head(MAGIC, &[self.disk, self.segment.into()]);
        bytes.resize(SEGMENT_HEAD_BYTES, 0);
        bytes
    }

    pub(in crate::disk) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, segment] = read_file_head(MAGIC, bytes)?;
        Some(Self { disk, segment: segment.try_into().ok()? })
    }

    /// Whether bytes that cannot be read as one were one once.
    pub(in crate::disk) fn was_ours(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC) || bytes.iter().all(|byte| *byte == 0)
    }
}
