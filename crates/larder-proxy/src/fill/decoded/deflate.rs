//! The coding `deflate`: zlib (RFC 1950), and the bare format within it (RFC 1951), which some servers send instead.
//!
//! Which of the two it is shows in the first two bytes, as browsers tell it too: a zlib header has a check of its own.

use flate2::{Decompress, FlushDecompress, Status};

use super::decode::{Decode, DecodeProgress, Malformed};

/// Decodes `deflate`.
pub(super) struct Deflate {
    inflate: Inflate,
    /// The first byte, until the second one has come.
    first: Option<u8>,
    is_begun: bool,
}

impl Deflate {
    pub(super) fn new() -> Self {
        Self { inflate: Inflate::new(true), first: None, is_begun: false }
    }

    /// Takes the first byte, or with the second one finds out which format it is. That one is read again.
    fn begin(&mut self, next: u8, output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        let Some(first) = self.first.take() else {
            self.first = Some(next);
            return Ok(DecodeProgress { read: 1, written: 0 });
        };
        self.is_begun = true;
        if !is_zlib(first, next) {
            self.inflate = Inflate::new(false);
        }
        let DecodeProgress { written, .. } = self.inflate.inflate(&[first], output)?;
        Ok(DecodeProgress { read: 0, written })
    }
}

impl Decode for Deflate {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        let mut done = DecodeProgress::default();
        let mut rest = input;
        while !self.is_begun {
            let Some(next) = rest.first() else { return Ok(done) };
            let DecodeProgress { read, written } = self.begin(*next, output)?;
            rest = rest.get(read..).unwrap_or_default();
            done.read += read;
            if written > 0 {
                return Ok(DecodeProgress { written, ..done });
            }
        }
        if self.inflate.is_over {
            return if rest.is_empty() { Ok(done) } else { Err(Malformed) };
        }
        let DecodeProgress { read, written } = self.inflate.inflate(rest, output)?;
        Ok(DecodeProgress { read: done.read + read, written })
    }

    fn is_whole(&self) -> bool {
        self.inflate.is_over
    }
}

/// Whether these are the first two bytes of the zlib format (RFC 1950 2.2).
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

/// The decompressor of one deflate stream.
pub(super) struct Inflate {
    decompress: Decompress,
    /// Its last block has ended, and all of it was written.
    pub(super) is_over: bool,
}

impl Inflate {
    /// With the header of the zlib format or without.
    pub(super) fn new(has_header: bool) -> Self {
        Self { decompress: Decompress::new(has_header), is_over: false }
    }

    /// For another stream without a header.
    pub(super) fn reset(&mut self) {
        self.decompress.reset(false);
        self.is_over = false;
    }

    /// As [`Decode::decode`].
    pub(super) fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        let before = (self.decompress.total_in(), self.decompress.total_out());
        let inflated = self.decompress.decompress(input, output, FlushDecompress::None);
        self.is_over = matches!(inflated.map_err(|_| Malformed)?, Status::StreamEnd);
        let since = |now: u64, before: u64| usize::try_from(now - before).map_err(|_| Malformed);
        Ok(DecodeProgress {
            read: since(self.decompress.total_in(), before.0)?,
            written: since(self.decompress.total_out(), before.1)?,
        })
    }
}
