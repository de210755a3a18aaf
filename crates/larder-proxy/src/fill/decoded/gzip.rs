//! The coding `gzip` (RFC 1952): members one behind the other, each a deflate stream with a header and a checksum.

use flate2::Crc;

use super::decode::{Decode, DecodeProgress, Malformed};
use super::deflate::Inflate;

/// The flags of a header (RFC 1952 2.3.1).
const HAS_CHECK: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// Where in a member the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the fixed header: so many bytes of it have come.
    Fixed(usize),
    /// In the length of the extra field.
    ExtraLength(usize),
    /// In the extra field: so many bytes of it are left.
    Extra(u16),
    Name,
    Comment,
    /// In the checksum of the header, which nobody writes, and which is not looked at.
    Check(usize),
    Content,
    /// In the checksum and the length behind the content.
    Trailer(usize),
}

/// Decodes `gzip`.
pub(super) struct Gzip {
    place: Place,
    /// The bytes of the field that is being read.
    held: [u8; 10],
    flags: u8,
    inflate: Inflate,
    content: Crc,
    /// A member has come to its end.
    has_member: bool,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Fixed(0),
            held: [0; 10],
            flags: 0,
            inflate: Inflate::new(false),
            content: Crc::new(),
            has_member: false,
        }
    }

    /// Reads the next byte of a header or a trailer.
    fn read(&mut self, byte: u8) -> Result<(), Malformed> {
        self.place = match self.place {
            Place::Fixed(at) => match self.hold(at, byte) {
                at if at < 10 => Place::Fixed(at),
                _ => {
                    self.begin()?;
                    self.optional(HAS_EXTRA)
                }
            },
            Place::ExtraLength(at) => match (self.hold(at, byte), self.held) {
                (1, _) => Place::ExtraLength(1),
                (_, [low, high, ..]) => match u16::from_le_bytes([low, high]) {
                    0 => self.optional(HAS_NAME),
                    left => Place::Extra(left),
                },
            },
            Place::Extra(1) => self.optional(HAS_NAME),
            Place::Extra(left) => Place::Extra(left - 1),
            Place::Name if byte == 0 => self.optional(HAS_COMMENT),
            Place::Comment if byte == 0 => self.optional(HAS_CHECK),
            Place::Check(1) | Place::Content => Place::Content,
            Place::Check(_) => Place::Check(1),
            Place::Name | Place::Comment => self.place,
            Place::Trailer(at) => match self.hold(at, byte) {
                at if at < 8 => Place::Trailer(at),
                _ => {
                    self.end()?;
                    Place::Fixed(0)
                }
            },
        };
        Ok(())
    }

    /// Keeps a byte of the field that is being read, and says how many of it there are then.
    fn hold(&mut self, at: usize, byte: u8) -> usize {
        if let Some(place) = self.held.get_mut(at) {
            *place = byte;
        }
        at + 1
    }

    /// The fixed header is there.
    fn begin(&mut self) -> Result<(), Malformed> {
        let [0x1f, 0x8b, 8, flags, ..] = self.held else { return Err(Malformed) };
        if flags & RESERVED != 0 {
            return Err(Malformed);
        }
        self.flags = flags;
        self.inflate.reset();
        self.content.reset();
        Ok(())
    }

    /// The first part of the header that is there, from the one of this flag on.
    fn optional(&self, flag: u8) -> Place {
        let parts = [
            (HAS_EXTRA, Place::ExtraLength(0)),
            (HAS_NAME, Place::Name),
            (HAS_COMMENT, Place::Comment),
            (HAS_CHECK, Place::Check(0)),
        ];
        let mut left = parts.into_iter().skip_while(|(other, _)| *other != flag);
        left.find(|(other, _)| self.flags & other != 0).map_or(Place::Content, |(_, place)| place)
    }

    /// The trailer is there.
    fn end(&mut self) -> Result<(), Malformed> {
        let [a, b, c, d, e, f, g, h, ..] = self.held;
        let is_right = u32::from_le_bytes([a, b, c, d]) == self.content.sum()
            && u32::from_le_bytes([e, f, g, h]) == self.content.amount();
        self.has_member = true;
        is_right.then_some(()).ok_or(Malformed)
    }
}

impl Decode for Gzip {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        let mut read = 0;
        loop {
            if self.place != Place::Content {
                let Some(byte) = input.get(read) else { return Ok(DecodeProgress { read, written: 0 }) };
                self.read(*byte)?;
                read += 1;
                continue;
            }
            let progress = self.inflate.inflate(input.get(read..).unwrap_or_default(), output)?;
            read += progress.read;
            self.content.update(output.get(..progress.written).unwrap_or_default());
            if self.inflate.is_over {
                self.place = Place::Trailer(0);
            }
            if progress.written > 0 || !self.inflate.is_over {
                return Ok(DecodeProgress { read, written: progress.written });
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.has_member && self.place == Place::Fixed(0)
    }
}
