//! A record as it lies in Redis.
//!
//! In: a stored response with the position of its fetch, or the bytes of a record. Out: the other. A body of up to [`INLINE_MAX_BYTES`]
//! is in the record; a longer one lies in pieces beside it, which are written before the record is.
//! What is told of a record without its body stands in front, so that a listing reads the front alone ([`front`]).
//! Bytes come from a server that others may write to, and may be anything: reading checks each length and the checksum, and refuses
//! what this version did not write. All numbers are little-endian.
//!
//! ```text
//!   "lrdr"  format  kind  CRC-32 of all that follows
//!   base of the key, variant of the key: length and bytes each
//!   kind 1: log, entry, received (ms), took (ms), writer, head, number of pieces: id, length and CRC-32 of each;
//!           else length and CRC-32 of the body, and the body
//!   kind 2: names of the fields by which the responses under this key vary
//! ```

use std::time::Duration;

use bytes::Bytes;
use larder_fleet::{Epoch, Position};
use larder_tier::CacheKey;
use larder_tier::format::{Put, Take, crc};

use crate::refusals::Refusal;

/// The longest body that is in the record itself.
pub(crate) const INLINE_MAX_BYTES: usize = 256 << 10;
/// The longest piece of a longer one.
pub(crate) const PIECE_MAX_BYTES: usize = 256 << 10;
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
    /// Its body.
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

    /// Whether these bytes are it.
    pub(crate) fn is(self, bytes: &[u8]) -> bool {
        Self::of(bytes) == Some(self)
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
        RESPONSE => read_response(bytes, take).map(Found::Response).ok_or(Refusal::Damaged),
        VARIES => Ok(Found::Varies(bytes.slice_ref(take.0))),
        _ => Err(Refusal::Damaged),
    }
}

fn read_response(all: &Bytes, mut take: Take<'_>) -> Option<Record> {
    let mut record = read_facts(all, &mut take)?;
    record.body = match take.u32()? as usize {
        0 => {
            let piece = Piece::read(&mut take)?;
            let body = all.slice_ref(take.0);
            piece.is(&body).then_some(RecordBody::Inline(body))?
        }
        count => {
            let body = read_pieces(count, &mut take)?;
            take.0.is_empty().then_some(body)?
        }
    };
    Some(record)
}

/// Everything but the body.
fn read_facts(all: &Bytes, take: &mut Take<'_>) -> Option<Record> {
    let position = Position { epoch: Epoch(wide(take)?), sequence: take.u64()? };
    let received = Duration::from_millis(take.u64()?);
    let took = Duration::from_millis(take.u64()?);
    let writer = all.slice_ref(block(take)?);
    let head = all.slice_ref(block(take)?);
    Some(Record { position, received, took, writer, head, body: RecordBody::Inline(Bytes::new()) })
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
    let record = read_facts(bytes, &mut take)?;
    let body_bytes = match take.u32()? as usize {
        0 => u64::from(Piece::read(&mut take)?.length),
        count => match read_pieces(count, &mut take)? {
            RecordBody::Pieces { pieces, .. } => pieces.iter().map(|piece| u64::from(piece.length)).sum(),
            RecordBody::Inline(_) => 0,
        },
    };
    (kind == RESPONSE).then(|| FrontFound::Response(Box::new(Front { key, record, body_bytes })))
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn key() -> CacheKey {
        let mut key = CacheKey::new("a.example", "/x?y");
        key.push_part(b"http");
        key
    }

    fn record(body: RecordBody) -> Record {
        Record {
            position: Position { epoch: Epoch(u128::MAX - 5), sequence: 77 },
            received: Duration::from_millis(1_700_000_000_123),
            took: Duration::from_millis(42),
            writer: Bytes::from_static(b"web-1"),
            head: Bytes::from_static(b"a head"),
            body,
        }
    }

    fn pieces() -> Vec<Piece> {
        [&vec![1; PIECE_MAX_BYTES][..], b"a"].map(|bytes| Piece::of(bytes).unwrap()).into()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let inline = RecordBody::Inline(Bytes::from_static(b"a body"));
        let empty = RecordBody::Inline(Bytes::new());
        let pieces = RecordBody::Pieces { id: 9, pieces: pieces() };
        for body in [inline, empty, pieces] {
            let written = record(body);
            assert_eq!(read(&key(), &response(&key(), &written)), Ok(Found::Response(written)));
        }
        let names = "accept-encoding,accept-language";
        assert_eq!(read(&key(), &varies(&key(), names)), Ok(Found::Varies(names.into())));
        // The front tells the same, but for the body.
        let written = response(&key(), &record(RecordBody::Pieces { id: 9, pieces: self::pieces() }));
        let Some(FrontFound::Response(front_of)) = front(&written) else { panic!("no front") };
        assert_eq!((front_of.key.base(), front_of.body_bytes), (key().base(), PIECE_MAX_BYTES as u64 + 1));
        assert_eq!(front_of.record, record(RecordBody::Inline(Bytes::new())));
        let long = response(&key(), &record(RecordBody::Inline(Bytes::from(vec![7; 5000]))));
        let cut = front(&long.slice(..long.len() - 5000));
        assert!(matches!(cut, Some(FrontFound::Response(front)) if front.body_bytes == 5000));
        assert!(front(&long.slice(..long.len() - 5001)).is_none());
        assert!(matches!(front(&varies(&key(), names)), Some(FrontFound::Varies)));
        let piece = Piece::of(b"0123").unwrap();
        assert!(piece.is(b"0123") && !piece.is(b"012") && !piece.is(b"0124"));
        assert_eq!(Piece::of(&vec![0; PIECE_MAX_BYTES + 1]), None);
    }

    #[test]
    fn each_flipped_bit_and_each_cut_is_noticed() {
        let all = [
            response(&key(), &record(RecordBody::Inline(Bytes::from_static(b"a body")))),
            response(&key(), &record(RecordBody::Pieces { id: 9, pieces: pieces() })),
            varies(&key(), "accept-language"),
        ];
        for written in all {
            for bit in 0..written.len() * 8 {
                let mut flipped = written.to_vec();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let is_read = read(&key(), &flipped.into());
                assert!(matches!(is_read, Err(Refusal::Damaged | Refusal::Format)), "{bit}: {is_read:?}");
            }
            for length in 0..written.len() {
                assert!(read(&key(), &written.slice(..length)).is_err(), "{length}");
            }
            let longer: Bytes = [&written[..], b"\0"].concat().into();
            assert_eq!(read(&key(), &longer), Err(Refusal::Damaged));
        }
    }

    #[test]
    fn the_record_of_another_key_is_not_used() {
        let mut other = CacheKey::new("a.example", "/x?z");
        other.push_part(b"http");
        let written = response(&other, &record(RecordBody::Inline(Bytes::new())));
        assert_eq!(read(&key(), &written), Err(Refusal::OtherKey));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            // With a right checksum as well.
            let framed = end([&begin(RESPONSE, &key())[..], &bytes].concat());
            for bytes in [Bytes::from(bytes), framed] {
                let _ = (read(&key(), &bytes), front(&bytes));
            }
        }
    }
}
