//! The content of a response, piece by piece, wherever it is kept.
//!
//! In: a [`Body`]. Out: its pieces in order, none of them empty or copied. A stream that breaks, or is not as long
//! as it said, ends in an error, so that it can never end cleanly on a wire. Trailers are kept until the end was sent.

use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use larder_http::body::{Body, BodyError, Pieces, Stream};

/// How much of a stream may be gathered before it is written.
const GATHERED_BYTES: usize = 128 * 1024;

/// Some content.
pub(crate) enum Piece {
    Bytes(Bytes),
    /// A range of one piece of what somebody keeps in memory. Held by its owner's count and not by the bytes' own, which
    /// workers share that send the same at once.
    Kept {
        owner: Arc<dyn Pieces>,
        index: usize,
        range: Range<usize>,
    },
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Kept { owner, index, range } => {
                owner.pieces().get(*index).and_then(|piece| piece.get(range.clone())).unwrap_or_default()
            }
        }
    }
}

impl Piece {
    /// Takes so many bytes off the front, of which it has more.
    pub(crate) fn split_to(&mut self, bytes: usize) -> Self {
        match self {
            Self::Bytes(all) => Self::Bytes(all.split_to(bytes.min(all.len()))),
            Self::Kept { owner, index, range } => {
                let at = (range.start + bytes).min(range.end);
                let front = std::mem::replace(&mut range.start, at)..at;
                Self::Kept { owner: Arc::clone(owner), index: *index, range: front }
            }
        }
    }
}

/// A range of what somebody keeps in a file.
pub(crate) struct Filed {
    owner: Arc<dyn Pieces>,
    pub(crate) range: Range<u64>,
}

impl Filed {
    /// It was there when this was made.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.owner.file()
    }

    /// The same bytes in memory, without the first `skip`.
    pub(crate) fn into_source(self, skip: usize) -> Source {
        let range = self.range.start + skip as u64..self.range.end;
        Source::new(Body::Pieces { owner: self.owner, range })
    }

    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.range.end.saturating_sub(self.range.start)).unwrap_or(usize::MAX)
    }
}

/// Less is not worth a system call of its own beside the head's.
const FILE_BYTES_MIN: u64 = 16 * 1024;

/// What is still to come.
pub(crate) enum Source {
    /// All of it is on its way, but for these trailers.
    Done(Option<Box<HeaderMap>>),
    Full(Bytes),
    Memory {
        owner: Arc<dyn Pieces>,
        index: usize,
        offset: usize,
        left: u64,
    },
    Stream {
        stream: Stream,
        left: Option<u64>,
        trailers: Option<Box<HeaderMap>>,
    },
}

impl Source {
    pub(crate) fn new(body: Body) -> Self {
        match body {
            Body::Empty => Self::Done(None),
            Body::Full(bytes) => Self::Full(bytes),
            Body::Pieces { owner, range } => {
                let left = range.end.saturating_sub(range.start);
                let mut offset = range.start;
                let mut index = 0;
                for piece in owner.pieces() {
                    let length = piece.len() as u64;
                    if offset < length {
                        break;
                    }
                    offset -= length;
                    index += 1;
                }
                Self::Memory { owner, index, offset: usize::try_from(offset).unwrap_or(usize::MAX), left }
            }
            Body::Stream { length, stream } => Self::Stream { stream, left: length, trailers: None },
        }
    }

    /// Whether the end was reached.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// What comes behind the content, once its end was reached.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Self::Done(trailers) => trailers.take().map(|trailers| *trailers),
            _ => None,
        }
    }

    /// All that is left, where the kernel can send it from a file.
    pub(crate) fn take_file(&mut self) -> Option<Filed> {
        let Self::Memory { owner, index, offset, left } = self else { return None };
        owner.file().filter(|_| *left >= FILE_BYTES_MIN)?;
        let before: usize = owner.pieces().iter().take(*index).map(Bytes::len).sum();
        let start = (before + *offset) as u64;
        let filed = Filed { owner: Arc::clone(owner), range: start..start + *left };
        *self = Self::Done(None);
        Some(filed)
    }

    /// How many bytes may be queued before they are written: all that fits into one system call where they are in
    /// memory anyway.
    pub(crate) fn gathered_bytes(&self) -> usize {
        if matches!(self, Self::Stream { .. }) { GATHERED_BYTES } else { usize::MAX }
    }

    /// The next piece, or `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, BodyError>>> {
        match self {
            Self::Done(_) => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Done(None);
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Piece::Bytes(bytes))))
            }
            Self::Memory { left: 0, .. } => {
                *self = Self::Done(None);
                Poll::Ready(None)
            }
            Self::Memory { owner, index, offset, left } => {
                loop {
                    // Fewer pieces than the range says would break the framing.
                    let Some(piece) = owner.pieces().get(*index) else {
                        return Poll::Ready(Some(Err(BodyError::Cut)));
                    };
                    let start = (*offset).min(piece.len());
                    let take = (piece.len() - start).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    let (at, range) = (*index, start..start + take);
                    *offset = 0;
                    *index += 1;
                    if take > 0 {
                        *left -= take as u64;
                        let owner = match *left {
                            // With the last piece it is handed on, and not counted once more.
                            0 => match std::mem::replace(self, Self::Done(None)) {
                                Self::Memory { owner, .. } => owner,
                                _ => return Poll::Ready(None),
                            },
                            _ => Arc::clone(owner),
                        };
                        return Poll::Ready(Some(Ok(Piece::Kept { owner, index: at, range })));
                    }
                }
            }
            Self::Stream { stream, left, trailers } => loop {
                match ready!(stream.as_mut().poll_frame(cx)) {
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Some(Ok(frame)) => {
                        let bytes = match frame.into_data() {
                            Ok(bytes) => bytes,
                            Err(frame) => {
                                *trailers = frame.into_trailers().ok().map(Box::new);
                                continue;
                            }
                        };
                        if bytes.is_empty() {
                            continue;
                        }
                        if let Some(left) = left {
                            match left.checked_sub(bytes.len() as u64) {
                                Some(rest) => *left = rest,
                                None => return Poll::Ready(Some(Err(BodyError::Framing))),
                            }
                        }
                        return Poll::Ready(Some(Ok(Piece::Bytes(bytes))));
                    }
                    None if left.is_some_and(|left| left > 0) => {
                        return Poll::Ready(Some(Err(BodyError::Cut)));
                    }
                    None => {
                        *self = Self::Done(trailers.take());
                        return Poll::Ready(None);
                    }
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(body: Body) -> Result<Vec<u8>, BodyError> {
        let mut source = Source::new(body);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut bytes = Vec::new();
        while let Poll::Ready(Some(next)) = source.poll_next(&mut cx) {
            let next = next?;
            assert!(!next.is_empty());
            bytes.extend_from_slice(&next);
        }
        assert!(source.is_done());
        Ok(bytes)
    }

    #[test]
    fn a_range_of_pieces_is_exactly_that_range() {
        let pieces: Vec<Bytes> = ["abc", "", "de", "f"].into_iter().map(Bytes::from).collect();
        let whole = b"abcdef";
        for start in 0..=6_u64 {
            for end in start..=6 {
                let owner: Arc<dyn Pieces> = Arc::new(pieces.clone());
                let expected = whole[start as usize..end as usize].to_vec();
                assert_eq!(all(Body::Pieces { owner, range: start..end }), Ok(expected), "{start}..{end}");
            }
        }
        let owner: Arc<dyn Pieces> = Arc::new(pieces);
        assert_eq!(all(Body::Pieces { owner, range: 4..9 }), Err(BodyError::Cut));
    }

    #[test]
    fn a_piece_is_split_wherever_it_is_kept() {
        let owner: Arc<dyn Pieces> = Arc::new(vec![Bytes::from_static(b"abcdef")]);
        for mut piece in
            [Piece::Bytes(Bytes::from_static(b"bcde")), Piece::Kept { owner, index: 0, range: 1..5 }]
        {
            let front = piece.split_to(3);
            assert_eq!((&*front, &*piece), (&b"bcd"[..], &b"e"[..]));
        }
    }
}
