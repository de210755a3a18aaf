//! The content of a response, piece by piece, wherever it is kept.
//!
//! In: a [`Body`]. Out: its pieces in order, none of them empty or copied. A stream that breaks, or is not as long
//! as it said, ends in an error, so that it can never end cleanly on a wire. Trailers are dropped: whoever needs
//! them cannot rely on a cache either.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use larder_http::body::{Body, BodyError, Pieces, Stream};

/// How much of a stream may be gathered before it is written.
const GATHERED_BYTES: usize = 256 * 1024;

/// What is still to come.
pub(crate) enum Source {
    Done,
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
    },
}

impl Source {
    pub(crate) fn new(body: Body) -> Self {
        match body {
            Body::Empty => Self::Done,
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
                Self::Memory {
                    owner,
                    index,
                    offset: usize::try_from(offset).unwrap_or(usize::MAX),
                    left,
                }
            }
            Body::Stream { length, stream } => Self::Stream { stream, left: length },
        }
    }

    /// Whether the end was reached.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// How many bytes may be queued before they are written: all that fits into one system call where they are in
    /// memory anyway.
    pub(crate) fn gathered_bytes(&self) -> usize {
        if matches!(self, Self::Stream { .. }) {
            GATHERED_BYTES
        } else {
            usize::MAX
        }
    }

    /// The next piece, or `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self {
            Self::Done => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Done;
                Poll::Ready((!bytes.is_empty()).then_some(Ok(bytes)))
            }
            Self::Memory { left: 0, .. } => {
                *self = Self::Done;
                Poll::Ready(None)
            }
            Self::Memory {
                owner,
                index,
                offset,
                left,
            } => {
                loop {
                    // Fewer pieces than the range says would break the framing.
                    let Some(piece) = owner.pieces().get(*index) else {
                        return Poll::Ready(Some(Err(BodyError::Cut)));
                    };
                    let start = (*offset).min(piece.len());
                    let take = (piece.len() - start).min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *offset = 0;
                    *index += 1;
                    if take > 0 {
                        let bytes = piece.slice(start..start + take);
                        *left -= take as u64;
                        if *left == 0 {
                            *self = Self::Done;
                        }
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
            }
            Self::Stream { stream, left } => loop {
                match ready!(stream.as_mut().poll_frame(cx)) {
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Some(Ok(frame)) => {
                        let Ok(bytes) = frame.into_data() else { continue };
                        if bytes.is_empty() {
                            continue;
                        }
                        if let Some(left) = left {
                            match left.checked_sub(bytes.len() as u64) {
                                Some(rest) => *left = rest,
                                None => return Poll::Ready(Some(Err(BodyError::Framing))),
                            }
                        }
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    None if left.is_some_and(|left| left > 0) => {
                        return Poll::Ready(Some(Err(BodyError::Cut)));
                    }
                    None => {
                        *self = Self::Done;
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
                assert_eq!(
                    all(Body::Pieces {
                        owner,
                        range: start..end
                    }),
                    Ok(expected),
                    "{start}..{end}"
                );
            }
        }
        let owner: Arc<dyn Pieces> = Arc::new(pieces);
        assert_eq!(all(Body::Pieces { owner, range: 4..9 }), Err(BodyError::Cut));
    }
}
