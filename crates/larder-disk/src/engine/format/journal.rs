//! The head of a journal's file: whose it is, and which of those that followed each other.
//!
//! In: bytes. Out: what they say, or whose the file is instead. Its entries are those of every journal
//! ([`larder_tier::format::entry`]).

use larder_tier::format::entry::ALIGN;
pub(in crate::engine) use larder_tier::format::entry::{JournalEntry, read_entries};

use super::{Whose, file_head_bytes, read_file_head, write_file_head};

const MAGIC: &[u8; 8] = b"LRDRJRNL";

/// Where the first entry begins.
pub(in crate::engine) const JOURNAL_HEAD_BYTES: usize = file_head_bytes(2).next_multiple_of(ALIGN);
/// The longest file that is read, in bytes: far more than a journal may grow to.
pub(in crate::engine) const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Whose journal, and which of those that followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct JournalHead {
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) generation: u32,
}

impl JournalHead {
    pub(in crate::engine) fn write(&self) -> Vec<u8> {
        let mut bytes = write_file_head(MAGIC, &[self.disk, self.generation.into()]);
        bytes.resize(JOURNAL_HEAD_BYTES, 0);
        bytes
    }

    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, generation] = read_file_head(MAGIC, bytes)?;
        Some(Self { disk, generation: generation.try_into().ok()? })
    }

    /// Whose a file is that has the name of this generation and begins with `bytes`; any disk's will do for `None`.
    pub(in crate::engine) fn judge(bytes: &[u8], disk: Option<u64>, generation: u32) -> Whose {
        match Self::read(bytes) {
            Some(head) if head.generation == generation && disk.is_none_or(|disk| head.disk == disk) => {
                Whose::Ours
            }
            Some(_) => Whose::OtherDisk,
            None if bytes.len() < JOURNAL_HEAD_BYTES || bytes.iter().all(|byte| *byte == 0) => {
                Whose::Unwritten
            }
            None => Whose::Damaged,
        }
    }
}
