//! The content of a response, piece by piece, wherever it is kept.
//!
//! In: a [`Body`]. Out: its pieces in order, none of them empty or copied. A stream that breaks, or is not as long
//! as it said, ends in an error, so that it can never end cleanly on a wire. Trailers are kept until the end was sent. Where each
//! piece costs a frame, [`Gathered`] puts small ones together.

use std::ops::{Deref, Range};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
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
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Kept { owner, index, range } => {
                owner.pieces().get(index).map_or_else(Bytes::new, |piece| piece.slice(range))
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

    /// Whether the end was reached and nothing comes behind it.
    fn has_nothing_left(&self) -> bool {
        matches!(self, Self::Done(None))
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

/// Pieces smaller than this are put together with what is there already. Clients that count the overhead of frames
/// take a run of smaller ones for an attack and close the connection.
const SMALL_BYTES: usize = 1024;

/// Up to this many bytes, a copy that costs less than the frames it saves.
const TOGETHER_BYTES: usize = 16 * 1024;

/// A source whose small pieces come together, as far as they are there. It never waits for the origin.
pub(crate) struct Gathered {
    source: Source,
    /// What came behind a run of small pieces: a larger one, an error, or the end.
    ahead: Option<Option<Result<Bytes, BodyError>>>,
}

impl Gathered {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, ahead: None }
    }

    /// Whether the end was reached, or is known to come next, without trailers.
    pub(crate) fn is_done(&self) -> bool {
        self.ahead.as_ref().is_none_or(Option::is_none) && self.source.has_nothing_left()
    }

    /// What comes behind the content, once its end was reached.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.source.take_trailers()
    }

    /// As [`Source::poll_next`], in bytes that have an owner of their own.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.ahead.take() {
            Some(next) => Poll::Ready(next),
            None => self.source.poll_next(cx).map_ok(Piece::into_bytes),
        }
    }

    /// `first` and the small pieces behind it. Where it is small itself, more of its kind may be in the hands of other
    /// tasks of this worker, which get a turn for that.
    ///
    /// # Cancel safety
    /// Dropped, it has lost `first`.
    pub(crate) async fn together(&mut self, first: Bytes) -> Bytes {
        if first.len() >= SMALL_BYTES || self.is_done() {
            return first;
        }
        tokio::task::yield_now().await;
        std::future::poll_fn(|cx| Poll::Ready(self.gather(&first, cx))).await
    }

    fn gather(&mut self, first: &Bytes, cx: &mut Context<'_>) -> Bytes {
        let mut together: Option<BytesMut> = None;
        while together.as_ref().is_none_or(|bytes| bytes.len() < TOGETHER_BYTES) {
            match self.poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(bytes))) if bytes.len() < SMALL_BYTES => {
                    together.get_or_insert_with(|| BytesMut::from(&first[..])).extend_from_slice(&bytes)
                }
                Poll::Ready(next) => {
                    self.ahead = Some(next);
                    break;
                }
            }
        }
        together.map_or_else(|| first.clone(), BytesMut::freeze)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn small_pieces_come_together_and_their_order_stays() {
        let small = Bytes::from(vec![b's'; SMALL_BYTES - 1]);
        let large = Bytes::from(vec![b'l'; SMALL_BYTES]);
        let one = |bytes: &Bytes, count: usize| vec![bytes.clone(); count];
        for (pieces, expected) in [
            (vec![], vec![]),
            (one(&small, 1), vec![1023]),
            (one(&small, 3), vec![3069]),
            (one(&large, 2), vec![1024, 1024]),
            ([one(&small, 2), one(&large, 1), one(&small, 2)].concat(), vec![2046, 1024, 2046]),
            (one(&small, 40), vec![17 * 1023, 17 * 1023, 6 * 1023]),
        ] {
            let whole = pieces.concat();
            let range = 0..whole.len() as u64;
            let mut gathered = Gathered::new(Source::new(Body::Pieces { owner: Arc::new(pieces), range }));
            let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
            while let Some(next) = poll_fn(|cx| gathered.poll_next(cx)).await {
                let next = gathered.together(next.expect("a piece")).await;
                lengths.push(next.len());
                bytes.extend_from_slice(&next);
            }
            assert!(gathered.is_done());
            assert_eq!((bytes, lengths), (whole, expected));
        }
    }

    #[tokio::test]
    async fn an_error_behind_small_pieces_comes_after_them() {
        let pieces: Vec<Bytes> = ["a", "b"].into_iter().map(Bytes::from).collect();
        let mut gathered = Gathered::new(Source::new(Body::Pieces { owner: Arc::new(pieces), range: 0..3 }));
        let first = poll_fn(|cx| gathered.poll_next(cx)).await;
        let first = first.expect("a piece").expect("a good one");
        assert_eq!(gathered.together(first).await, "ab");
        assert!(!gathered.is_done());
        let next = poll_fn(|cx| gathered.poll_next(cx)).await;
        assert_eq!(next, Some(Err(BodyError::Cut)));
    }

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
}
