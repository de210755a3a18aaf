//! Checksums made right, so that a fuzzer gets behind them: it changes a byte, and a byte that nobody believes tells
//! nothing of those who would.
//!
//! In: bytes as they could lie on a disk. Out: the same with magics, versions and checksums as larder writes them; ids and
//! numbers too where they are asked for. The layouts are said here once more, apart from the code that is tested: where
//! the two differ, nothing is read, and a target that holds that what is signed is read says so.
//! All numbers are little-endian.

use std::ops::Range;

/// The version of every file.
const VERSION: u32 = 1;
/// Magic and version, before the fields of a file's head.
const BEFORE_FIELDS: usize = 12;
/// The header of a record.
pub const RECORD_HEADER_BYTES: usize = 96;
/// The fields of a table's head: disk, segment, end, entries, their checksum.
const TABLE_HEAD_BYTES: usize = head_bytes(5);
const TABLE_ENTRY_BYTES: usize = 40;
const RECORD_MAGIC: &[u8; 4] = b"LRec";
/// Records and the entries of a journal begin at multiples of this.
const ALIGN: usize = 8;

/// The length of a file's head with so many fields.
pub const fn head_bytes(fields: usize) -> usize {
    BEFORE_FIELDS + fields * 8 + 4
}

/// Checksum of these bytes.
fn sum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}

/// Puts `what` at a place, as far as there is room.
fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    if let Some(there) = bytes.get_mut(at..at + what.len()) {
        there.copy_from_slice(what);
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()
}

/// The head of a file with these fields; `None` leaves one as it is.
pub fn file_head(bytes: &mut [u8], magic: &[u8; 8], fields: &[Option<u64>]) {
    put(bytes, 0, magic);
    put(bytes, 8, &VERSION.to_le_bytes());
    for (field, at) in fields.iter().zip((BEFORE_FIELDS..).step_by(8)) {
        if let Some(field) = field {
            put(bytes, at, &field.to_le_bytes());
        }
    }
    let checked = head_bytes(fields.len()) - 4;
    if let Some(head) = bytes.get(..checked) {
        let sum = sum(head);
        put(bytes, checked, &sum);
    }
}

/// The identity of a disk.
pub fn identity(bytes: &mut [u8], disk: Option<u64>) {
    file_head(bytes, b"LRDRDISK", &[disk, None, None, None]);
}

/// A table: its head, which says how long the rest is.
pub fn table(bytes: &mut [u8], disk: Option<u64>, segment: Option<u64>) {
    let Some(entries) = bytes.get(TABLE_HEAD_BYTES..) else { return };
    let (count, sum) = (entries.len() / TABLE_ENTRY_BYTES, crc32fast::hash(entries));
    let fields = [disk, segment, None, Some(count as u64), Some(sum.into())];
    file_head(bytes, b"LRDRTABL", &fields);
}

/// A whole segment: its head, and everything behind it that begins like a record.
pub fn segment(bytes: &mut [u8], disk: u64, segment: u32) {
    file_head(bytes, b"LRDRSEGM", &[Some(disk), Some(segment.into())]);
    let mut at = head_bytes(2);
    while at + RECORD_HEADER_BYTES <= bytes.len() {
        let is_one = bytes.get(at..).is_some_and(|rest| rest.starts_with(RECORD_MAGIC));
        at += match is_one.then(|| bytes.get_mut(at..)).flatten() {
            Some(rest) => {
                put(rest, 8, &segment.to_le_bytes());
                put(rest, 16, &disk.to_le_bytes());
                record(rest)
            }
            None => ALIGN,
        };
    }
}

/// The record at the front of `bytes`; says how far the next one begins behind it.
pub fn record(bytes: &mut [u8]) -> usize {
    put(bytes, 0, RECORD_MAGIC);
    let lengths = [64, 68, 72, 76].map(|at| u32_at(bytes, at).unwrap_or(0));
    let [base, variant, head, content] = lengths;
    let mut at = RECORD_HEADER_BYTES;
    let mut next = |length: usize| -> Range<usize> {
        at += length;
        at - length..at
    };
    for (place, part) in [(80, next(base + variant)), (84, next(head)), (88, next(content))] {
        // What is not all there cannot be right; the header may be, and is what is believed first.
        if let Some(part) = bytes.get(part) {
            let sum = sum(part);
            put(bytes, place, &sum);
        }
    }
    if let Some(checked) = bytes.get(..RECORD_HEADER_BYTES - 4) {
        let sum = sum(checked);
        put(bytes, RECORD_HEADER_BYTES - 4, &sum);
    }
    at.next_multiple_of(ALIGN)
}

/// A whole journal: its head, and its entries for as long as one follows the other.
pub fn journal(bytes: &mut [u8], disk: u64, generation: u32) {
    file_head(bytes, b"LRDRJRNL", &[Some(disk), Some(generation.into())]);
    if let Some(rest) = bytes.get_mut(head_bytes(2)..) {
        entries(rest);
    }
}

/// The whole journal of a directory of files: its head, and its entries as those of a disk's.
pub fn file_journal(bytes: &mut [u8]) {
    file_head(bytes, b"LRDRNLOG", &[None, None]);
    if let Some(rest) = bytes.get_mut(head_bytes(2)..) {
        entries(rest);
    }
}

/// The entries of a journal: checksum, length of the payload, kind, zero, payload, zeros to a multiple of eight.
pub fn entries(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(length) = u16_at(bytes, at + 4) {
        let end = at + 8 + length;
        let Some(framed) = bytes.get(at + 4..end) else { return };
        let sum = sum(framed);
        put(bytes, at, &sum);
        at = end.next_multiple_of(ALIGN);
        if let Some(padding) = bytes.get_mut(end..at) {
            padding.fill(0);
        }
    }
}
