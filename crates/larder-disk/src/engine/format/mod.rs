//! What the bytes on a disk mean: one file per kind, each a `write` and a `read` that are each other's inverse.
//!
//! In and out: bytes. All numbers are little-endian. Every file begins with a magic of its own, the version, and a checksum;
//! whatever does not check is not larder's, or no longer. What the formats are made of, and the entries of journals, are in
//! [`larder_tier::format`], since the journal of plain files has the same.

pub(in crate::engine) mod journal;
pub(in crate::engine) mod record;
pub(in crate::engine) mod segment;
pub(in crate::engine) mod superblock;
pub(in crate::engine) mod toc;

pub(in crate::engine) use larder_tier::format::{
    Put, Take, crc, file_head_bytes, read_file_head, write_file_head,
};

/// Whose a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Whose {
    /// What its name says.
    Ours,
    /// In order, but of another disk, or under another name.
    OtherDisk,
    /// Larder's once.
    Damaged,
    /// Made, and never written to.
    Unwritten,
    /// Somebody else's.
    Foreign,
}

#[cfg(test)]
mod tests;
