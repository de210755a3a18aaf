//! What every decoder is asked for.

/// How far a decoder came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DecodeProgress {
    /// Bytes of the input that are done with.
    pub(super) read: usize,
    /// Bytes of the output.
    pub(super) written: usize,
}

/// The input is no content of this coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The decoder of a coding.
pub(super) trait Decode: Send {
    /// Reads from `input`, which may be empty, and writes to `output`, which is not. Where it does neither, it needs more input
    /// than there is.
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<DecodeProgress, Malformed>;

    /// Whether the content may end here.
    fn is_whole(&self) -> bool;
}
