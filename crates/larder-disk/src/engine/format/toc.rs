//! The table of a segment: what lies in it, so that a start need not walk through it.
//!
//! A head, then 40 bytes for each record and piece, in order of their places; one checksum for the entries. An entry may be
//! dead: replaced, removed or invalidated before the table was written. It stays in the table, since it says that what lies
//! under the same identity at earlier places is dead too.

use super::record::Kind;
use super::{Put, Take, crc, file_head_bytes, read_file_head, write_file_head};

const MAGIC: &[u8; 8] = b"LRDRTABL";
const HEAD_BYTES: usize = file_head_bytes(5);

/// One entry, in bytes.
pub(in crate::engine) const ENTRY_BYTES: usize = 40;

/// What a table says of a record or piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct TocEntry {
    pub(in crate::engine) kind: Kind,
    pub(in crate::engine) is_dead: bool,
    pub(in crate::engine) tag: u32,
    pub(in crate::engine) base: u64,
    pub(in crate::engine) number: u64,
    pub(in crate::engine) offset: u32,
    /// From header to end.
    pub(in crate::engine) length: u32,
    /// As in the header.
    pub(in crate::engine) object_bytes: u64,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Toc {
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) segment: u32,
    /// Where the last record ends.
    pub(in crate::engine) end: u64,
    pub(in crate::engine) entries: Vec<TocEntry>,
}

/// The length of a table of so many entries, in bytes.
pub(in crate::engine) fn toc_bytes(entries: usize) -> u64 {
    (HEAD_BYTES + entries * ENTRY_BYTES) as u64
}

impl Toc {
    pub(in crate::engine) fn write(&self) -> Vec<u8> {
        let mut entries = Vec::with_capacity(self.entries.len() * ENTRY_BYTES);
        for entry in &self.entries {
            [entry.base, entry.number, entry.object_bytes].iter().for_each(|long| entries.put_u64(*long));
            [entry.tag, entry.offset, entry.length].iter().for_each(|short| entries.put_u32(*short));
            entries.extend_from_slice(&[entry.kind.number(), entry.is_dead.into(), 0, 0]);
        }
        let sum = crc(&entries);
        let fields = [self.disk, self.segment.into(), self.end, self.entries.len() as u64, sum.into()];
        let mut bytes = write_file_head(MAGIC, &fields);
        bytes.append(&mut entries);
        bytes
    }

    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let [disk, segment, end, count, sum] = read_file_head(MAGIC, bytes)?;
        let entries = bytes.get(HEAD_BYTES..)?;
        let is_right = usize::try_from(count).ok()?.checked_mul(ENTRY_BYTES)? == entries.len()
            && u64::from(crc(entries)) == sum;
        let entries =
            is_right.then(|| entries.chunks(ENTRY_BYTES).map(read_entry).collect::<Option<_>>())??;
        Some(Self { disk, segment: segment.try_into().ok()?, end, entries })
    }
}

fn read_entry(bytes: &[u8]) -> Option<TocEntry> {
    let mut take = Take(bytes);
    let [base, number, object_bytes] = [take.u64()?, take.u64()?, take.u64()?];
    let [tag, offset, length] = [take.u32()?, take.u32()?, take.u32()?];
    let (kind, dead) = (Kind::of(take.u8()?)?, take.u8()?);
    let is_plain = dead < 2 && take.u16()? == 0;
    is_plain.then_some(TocEntry { kind, is_dead: dead == 1, tag, base, number, offset, length, object_bytes })
}
