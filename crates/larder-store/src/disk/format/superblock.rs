//! The file `larder`: who this disk is.
//!
//! Written once, when the folder is first used, and locked while it is open. Without it nothing else can be understood:
//! the hashes in tables and journal are made with its seed.

use super::{file_head_bytes, read_file_head, write_file_head};
use crate::disk::address::Seed;

const MAGIC: &[u8; 8] = b"LRDRDISK";

/// The length of the file, in bytes.
pub(in crate::disk) const SUPERBLOCK_BYTES: usize = file_head_bytes(4);

/// A disk's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::disk) struct Superblock {
    /// Told apart from every other disk by chance alone: 64 random bits.
    pub(in crate::disk) disk: u64,
    pub(in crate::disk) seed: Seed,
    /// The size of segments when the disk was made. They follow the disk's size afterwards; for people who look.
    pub(in crate::disk) segment_bytes: u64,
}

impl Superblock {
    pub(in crate::disk) fn write(&self) -> Vec<u8> {
        write_file_head(MAGIC, &[self.disk, self.seed.0[0], self.seed.0[1], self.segment_bytes])
    }

    pub(in crate::disk) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, one, other, segment_bytes] = read_file_head(MAGIC, bytes)?;
        Some(Self { disk, seed: Seed([one, other]), segment_bytes })
    }

    /// Whether bytes that cannot be read as one were one once: then the folder may be set up anew.
    pub(in crate::disk) fn was_ours(bytes: &[u8]) -> bool {
        bytes.is_empty() || bytes.starts_with(MAGIC) || bytes.iter().all(|byte| *byte == 0)
    }
}
