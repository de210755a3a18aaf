//! Walking through a segment from record to record, where there is no table, or to look at every byte.
//!
//! In: a segment's file. Out: an entry for each record and piece that is in order, and how many are not. Whatever lies
//! there can be met: zeros end the walk, anything else that is no header is searched for the next one.

use std::fs::File;
use std::io;

use super::address::ALIGN;
use super::format::record::{HEADER_BYTES, Header, Kind, Record, read_pieces};
use super::format::segment::SEGMENT_HEAD_BYTES;
use super::format::toc::TocEntry;
use super::settings::SEGMENT_BYTES_MAX;
use super::sys;

/// Read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// What was met on the way.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) entries: Vec<TocEntry>,
    /// Where the last record ends.
    pub(super) end: u64,
    /// Offsets of what is not in order.
    pub(super) damaged: Vec<u64>,
    /// The highest number of a record.
    pub(super) highest: u64,
}

/// A part of the file in memory.
struct Window<'a> {
    file: &'a File,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// `length` bytes from `offset`, fewer at the end of the file.
    fn at(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        let wanted = length.min(usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX));
        let is_there = offset >= self.start && offset + wanted as u64 <= self.start + self.bytes.len() as u64;
        if !is_there {
            self.bytes = sys::read_up_to(self.file, wanted.max(WINDOW_BYTES), offset)?;
            self.start = offset;
        }
        let from = (offset - self.start) as usize;
        Ok(self.bytes.get(from..self.bytes.len().min(from + wanted)).unwrap_or_default())
    }
}

/// Walks through `file`, which is the segment of these numbers. With `checked`, every checksum is; without, only headers.
pub(super) fn walk(file: &File, disk: u64, segment: u32, checked: bool) -> io::Result<Walked> {
    sys::will_read(file);
    // Nothing behind that was ever written, however long somebody made the file.
    let length = sys::metadata(file)?.len().min(SEGMENT_BYTES_MAX);
    let mut window = Window { file, length, start: 0, bytes: Vec::new() };
    let mut walked = Walked { end: SEGMENT_HEAD_BYTES as u64, ..Walked::default() };
    let (mut at, mut is_searching) = (SEGMENT_HEAD_BYTES as u64, false);
    while at + HEADER_BYTES as u64 <= window.length {
        let is_ours = |header: &Header| header.disk == disk && header.segment == segment;
        let fits = |header: &Header| header.total_bytes() <= length - at;
        let bytes = window.at(at, HEADER_BYTES)?;
        let Some(header) = Header::read(bytes).filter(is_ours).filter(fits) else {
            if bytes.iter().all(|byte| *byte == 0) {
                // Room that was not used; or a hole where a write was lost.
                match next_non_zero(&mut window, at)? {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            }
            if !is_searching {
                walked.damaged.push(at);
                is_searching = true;
            }
            at += ALIGN;
            continue;
        };
        is_searching = false;
        let total = header.total_bytes();
        if !checked || is_whole(window.at(at, total as usize)?) {
            walked.entries.push(entry(&header, at));
            walked.highest = walked.highest.max(header.number);
        } else {
            walked.damaged.push(at);
        }
        at += header.step_bytes();
        walked.end = at;
    }
    Ok(walked)
}

/// Whether a record is in order, and so is the list of its pieces where it has one.
fn is_whole(bytes: &[u8]) -> bool {
    let has_list =
        |record: &Record<'_>| record.header.kind != Kind::Listing || read_pieces(record.content).is_some();
    Record::read(bytes).is_some_and(|record| has_list(&record))
}

/// Where zeros from `at` on end, at a multiple of eight.
fn next_non_zero(window: &mut Window<'_>, mut at: u64) -> io::Result<Option<u64>> {
    loop {
        let bytes = window.at(at, WINDOW_BYTES)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        match bytes.iter().position(|byte| *byte != 0) {
            Some(position) => return Ok(Some((at + position as u64) / ALIGN * ALIGN)),
            None => at += bytes.len() as u64,
        }
    }
}

/// The entry of a table for a record.
pub(super) fn entry(header: &Header, offset: u64) -> TocEntry {
    TocEntry {
        kind: header.kind,
        is_dead: false,
        tag: header.tag,
        base: header.base,
        number: header.number,
        offset: offset as u32,
        length: header.total_bytes() as u32,
        object_bytes: header.object_bytes,
    }
}
