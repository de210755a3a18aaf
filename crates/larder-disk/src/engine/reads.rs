//! Reading records and pieces, and checking every byte of them before it is handed on.
//!
//! In: a place, or a piece. Out: what was written there, or why not. A record is read at once: its place says about how
//! long it is. An event loop reads what the page cache has ([`Waiting::No`]); where that is not enough, `None` says that
//! a thread that may wait has to do it.

use std::io;

use bytes::Bytes;
use larder_http::body::read_buffer;
use larder_http::time::WallTime;

use super::address::Location;
use super::error::ReadError;
use super::format::crc;
use super::format::record::PieceRef;
use super::format::record::{HEADER_BYTES, Header, Kind, Record, read_pieces};
use super::object::{FoundContent, FoundRecord, INLINE_BYTES_MAX};
use super::piece::{Piece, PieceState};
use super::segment::Segment;
use super::state::DiskState;
use super::sys::{self, ReadMode};

/// Above this, most of an object is pieces, and its record is short.
const INLINE_OBJECT_BYTES: u64 = INLINE_BYTES_MAX as u64 + 64 * 1024;
/// Read of such a record at first.
const LISTING_BYTES_LIKELY: usize = 32 * 1024;

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    No,
    Yes,
}

type Read<T> = Option<Result<T, ReadError>>;

impl DiskState {
    /// Whether an event loop may read at all.
    pub(super) fn may_read_now(&self) -> bool {
        self.read_mode != ReadMode::Pool
    }

    /// Reads the record at `place`; `None` where that would wait.
    pub(super) fn read_record(&self, place: Location, waiting: Waiting) -> Read<FoundRecord> {
        if place.is_pending() {
            return Some(Err(ReadError::Gone));
        }
        let Some(segment) = self.segments.find(place.segment()) else {
            return Some(Err(ReadError::Gone));
        };
        let first = match place.size_at_most() {
            small if small <= INLINE_OBJECT_BYTES => small as usize,
            _ => LISTING_BYTES_LIKELY,
        };
        let mut bytes = match self.read_bytes(&segment, place.offset(), first.max(HEADER_BYTES), waiting)? {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(error)),
        };
        if bytes.len() < HEADER_BYTES {
            return self.cut_short(waiting);
        }
        let Some(header) = Header::read(&bytes) else { return self.damaged() };
        let total = header.total_bytes();
        if total > self.record_bytes_max {
            return self.damaged();
        }
        if total > bytes.len() as u64 {
            bytes = match self.read_bytes(&segment, place.offset(), total as usize, waiting)? {
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            if total > bytes.len() as u64 {
                return self.cut_short(waiting);
            }
        }
        let found = self.decode(&header, place, Bytes::from(bytes));
        if matches!(found, Err(ReadError::Damaged)) {
            self.counts.damaged.add(1);
        }
        Some(found)
    }

    /// Fewer bytes than there should be may be all that the page cache had.
    fn cut_short<T>(&self, waiting: Waiting) -> Read<T> {
        match waiting == Waiting::No && self.read_mode == ReadMode::NoWait {
            true => None,
            false => self.damaged(),
        }
    }

    fn damaged<T>(&self) -> Read<T> {
        self.counts.damaged.add(1);
        Some(Err(ReadError::Damaged))
    }

    fn decode(&self, header: &Header, place: Location, bytes: Bytes) -> Result<FoundRecord, ReadError> {
        let is_it = header.disk == self.superblock.disk && header.segment == place.segment();
        let record = Record::read(&bytes).filter(|_| is_it).ok_or(ReadError::Damaged)?;
        let content = match header.kind {
            Kind::Piece => return Err(ReadError::Damaged),
            Kind::Inline => FoundContent::Inline(bytes.slice_ref(record.content)),
            Kind::Listing => {
                let pieces = read_pieces(record.content).ok_or(ReadError::Damaged)?;
                if !self.has_own_pieces(&pieces) {
                    return Err(ReadError::Gone);
                }
                FoundContent::Pieces(pieces.into_iter().map(Piece::written).collect())
            }
        };
        Ok(FoundRecord {
            base: bytes.slice_ref(record.base),
            variant: bytes.slice_ref(record.variant),
            number: header.number,
            stored_at: WallTime(header.stored_at_ms),
            identity: header.identity,
            head: bytes.slice_ref(record.head),
            content,
        })
    }

    /// Whether those of `pieces` that lie on this disk are still there.
    pub(super) fn has_own_pieces(&self, pieces: &[PieceRef]) -> bool {
        let mut last = None;
        pieces.iter().filter(|piece| piece.disk == self.superblock.disk).all(|piece| {
            // Pieces follow each other: most lie in the segment of the one before.
            let is_there = last == Some(piece.segment) || self.segments.has(piece.segment);
            last = is_there.then_some(piece.segment);
            is_there
        })
    }

    /// Reads a piece; `None` where that would wait.
    pub(super) fn read_piece(&self, piece: &Piece, waiting: Waiting) -> Read<Bytes> {
        let at = match piece.state() {
            PieceState::Pending(bytes) | PieceState::Kept(bytes) => return Some(Ok(bytes)),
            PieceState::Lost => return Some(Err(ReadError::Gone)),
            PieceState::Written(at) => at,
        };
        let segment = match at.disk == self.superblock.disk {
            true => self.segments.find_pinned(at.segment),
            false => None,
        };
        let Some(segment) = segment else { return Some(Err(ReadError::Gone)) };
        self.read_piece_of(&segment, &at, waiting)
    }

    /// Reads and checks a piece in a segment that somebody holds.
    pub(super) fn read_piece_of(&self, segment: &Segment, at: &PieceRef, waiting: Waiting) -> Read<Bytes> {
        let (offset, length) = (u64::from(at.offset) + HEADER_BYTES as u64, at.length as usize);
        let bytes = match self.read_bytes(segment, offset, length, waiting)? {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(error)),
        };
        if bytes.len() < length {
            return self.cut_short(waiting);
        }
        match crc(&bytes) == at.crc {
            true => Some(Ok(bytes.into())),
            false => self.damaged(),
        }
    }

    /// Bytes of a segment, fewer at its end; without waiting, fewer than are there may come.
    fn read_bytes(&self, segment: &Segment, offset: u64, length: usize, waiting: Waiting) -> Read<Vec<u8>> {
        let read = match (waiting, self.read_mode) {
            (Waiting::Yes, _) => segment.file.get().and_then(|file| sys::read_up_to(&file, length, offset)),
            (Waiting::No, ReadMode::Inline) => sys::read_up_to(&*segment.file.now()?, length, offset),
            (Waiting::No, ReadMode::Pool) => return None,
            (Waiting::No, ReadMode::NoWait) => {
                let file = segment.file.now()?;
                let mut bytes = read_buffer(length);
                match sys::read_cached(&file, &mut bytes, offset) {
                    Ok(read) => {
                        bytes.truncate(read?);
                        Ok(bytes)
                    }
                    Err(error) => Err(error),
                }
            }
        };
        Some(read.map_err(|error| self.read_failed(&error)))
    }

    fn read_failed(&self, error: &io::Error) -> ReadError {
        self.counts.read_errors.add(1);
        self.health.failed("cannot read", error);
        ReadError::Failed(error.kind())
    }
}
