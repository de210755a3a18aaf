//! The entries of a journal: what was taken out, or is not to be used, in order, with a checksum each.
//!
//! In: entries. Out: the same as bytes, and back. The index of a disk knows at every moment what lies there; its tables know it as
//! of when they were written. The journal is the difference. Entries are padded to eight bytes, so that reading can
//! go on behind a damaged one and say that there was one. What the lost entry named is not known then, only that its
//! number is below the ones that follow.

use super::{Put, Take, crc};
pub use crate::note::NOTE_BYTES_MAX;
use crate::note::Note;

/// Entries begin at multiples of this.
pub const ALIGN: usize = 8;
/// The highest number of a segment: what 28 bits can name.
pub const SEGMENT_MAX: u32 = (1 << 28) - 1;
/// Checksum, length of the payload, kind.
const FRAME_BYTES: usize = 8;

/// The longest payload: a note, its number and its moment.
const PAYLOAD_BYTES_MAX: usize = NOTE_BYTES_MAX + 16;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// Records of a base whose number is smaller are dead.
    Invalidated {
        /// The hash of the base.
        base: u64,
        /// The number of the invalidation.
        number: u64,
    },
    /// The record at this place is dead.
    Removed {
        /// The place, as the index has it.
        place: u64,
    },
    /// A predicate of the caller's.
    Note(Note),
    /// The segment may only be read by its table: it holds dead records that nothing else names any more.
    NeedsToc {
        /// Its number.
        segment: u32,
    },
    /// The highest number and the last segment that there were.
    Reached {
        /// The number of an invalidation.
        number: u64,
        /// The number of a segment.
        segment: u32,
    },
}

impl JournalEntry {
    fn kind(&self) -> u8 {
        match self {
            Self::Invalidated { .. } => 1,
            Self::Removed { .. } => 2,
            Self::Note(Note { moment: 0, .. }) => 3,
            Self::Note(_) => 6,
            Self::NeedsToc { .. } => 4,
            Self::Reached { .. } => 5,
        }
    }

    /// The number that the entry carries; zero where it has none.
    pub fn number(&self) -> u64 {
        match self {
            Self::Invalidated { number, .. } | Self::Reached { number, .. } => *number,
            Self::Note(note) => note.number,
            Self::Removed { .. } | Self::NeedsToc { .. } => 0,
        }
    }

    /// Puts the entry to the end of `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(16);
        match self {
            Self::Invalidated { base, number } => {
                payload.put_u64(*base);
                payload.put_u64(*number);
            }
            Self::Removed { place } => payload.put_u64(*place),
            Self::Note(note) => {
                payload.put_u64(note.number);
                if note.moment != 0 {
                    payload.put_u64(note.moment);
                }
                payload.extend_from_slice(&note.what);
            }
            Self::NeedsToc { segment } => payload.put_u32(*segment),
            Self::Reached { number, segment } => {
                payload.put_u64(*number);
                payload.put_u32(*segment);
            }
        }
        let mut framed = Vec::with_capacity(4 + payload.len());
        framed.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        framed.extend_from_slice(&[self.kind(), 0]);
        framed.append(&mut payload);
        into.put_u32(crc(&framed));
        into.append(&mut framed);
        into.resize(into.len().next_multiple_of(ALIGN), 0);
    }

    /// The entry at the front of `bytes`, and its length.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut take = Take(bytes);
        let sum = take.u32()?;
        let framed = take.0;
        let length = usize::from(take.u16()?);
        let [kind, zero] = [take.u8()?, take.u8()?];
        if zero != 0 || length > PAYLOAD_BYTES_MAX {
            return None;
        }
        let payload = take.bytes(length)?;
        // Torn within its padding it would be followed by entries at places where nobody looks for them.
        let whole = (FRAME_BYTES + length).next_multiple_of(ALIGN);
        let is_padded = take.bytes(whole - FRAME_BYTES - length)?.iter().all(|byte| *byte == 0);
        if !is_padded || crc(framed.get(..FRAME_BYTES - 4 + length)?) != sum {
            return None;
        }
        let mut take = Take(payload);
        let entry = match kind {
            1 => Self::Invalidated { base: take.u64()?, number: take.u64()? },
            2 => Self::Removed { place: take.u64()? },
            // Without a moment, as notes were written before they had any, and with one.
            3 | 6 => {
                let number = take.u64()?;
                let moment = if kind == 6 { take.u64().filter(|moment| *moment != 0)? } else { 0 };
                let what = std::mem::take(&mut take.0).to_vec();
                (what.len() <= NOTE_BYTES_MAX).then_some(Self::Note(Note { number, moment, what }))?
            }
            4 => Self::NeedsToc { segment: segment(take.u32()?)? },
            5 => Self::Reached { number: take.u64()?, segment: segment(take.u32()?)? },
            _ => return None,
        };
        take.0.is_empty().then_some((entry, whole))
    }
}

/// Numbers go on from the highest there was: one that no segment can have would be the last.
fn segment(number: u32) -> Option<u32> {
    (number <= SEGMENT_MAX).then_some(number)
}

/// What a journal's file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JournalEntries {
    /// Those that could be read.
    pub entries: Vec<JournalEntry>,
    /// Where the last good entry ends, counted from the start of what was read.
    pub end: usize,
    /// Entries are missing in front of good ones, not only at the end; all of them had numbers of at most this. Those behind
    /// that have no number bound nothing.
    pub lost_up_to: Option<u64>,
}

/// Reads the entries behind a head.
pub fn read_entries(bytes: &[u8]) -> JournalEntries {
    let mut read = JournalEntries::default();
    // Entries were lost, and since then none with a number has come.
    let (mut at, mut is_unbounded) = (0, false);
    let mut lost_up_to = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match JournalEntry::read(rest) {
            Some((entry, length)) => {
                at = at.saturating_add(length).min(bytes.len());
                match entry.number() {
                    0 if is_unbounded => read.lost_up_to = Some(u64::MAX),
                    number if is_unbounded || read.lost_up_to.is_some() => {
                        lost_up_to = number.max(lost_up_to);
                        (read.lost_up_to, is_unbounded) = (Some(lost_up_to), false);
                    }
                    _ => {}
                }
                read.entries.push(entry);
                read.end = at;
            }
            None => {
                is_unbounded = true;
                at += ALIGN;
            }
        }
    }
    read
}
