//! A record as it lies in Redis.
//!
//! In: a stored response with the position of its fetch, or the bytes of a record. Out: the other. A body of up to [`INLINE_MAX_BYTES`]
//! is in the record; a longer one lies in pieces beside it, which are written before the record is.
//! Under LZ4, a body or a piece that is shorter than its length says is compressed, and any other is as it is. The checksum of the frame is over the
//! bytes that lie there, so damage is found before anything is believed, and before anything is decoded. That of a body or a piece is over
//! its plain bytes: a record is ready before its pieces are compressed, and it covers the coding too. A coding that is not known is a
//! format that is not read.
//! What is told of a record without its body stands in front, so that a listing reads the front alone ([`front`]).
//! Bytes come from a server that others may write to, and may be anything: reading checks each length and the checksum, and refuses
//! what this version did not write. All numbers are little-endian.
//!
//! ```text
//!   "lrdr"  format  kind  CRC-32 of all that follows
//!   base of the key, variant of the key: length and bytes each
//!   kind 1: log, entry, received (ms), took (ms), writer, head, coding (0: none, 1: LZ4)
//!           number of pieces: id, length and CRC-32 of each; else length and CRC-32 of the body, and the body
//!   kind 2: names of the fields by which the responses under this key vary
//! ```

use std::time::Duration;

use bytes::Bytes;
use larder_fleet::{Epoch, Position};
use larder_tier::CacheKey;
use larder_tier::format::{Put, Take, crc};

use crate::coding::{Coding, PLAIN_MAX_BYTES, packed, unpacked};
use crate::refusals::Refusal;

/// The longest body that is in the record itself.
pub(crate) const INLINE_MAX_BYTES: usize = 256 << 10;
/// The longest piece of a longer one.
pub(crate) const PIECE_MAX_BYTES: usize = PLAIN_MAX_BYTES;
/// The largest string that is written: a record with its head and its key.
pub(crate) const PART_MAX_BYTES: usize = 1 << 20;

const MAGIC: &[u8; 4] = b"lrdr";
const FORMAT: u8 = 2;
const RESPONSE: u8 = 1;
const VARIES: u8 = 2;
/// Magic, format, kind.
const FRONT_BYTES: usize = 6;
/// The same with the checksum.
const FRAME_BYTES: usize = FRONT_BYTES + 4;
/// The most pieces that any record has.
const PIECES_MAX: usize = 4096;

/// A response, without its body where that lies in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// How far its fetcher had applied the log when the fetch began.
    pub(crate) position: Position,
    /// When its head arrived, by the server's clock.
    pub(crate) received: Duration,
    /// How long its fetch took.
    pub(crate) took: Duration,
    /// The name of the member that has fetched it: for people.
    pub(crate) writer: Bytes,
    /// Its head, as `larder-cache` writes it.
    pub(crate) head: Bytes,
    /// How its body may lie there.
    pub(crate) coding: Coding,
    /// Its body, plain.
    pub(crate) body: RecordBody,
}

/// A body, or where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordBody {
    Inline(Bytes),
    Pieces { id: u128, pieces: Vec<Piece> },
}

/// A piece of a body, as its record tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) length: u32,
    sum: u32,
}

impl Piece {
    /// `None`: it is too long.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length as usize <= PIECE_MAX_BYTES)?;
        Some(Self { length, sum: crc(bytes) })
    }

    fn write(self, out: &mut Vec<u8>) {
        out.put_u32(self.length);
        out.put_u32(self.sum);
    }

    fn read(take: &mut Take<'_>) -> Option<Self> {
        let (length, sum) = (take.u32()?, take.u32()?);
        (length as usize <= PIECE_MAX_BYTES).then_some(Self { length, sum })
    }

    /// The plain bytes of what lies there for it. `None`: it is something else.
    pub(crate) fn open(self, bytes: Bytes, coding: Coding) -> Option<Bytes> {
        let length = self.length as usize;
        let plain = match coding {
            Coding::Lz4 if bytes.len() < length => unpacked(&bytes, length)?,
            Coding::None | Coding::Lz4 => bytes,
        };
        (Self::of(&plain) == Some(self)).then_some(plain)
    }
}

/// What lies under the name of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Response(Record),
    /// The responses vary by these fields: names, joined by commas.
    Varies(Bytes),
}

/// Writes a response.
pub(crate) fn response(key: &CacheKey, record: &Record) -> Bytes {
    let mut out = begin(RESPONSE, key);
    out.extend_from_slice(&record.position.epoch.0.to_le_bytes());
    out.put_u64(record.position.sequence);
    out.put_u64(millis(record.received));
    out.put_u64(millis(record.took));
    push(&mut out, &record.writer);
    push(&mut out, &record.head);
    out.push(record.coding.byte());
    match &record.body {
        RecordBody::Inline(body) => {
            out.put_u32(0);
            // One that is too long has no checksum that would be right.
            Piece::of(body).unwrap_or(Piece { length: u32::MAX, sum: 0 }).write(&mut out);
            out.extend_from_slice(body);
        }
        RecordBody::Pieces { id, pieces } => {
            out.put_u32(u32::try_from(pieces.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(&id.to_le_bytes());
            pieces.iter().for_each(|piece| piece.write(&mut out));
        }
    }
    end(out)
}

/// Writes by what fields the responses under a key vary.
pub(crate) fn varies(key: &CacheKey, names: &str) -> Bytes {
    let mut out = begin(VARIES, key);
    out.extend_from_slice(names.as_bytes());
    end(out)
}

/// Reads what lies under the name of `key`.
pub(crate) fn read(key: &CacheKey, bytes: &Bytes) -> Result<Found, Refusal> {
    let (magic, rest) = bytes.split_at_checked(MAGIC.len()).ok_or(Refusal::Damaged)?;
    if magic != MAGIC {
        return Err(Refusal::Damaged);
    }
    let mut take = Take(rest);
    let (format, kind) = take.u8().zip(take.u8()).ok_or(Refusal::Damaged)?;
    if format != FORMAT {
        return Err(Refusal::Format);
    }
    let sum = take.u32().ok_or(Refusal::Damaged)?;
    if crc(take.0) != sum_of(sum, kind) {
        return Err(Refusal::Damaged);
    }
    let is_key = |take: &mut Take<'_>| {
        let (base, variant) = (block(take)?, block(take)?);
        Some(base == key.base() && variant == key.variant())
    };
    match is_key(&mut take) {
        Some(true) => {}
        Some(false) => return Err(Refusal::OtherKey),
        None => return Err(Refusal::Damaged),
    }
    match kind {
        RESPONSE => read_response(bytes, take).map(Found::Response),
        VARIES => Ok(Found::Varies(bytes.slice_ref(take.0))),
        _ => Err(Refusal::Damaged),
    }
}

fn read_response(all: &Bytes, mut take: Take<'_>) -> Result<Record, Refusal> {
    let mut record = read_facts(all, &mut take)?;
    let coding = record.coding;
    let body = |mut take: Take<'_>| match take.u32()? as usize {
        0 => {
            let piece = Piece::read(&mut take)?;
            Some(RecordBody::Inline(piece.open(all.slice_ref(take.0), coding)?))
        }
        count => read_pieces(count, &mut take).filter(|_| take.0.is_empty()),
    };
    record.body = body(take).ok_or(Refusal::Damaged)?;
    Ok(record)
}

/// Everything but the body.
fn read_facts(all: &Bytes, take: &mut Take<'_>) -> Result<Record, Refusal> {
    let mut facts = || {
        let position = Position { epoch: Epoch(wide(take)?), sequence: take.u64()? };
        let received = Duration::from_millis(take.u64()?);
        let took = Duration::from_millis(take.u64()?);
        let writer = all.slice_ref(block(take)?);
        let head = all.slice_ref(block(take)?);
        let (coding, body) = (Coding::None, RecordBody::Inline(Bytes::new()));
        Some((Record { position, received, took, writer, head, coding, body }, take.u8()?))
    };
    let (record, coding) = facts().ok_or(Refusal::Damaged)?;
    Ok(Record { coding: Coding::of_byte(coding).ok_or(Refusal::Format)?, ..record })
}

fn read_pieces(count: usize, take: &mut Take<'_>) -> Option<RecordBody> {
    if count > PIECES_MAX {
        return None;
    }
    let id = wide(take)?;
    let piece = |_| Piece::read(take).filter(|piece| piece.length > 0);
    Some(RecordBody::Pieces { id, pieces: (0..count).map(piece).collect::<Option<_>>()? })
}

/// What the front of a record says, which nothing has verified.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) key: CacheKey,
    /// Without its body.
    pub(crate) record: Record,
    pub(crate) body_bytes: u64,
}

/// What is read of the first bytes under a name.
#[derive(Debug)]
pub(crate) enum FrontFound {
    Response(Box<Front>),
    /// By which fields others vary.
    Varies,
}

/// Reads the first bytes of a record: its checksum is not verified. `None`: it is none, or they are too few.
pub(crate) fn front(bytes: &Bytes) -> Option<FrontFound> {
    let mut take = Take(bytes.strip_prefix(&MAGIC[..])?);
    let (format, kind, _sum) = (take.u8()?, take.u8()?, take.u32()?);
    if format != FORMAT || kind == VARIES {
        return (format == FORMAT).then_some(FrontFound::Varies);
    }
    let key = CacheKey::of_levels(block(&mut take)?, block(&mut take)?);
    let record = read_facts(bytes, &mut take).ok()?;
    let body_bytes = match take.u32()? as usize {
        0 => u64::from(Piece::read(&mut take)?.length),
        count => match read_pieces(count, &mut take)? {
            RecordBody::Pieces { pieces, .. } => pieces.iter().map(|piece| u64::from(piece.length)).sum(),
            RecordBody::Inline(_) => 0,
        },
    };
    (kind == RESPONSE).then(|| FrontFound::Response(Box::new(Front { key, record, body_bytes })))
}

/// The same record with its body compressed. `None`: its coding has no such thing, its body lies elsewhere, or that saves too little.
pub(crate) fn with_packed_body(bytes: &Bytes) -> Option<Bytes> {
    let FrontFound::Response(front) = front(bytes)? else { return None };
    if front.record.coding != Coding::Lz4 {
        return None;
    }
    let length = usize::try_from(front.body_bytes).ok()?;
    let (rest, body) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    // With pieces, what stands there is no body: the checksum of one says so.
    let mut piece = Take(rest.get(rest.len().checked_sub(8)?..)?);
    let piece = Piece::read(&mut piece)?;
    if Piece::of(body) != Some(piece) {
        return None;
    }
    Some(end([rest, &packed(body)?].concat()))
}

/// A frame with a right checksum around anything.
#[cfg(feature = "fuzzing")]
pub(crate) fn framed(key: &CacheKey, is_response: bool, rest: &[u8]) -> Bytes {
    let mut out = begin(if is_response { RESPONSE } else { VARIES }, key);
    out.extend_from_slice(rest);
    end(out)
}

fn begin(kind: u8, key: &CacheKey) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[FORMAT, kind]);
    out.put_u32(0);
    push(&mut out, key.base());
    push(&mut out, key.variant());
    out
}

fn end(mut out: Vec<u8>) -> Bytes {
    let (front, rest) = out.split_at_mut(FRAME_BYTES);
    let kind = front.get(FRONT_BYTES - 1).copied().unwrap_or(0);
    let sum = sum_of(crc(rest), kind).to_le_bytes();
    if let Some(place) = front.get_mut(FRONT_BYTES..) {
        place.copy_from_slice(&sum);
    }
    out.into()
}

/// The checksum is of the kind as well: the same bytes may be read in both ways.
fn sum_of(sum: u32, kind: u8) -> u32 {
    sum ^ u32::from(kind).wrapping_mul(0x0101_0101)
}

fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

fn block<'a>(take: &mut Take<'a>) -> Option<&'a [u8]> {
    let length = take.u32()? as usize;
    take.bytes(length)
}

fn wide(take: &mut Take<'_>) -> Option<u128> {
    Some(u128::from_le_bytes(take.bytes(16)?.try_into().ok()?))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
