//! Bodies in both directions: nothing, shared bytes in memory, or a stream with backpressure.
//!
//! A stream is pulled: who reads it sets the pace. Every failure is a [`BodyError`] that says whose fault it was, so
//! that a client's broken upload is never blamed on the origin.

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

/// Why a body ended before its end. The connection that carries it onwards is cut, never finished cleanly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The sender closed or reset before the framing said so.
    #[error("ended early")]
    Cut,
    /// Chunks, lengths or trailers that are not what the framing promised.
    #[error("broken framing")]
    Framing,
    /// Nothing came for longer than the limit allows.
    #[error("stalled")]
    Stalled,
    /// More than the limit allows.
    #[error("too large")]
    TooLarge,
    /// The store let go of a body in memory, because its reader was among the slowest.
    #[error("reader too slow")]
    SlowReader,
    /// The task that produced it is gone.
    #[error("producer lost")]
    Lost,
}

/// Something that keeps whole bodies in memory, in pieces, for as long as somebody holds it.
pub trait Pieces: Send + Sync {
    /// The pieces in order; they do not change while the body is held.
    fn pieces(&self) -> &[Bytes];

    /// The descriptor of a file with the same bytes, where there is one. Its pages never change, so that the kernel can send
    /// from it without copying.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The SHA-256 of all pieces, where it is made once and kept.
    fn digest(&self) -> Option<[u8; 32]> {
        None
    }
}

impl Pieces for Vec<Bytes> {
    fn pieces(&self) -> &[Bytes] {
        self
    }
}

/// A stream of data frames and, at most once and last, trailers.
pub type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError> + Send>>;

/// The content of a message.
#[derive(Default)]
pub enum Body {
    /// No content.
    #[default]
    Empty,
    /// One piece.
    Full(Bytes),
    /// A range of bytes that are all in memory. Holding it keeps them counted against their store's cap.
    Pieces {
        /// Who keeps them.
        owner: Arc<dyn Pieces>,
        /// Which of them; within the whole.
        range: Range<u64>,
    },
    /// Bytes that come as they are read.
    Stream {
        /// Known from the framing, else `None`.
        length: Option<u64>,
        /// The bytes.
        stream: Stream,
    },
}

impl Body {
    /// The length in bytes, where it is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Full(bytes) => Some(bytes.len() as u64),
            Self::Pieces { range, .. } => Some(range.end.saturating_sub(range.start)),
            Self::Stream { length, .. } => *length,
        }
    }

    /// Whether there is surely nothing to send.
    pub fn is_empty(&self) -> bool {
        self.length() == Some(0)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Full(bytes) => write!(f, "Full({})", bytes.len()),
            Self::Pieces { range, .. } => write!(f, "Pieces({range:?})"),
            Self::Stream { length, .. } => write!(f, "Stream({length:?})"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::Empty } else { Self::Full(bytes) }
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

/// A buffer of so many bytes, for what overwrites them. They are no zeros: large zeros of an allocator are pages that the
/// kernel takes and gives again for each buffer, which costs more than the read.
pub fn read_buffer(length: usize) -> Vec<u8> {
    vec![0xff; length]
}
