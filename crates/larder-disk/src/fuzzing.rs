//! The one entry for fuzz targets to what else only this crate sees: how bytes lie on disks.
//!
//! In: bytes as a disk could have them. Out: the same written again after they were read, or `None` where they are nothing
//! of larder's. So targets need no types of the formats, which stay private to the disk that writes them: what has to
//! hold can be said in bytes (what is read and written again is the same). Behind the feature `fuzzing`, off by default and
//! on in fuzz/ only, so that no release has it; hidden from the docs, and no promise to anybody.
//! Deliberately absent: making checksums right. The targets do that themselves, by what the docs say of the formats.

pub use crate::engine::fuzzing::{
    Entries, JOURNAL_HEAD_BYTES, SEGMENT_HEAD_BYTES, identity, journal, journal_head, pieces, record,
    segment_head, table,
};
