//! The coding `zstd` (RFC 8878): frames one behind the other, some of which are skipped.
//!
//! The library takes headers and blocks in one piece each, so what comes of the next one is held until all of it is there: 128 KiB at
//! most. A frame takes a window of up to 8 MiB, which is what RFC 9659 allows it in this coding. The library gives what is
//! still in the window only at the end of the frame. Checksums are compared where there are any.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::decode::{Decode, DecodeProgress, Malformed};

/// RFC 9659 3.
const WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// RFC 8878 3.1.1.2.4.
const BLOCK_BYTES_MAX: usize = 128 * 1024;
const CHECKSUM_BYTES: usize = 4;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The header of a frame, or of one that is skipped.
    Header,
    /// So many bytes that are skipped.
    Skipped(u32),
    /// A block, with its header, and a checksum behind it where it is the last one.
    Block,
    /// Nothing, until all of the frame is written.
    End,
}

/// Decodes `zstd`.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    place: Place,
    /// What has come of that.
    held: Vec<u8>,
    /// The frame has a checksum.
    has_checksum: bool,
    /// A frame has ended.
    has_frame: bool,
}

impl Zstd {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES_MAX);
        Self { decoder, place: Place::Header, held: Vec::new(), has_checksum: false, has_frame: false }
    }

    /// How many bytes are needed before the next step, as far as the held ones tell.
    fn needed(&self) -> Result<usize, Malformed> {
        match (self.place, &self.held[..]) {
            (Place::Header, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) => Ok(8),
            (Place::Header, [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..]) => Ok(header_bytes(*descriptor)),
            (Place::Header, [_, _, _, _, _, ..]) => Err(Malformed),
            (Place::Header, _) => Ok(5),
            (Place::Block, [low, middle, high, ..]) => {
                let block = Block::of(u32::from_le_bytes([*low, *middle, *high, 0]));
                let checksum = if block.is_last && self.has_checksum { CHECKSUM_BYTES } else { 0 };
                Ok(3 + block.bytes()? + checksum)
            }
            (Place::Block, _) => Ok(3),
            (Place::Skipped(_) | Place::End, _) => Ok(0),
        }
    }

    /// All that is needed is held.
    fn step(&mut self) -> Result<(), Malformed> {
        match (self.place, &self.held[..]) {
            (Place::Header, [0x50..=0x5f, _, _, _, a, b, c, d]) => {
                self.skip(u32::from_le_bytes([*a, *b, *c, *d]));
            }
            (Place::Header, held) => {
                self.has_checksum = held.get(4).is_some_and(|descriptor| descriptor & 4 != 0);
                self.decoder.reset(held).map_err(|_| Malformed)?;
                self.place = Place::Block;
            }
            (Place::Block, held) => {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if self.decoder.decode_blocks(held, one).map_err(|_| Malformed)? {
                    self.place = Place::End;
                }
            }
            (Place::Skipped(_) | Place::End, _) => {}
        }
        self.held.clear();
        Ok(())
    }

    /// So many bytes are skipped from here on.
    fn skip(&mut self, left: u32) {
        self.place = if left == 0 { Place::Header } else { Place::Skipped(left) };
        self.has_frame |= left == 0;
    }

    /// All of a frame was written.
    fn end(&mut self) -> Result<(), Malformed> {
        let (said, found) = (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        self.place = Place::Header;
        self.has_frame = true;
        (!self.has_checksum || said == found).then_some(()).ok_or(Malformed)
    }

    /// Reads some of `input`: how much.
    fn take(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        if let Place::Skipped(left) = self.place {
            let skipped = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.skip(left - u32::try_from(skipped).unwrap_or(left));
            return Ok(skipped);
        }
        let missing = self.needed()?.saturating_sub(self.held.len());
        let taken = input.get(..missing.min(input.len())).unwrap_or_default();
        self.held.extend_from_slice(taken);
        if self.held.len() >= self.needed()? {
            self.step()?;
        }
        Ok(taken.len())
    }
}

impl Decode for Zstd {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        let mut read = 0;
        loop {
            if self.decoder.can_collect() > 0 {
                let written = self.decoder.read(output).map_err(|_| Malformed)?;
                return Ok(DecodeProgress { read, written });
            }
            if self.place == Place::End {
                self.end()?;
            }
            match input.get(read..) {
                Some(rest @ [_, ..]) => read += self.take(rest)?,
                _ => return Ok(DecodeProgress { read, written: 0 }),
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.has_frame && self.place == Place::Header && self.held.is_empty()
    }
}

/// The length of a header with this descriptor (RFC 8878 3.1.1.1).
fn header_bytes(descriptor: u8) -> usize {
    let is_single = descriptor & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match (descriptor >> 6, is_single) {
        (0, false) => 0,
        (0, true) => 1,
        (1, _) => 2,
        (2, _) => 4,
        (_, _) => 8,
    };
    5 + usize::from(!is_single) + dictionary + content
}

/// The header of a block (RFC 8878 3.1.1.2).
struct Block {
    is_last: bool,
    kind: u32,
    size: usize,
}

impl Block {
    fn of(header: u32) -> Self {
        let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
        Self { is_last: header & 1 != 0, kind: header >> 1 & 3, size }
    }

    /// How many bytes follow it.
    fn bytes(&self) -> Result<usize, Malformed> {
        match self.kind {
            _ if self.size > BLOCK_BYTES_MAX => Err(Malformed),
            // One byte, so many times.
            1 => Ok(1),
            0 | 2 => Ok(self.size),
            _ => Err(Malformed),
        }
    }
}
