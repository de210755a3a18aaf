//! Records and pieces, as they lie in a segment: a header of 96 bytes with a checksum of its own, then what it counts.
//!
//! A record: full key, head, and either the content or the list of its pieces; each of the three has its checksum in the
//! header. A piece: its content. Header and key say whose it is, so that a record found at a wrong place is never taken for
//! another. Lengths are checked against each other, and against where the segment ends, before anything is read by them.

use super::{Put, Take, crc};
use crate::engine::address::ALIGN;

/// The longest piece, in bytes.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;

/// Where a piece was written, and how its bytes are known to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine) struct PieceRef {
    /// Whose disk.
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) segment: u32,
    /// Of the block that holds it.
    pub(in crate::engine) offset: u32,
    pub(in crate::engine) length: u32,
    pub(in crate::engine) crc: u32,
}

const MAGIC: u32 = u32::from_le_bytes(*b"LRec");

/// The length of a header, in bytes.
pub(in crate::engine) const HEADER_BYTES: usize = 96;
/// The longest record, on disks where a segment has room for it.
pub(in crate::engine) const RECORD_BYTES_MAX: u64 = 16 << 20;
/// One entry of a list of pieces, in bytes.
pub(in crate::engine) const PIECE_REF_BYTES: usize = 24;

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Kind {
    /// Key, head, content.
    Inline,
    /// Key, head, list of pieces.
    Listing,
    /// The content of a piece.
    Piece,
}

impl Kind {
    pub(in crate::engine) fn number(self) -> u8 {
        match self {
            Self::Inline => 1,
            Self::Listing => 2,
            Self::Piece => 3,
        }
    }

    pub(in crate::engine) fn of(number: u8) -> Option<Self> {
        [Self::Inline, Self::Listing, Self::Piece].into_iter().find(|kind| kind.number() == number)
    }
}

/// A header. Fields that a piece has no use for are zero in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Header {
    pub(in crate::engine) kind: Kind,
    pub(in crate::engine) disk: u64,
    pub(in crate::engine) segment: u32,
    pub(in crate::engine) tag: u32,
    pub(in crate::engine) base: u64,
    pub(in crate::engine) number: u64,
    pub(in crate::engine) stored_at_ms: u64,
    pub(in crate::engine) identity: u64,
    /// The lengths of what follows, in this order.
    pub(in crate::engine) base_bytes: u32,
    pub(in crate::engine) variant_bytes: u32,
    pub(in crate::engine) head_bytes: u32,
    pub(in crate::engine) content_bytes: u32,
    /// Of the whole object, its pieces on this disk included. Of a piece it is the disk that has the record, where that is
    /// another than this one.
    pub(in crate::engine) object_bytes: u64,
    pub(in crate::engine) key_crc: u32,
    pub(in crate::engine) head_crc: u32,
    pub(in crate::engine) content_crc: u32,
}

impl Header {
    /// Puts the header in front of what it counts; `into` gets 96 bytes.
    pub(in crate::engine) fn write(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.put_u32(MAGIC);
        into.put_u32(self.kind.number().into());
        into.put_u32(self.segment);
        into.put_u32(self.tag);
        let longs = [self.disk, self.base, self.number, self.stored_at_ms, self.identity, self.object_bytes];
        longs.iter().for_each(|long| into.put_u64(*long));
        let lengths = [self.base_bytes, self.variant_bytes, self.head_bytes, self.content_bytes];
        lengths.iter().for_each(|length| into.put_u32(*length));
        [self.key_crc, self.head_crc, self.content_crc].iter().for_each(|sum| into.put_u32(*sum));
        let sum = crc(into.get(start..).unwrap_or_default());
        into.put_u32(sum);
    }

    /// The header at the front of `bytes`, if its checksum is right and its lengths make sense.
    pub(in crate::engine) fn read(bytes: &[u8]) -> Option<Self> {
        let (checked, sum) = bytes.get(..HEADER_BYTES)?.split_at_checked(HEADER_BYTES - 4)?;
        let mut take = Take(checked);
        if take.u32()? != MAGIC || Take(sum).u32()? != crc(checked) {
            return None;
        }
        let kind = Kind::of(take.u32()?.try_into().ok()?)?;
        let [segment, tag] = [take.u32()?, take.u32()?];
        let [disk, base, number] = [take.u64()?, take.u64()?, take.u64()?];
        let [stored_at_ms, identity, object_bytes] = [take.u64()?, take.u64()?, take.u64()?];
        let header = Self {
            kind,
            disk,
            segment,
            tag,
            base,
            number,
            stored_at_ms,
            identity,
            base_bytes: take.u32()?,
            variant_bytes: take.u32()?,
            head_bytes: take.u32()?,
            content_bytes: take.u32()?,
            object_bytes,
            key_crc: take.u32()?,
            head_crc: take.u32()?,
            content_crc: take.u32()?,
        };
        let is_bare = header.base_bytes == 0 && header.variant_bytes == 0 && header.head_bytes == 0;
        let is_sane = (kind != Kind::Piece || is_bare) && header.total_bytes() <= RECORD_BYTES_MAX;
        is_sane.then_some(header)
    }

    /// The length of header and what it counts, in bytes.
    pub(in crate::engine) fn total_bytes(&self) -> u64 {
        let lengths = [self.base_bytes, self.variant_bytes, self.head_bytes, self.content_bytes];
        HEADER_BYTES as u64 + lengths.into_iter().map(u64::from).sum::<u64>()
    }

    /// How far the next record begins behind this one.
    pub(in crate::engine) fn step_bytes(&self) -> u64 {
        self.total_bytes().next_multiple_of(ALIGN)
    }
}

/// A whole record or piece whose checksums are right: its header, and slices of what was read.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Record<'a> {
    pub(in crate::engine) header: Header,
    pub(in crate::engine) base: &'a [u8],
    pub(in crate::engine) variant: &'a [u8],
    pub(in crate::engine) head: &'a [u8],
    pub(in crate::engine) content: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads and checks the record at the front of `bytes`.
    pub(in crate::engine) fn read(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::read(bytes)?;
        let mut take = Take(bytes.get(HEADER_BYTES..)?);
        let key = take.0.get(..header.base_bytes.checked_add(header.variant_bytes)? as usize)?;
        let record = Self {
            header,
            base: take.bytes(header.base_bytes as usize)?,
            variant: take.bytes(header.variant_bytes as usize)?,
            head: take.bytes(header.head_bytes as usize)?,
            content: take.bytes(header.content_bytes as usize)?,
        };
        let is_right = crc(key) == header.key_crc
            && crc(record.head) == header.head_crc
            && crc(record.content) == header.content_crc;
        is_right.then_some(record)
    }
}

/// Writes a list of pieces.
pub(in crate::engine) fn write_pieces(pieces: &[PieceRef]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pieces.len() * PIECE_REF_BYTES);
    for piece in pieces {
        bytes.put_u64(piece.disk);
        [piece.segment, piece.offset, piece.length, piece.crc].iter().for_each(|part| bytes.put_u32(*part));
    }
    bytes
}

/// Reads a list of pieces that takes all of `bytes`.
pub(in crate::engine) fn read_pieces(bytes: &[u8]) -> Option<Vec<PieceRef>> {
    let each = bytes.chunks(PIECE_REF_BYTES).map(|entry| {
        let mut take = Take(entry);
        let piece = PieceRef {
            disk: take.u64()?,
            segment: take.u32()?,
            offset: take.u32()?,
            length: take.u32()?,
            crc: take.u32()?,
        };
        // A piece is read at once: nobody reads gigabytes because of one damaged length.
        (piece.length as usize <= PIECE_BYTES_MAX).then_some(piece)
    });
    each.collect()
}
