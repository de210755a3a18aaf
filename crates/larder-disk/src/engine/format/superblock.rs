//! The file `larder`: who this disk is.
//!
//! Written once, when the folder is first used, and locked while it is open. Without it nothing else can be understood:
//! the hashes in tables and journal are made with its seed.

use super::{file_head_bytes, read_file_head, write_file_head};
use crate::engine::address::Seed;

const MAGIC: &[u8; 8] = b"LRDRDISK";

/// The length of the file, in bytes.
pub(in crate::engine) const SUPERBLOCK_BYTES: usize = file_head_bytes(4);

/// A disk's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Superblock {
    /// Distinct from every other disk by chance alone: 64 random bits.
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) seed: Seed,
    /// The size of segments when the disk was made. They follow the disk's size afterwards; for people who look.
    pub(in crate::engine) segment_bytes: u64,
}

impl Superblock {
    pub(in crate::engine) fn write(&self) -> Vec<u8> {
        write_file_head(MAGIC, &[self.disk, self.seed.0[0], self.seed.0[1], self.segment_bytes])
    }

    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, one, other, segment_bytes] = read_file_head(MAGIC, bytes)?;
        Some(Self { disk, seed: Seed([one, other]), segment_bytes })
    }

    /// Whether bytes that cannot be read as one were one once: then the folder may be set up anew.
    pub(in crate::engine) fn was_ours(bytes: &[u8]) -> bool {
        bytes.is_empty() || bytes.starts_with(MAGIC) || bytes.iter().all(|byte| *byte == 0)
    }
}
