//! A log of notes in the journal's format, for a store that has files instead of segments.
//!
//! In: a head and entries. Out: the same as bytes, and back. The head says since when nothing is missing, by the wall clock,
//! and below which number all numbers are that were ever given out. An end that was torn is cut off; where entries are
//! missing before others, or one is of a kind that does not belong here, the log is not whole.

use super::entry::{JournalEntry, read_entries};
use super::{file_head_bytes, read_file_head, write_file_head};
use crate::note::Note;

const MAGIC: &[u8; 8] = b"LRDRNLOG";

/// Where the first entry begins.
pub const LOG_HEAD_BYTES: usize = file_head_bytes(2);

/// How a log begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// Since when nothing is missing, in milliseconds since 1970.
    pub begun: u64,
    /// Above every number that there has been.
    pub reached: u64,
}

impl LogHead {
    /// As bytes.
    pub fn write(&self) -> Vec<u8> {
        write_file_head(MAGIC, &[self.begun, self.reached])
    }
}

/// What a log says.
#[derive(Debug, PartialEq, Eq)]
pub struct Log {
    /// How it begins.
    pub head: LogHead,
    /// In the order in which they were written.
    pub notes: Vec<Note>,
    /// Where the last good entry ends. What stands behind it was never finished, and has to go before anything is added.
    pub end: usize,
    /// Whether nothing is missing before its end.
    pub is_whole: bool,
}

/// Puts a note to the end of `into`.
pub fn write_note(note: &Note, into: &mut Vec<u8>) {
    JournalEntry::Note(note.clone().bounded()).write(into);
}

/// The same for a number that everything from now on is below.
pub fn write_reached(number: u64, into: &mut Vec<u8>) {
    JournalEntry::Reached { number, segment: 0 }.write(into);
}

/// Reads a log; `None` where its head is not one.
pub fn read_log(bytes: &[u8]) -> Option<Log> {
    let [begun, reached] = read_file_head(MAGIC, bytes)?;
    let read = read_entries(bytes.get(LOG_HEAD_BYTES..).unwrap_or_default());
    let mut log = Log {
        head: LogHead { begun, reached },
        notes: Vec::new(),
        end: LOG_HEAD_BYTES + read.end,
        is_whole: read.lost_up_to.is_none(),
    };
    for entry in read.entries {
        log.head.reached = log.head.reached.max(entry.number());
        match entry {
            JournalEntry::Note(note) => log.notes.push(note),
            JournalEntry::Reached { .. } => {}
            JournalEntry::Invalidated { .. }
            | JournalEntry::Removed { .. }
            | JournalEntry::NeedsToc { .. } => log.is_whole = false,
        }
    }
    Some(log)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn log() -> Vec<u8> {
        let mut bytes = LogHead { begun: 7, reached: 10 }.write();
        assert_eq!(bytes.len(), LOG_HEAD_BYTES);
        for number in [3, 12] {
            write_note(&Note { number, moment: 0, what: vec![b'x'; 9] }, &mut bytes);
        }
        write_reached(99, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read_and_a_torn_end_is_cut_off() {
        let bytes = log();
        let read = read_log(&bytes).unwrap();
        assert_eq!(read.head, LogHead { begun: 7, reached: 99 });
        assert_eq!(read.notes.iter().map(|note| note.number).collect::<Vec<_>>(), [3, 12]);
        assert!(read.is_whole && read.end == bytes.len());
        let torn = read_log(&bytes[..bytes.len() - 1]).unwrap();
        assert!(torn.is_whole && torn.notes.len() == 2 && torn.head.reached == 12, "{torn:?}");
        assert!(torn.end < bytes.len() - 1);
    }

    #[test]
    fn a_hole_or_a_foreign_entry_is_told() {
        let mut bytes = log();
        bytes[LOG_HEAD_BYTES + 10] ^= 1;
        assert!(!read_log(&bytes).unwrap().is_whole);
        let mut bytes = log();
        JournalEntry::Removed { place: 5 }.write(&mut bytes);
        assert!(!read_log(&bytes).unwrap().is_whole);
        bytes[9] ^= 1;
        assert_eq!(read_log(&bytes), None);
        assert_eq!(read_log(b""), None);
    }
}
