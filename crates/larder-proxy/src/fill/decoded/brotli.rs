//! The coding `br` (RFC 7932).
//!
//! A stream takes a window of up to 16 MiB, as its first byte says. Larger ones, which are no part of the RFC, are refused.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::decode::{Decode, DecodeProgress, Malformed};

/// Decodes `br`.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    is_over: bool,
    written: usize,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let allocator = StandardAlloc::default;
        let state = BrotliState::new_strict(allocator(), allocator(), allocator());
        Self { state: Box::new(state), is_over: false, written: 0 }
    }
}

impl Decode for Brotli {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed> {
        if self.is_over {
            return if input.is_empty() { Ok(DecodeProgress::default()) } else { Err(Malformed) };
        }
        let (mut read, mut written) = (0, 0);
        let (mut left, mut room) = (input.len(), output.len());
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            input,
            &mut room,
            &mut written,
            output,
            &mut self.written,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => return Err(Malformed),
            BrotliResult::ResultSuccess => self.is_over = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Ok(DecodeProgress { read, written })
    }

    fn is_whole(&self) -> bool {
        self.is_over
    }
}
