//! The body of a part: chunks that are in memory, and a stream of what is to come.
//!
//! In: the body of a response. Out: its chunks, in order. A body is good for a page when all of it is in memory, or [`GOOD_BYTES`]
//! of it: what breaks before that is a failed fragment, and what breaks later cuts the page.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::{Body, BodyError, Pieces, Stream};

use super::GOOD_BYTES;

/// The chunks of a body of which all is in memory, and who keeps them counted.
pub(crate) type WholeBody = (VecDeque<Bytes>, Option<Arc<dyn Pieces>>);

/// A body, as far as it is there.
#[derive(Default)]
pub(crate) struct PartBody {
    ahead: VecDeque<Bytes>,
    /// In all of them; counted as they come, since there may be many.
    ahead_bytes: usize,
    /// Who keeps the chunks counted against a store's cap.
    owner: Option<Arc<dyn Pieces>>,
    rest: Option<Stream>,
}

impl PartBody {
    /// What is known of it without waiting.
    pub(crate) fn new(body: Body) -> Self {
        match body {
            Body::Empty => Self::default(),
            Body::Full(bytes) => Self { ahead_bytes: bytes.len(), ahead: [bytes].into(), ..Self::default() },
            Body::Pieces { owner, range } => {
                let ahead: VecDeque<_> = within(owner.pieces(), range).collect();
                let ahead_bytes = ahead.iter().map(Bytes::len).sum();
                Self { ahead, ahead_bytes, owner: Some(owner), rest: None }
            }
            Body::Stream { stream, .. } => Self { rest: Some(stream), ..Self::default() },
        }
    }

    /// Whether all of it is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether there is surely nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_whole() && self.ahead_bytes == 0
    }

    /// The same once more, where it is whole.
    pub(crate) fn copy(&self) -> Option<Self> {
        let owner = self.owner.clone();
        self.is_whole().then(|| Self {
            ahead: self.ahead.clone(),
            owner,
            rest: None,
            ahead_bytes: self.ahead_bytes,
        })
    }

    /// Its chunks, where it is whole, and who keeps them.
    pub(crate) fn into_whole(self) -> Option<WholeBody> {
        self.rest.is_none().then_some((self.ahead, self.owner))
    }

    /// What a stream gives that waits for nothing. Where it ends within [`GOOD_BYTES`], that is all.
    ///
    /// # Errors
    /// It broke before that.
    pub(crate) fn at_once(stream: Stream) -> Result<Self, BodyError> {
        let mut body = Self { rest: Some(stream), ..Self::default() };
        let mut cx = Context::from_waker(Waker::noop());
        while !body.is_whole() && body.ahead_bytes <= GOOD_BYTES {
            match body.poll_read(&mut cx) {
                Poll::Ready(read) => read?,
                Poll::Pending => break,
            }
        }
        Ok(body)
    }

    /// The same as a stream.
    pub(crate) fn into_stream(self) -> Stream {
        Box::pin(self)
    }

    /// All of it in one piece, where it is whole and at most [`GOOD_BYTES`].
    pub(crate) fn joined(&self) -> Option<Bytes> {
        if !self.is_whole() || self.ahead_bytes > GOOD_BYTES {
            return None;
        }
        Some(match self.ahead.len() {
            0 => Bytes::new(),
            1 => self.ahead.front().cloned().unwrap_or_default(),
            _ => self.ahead.iter().flat_map(|chunk| chunk.iter().copied()).collect(),
        })
    }

    /// Reads until it is whole, or until more than [`GOOD_BYTES`] are there.
    ///
    /// # Errors
    /// It broke before that.
    ///
    /// # Cancel safety
    /// What was read stays.
    pub(crate) async fn read_ahead(&mut self) -> Result<(), BodyError> {
        self.read_beyond(GOOD_BYTES).await
    }

    /// Reads until it is whole, or until more than so many bytes are there.
    ///
    /// # Errors
    /// It broke before that.
    ///
    /// # Cancel safety
    /// What was read stays.
    pub(crate) async fn read_beyond(&mut self, bytes: usize) -> Result<(), BodyError> {
        while !self.is_whole() && self.ahead_bytes <= bytes {
            std::future::poll_fn(|cx| self.poll_read(cx)).await?;
        }
        Ok(())
    }

    /// In bytes, as far as it is there.
    pub(crate) fn ahead_bytes(&self) -> usize {
        self.ahead_bytes
    }

    /// Reads one chunk more. Trailers are dropped: those of a fragment say nothing of the page.
    ///
    /// # Errors
    /// The body broke off.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let Some(rest) = &mut self.rest else { return Poll::Ready(Ok(())) };
        match ready!(rest.as_mut().poll_frame(cx)) {
            None => self.rest = None,
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    self.ahead_bytes += bytes.len();
                    self.ahead.push_back(bytes);
                }
            }
            Some(Err(error)) => {
                self.rest = None;
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The next chunk that is there already.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let bytes = self.ahead.pop_front()?;
        self.ahead_bytes -= bytes.len();
        Some(bytes)
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// The body broke off.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            if let Some(bytes) = self.pop() {
                return Poll::Ready(Some(Ok(bytes)));
            }
            if self.is_whole() {
                return Poll::Ready(None);
            }
            if let Err(error) = ready!(self.poll_read(cx)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl http_body::Body for PartBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.poll_next(cx).map_ok(Frame::data)
    }
}

/// What of `pieces` lies within `range`, without copying.
fn within(pieces: &[Bytes], range: Range<u64>) -> impl Iterator<Item = Bytes> {
    let mut start = 0;
    pieces.iter().filter_map(move |piece| {
        let (from, to) = (start, start + piece.len() as u64);
        start = to;
        let (first, last) = (range.start.max(from), range.end.min(to));
        let at = |position: u64| usize::try_from(position - from).ok();
        (first < last).then(|| Some(piece.slice(at(first)?..at(last)?))).flatten()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pieces(texts: &[&'static str]) -> Arc<dyn Pieces> {
        Arc::new(texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect::<Vec<_>>())
    }

    #[test]
    fn a_range_of_pieces_is_their_slices() {
        for (range, expected) in
            [(0..9, "abcdefghi"), (1..8, "bcdefgh"), (3..6, "def"), (4..5, "e"), (9..9, ""), (2..3, "c")]
        {
            let body = PartBody::new(Body::Pieces { owner: pieces(&["abc", "", "def", "ghi"]), range });
            assert_eq!(body.joined().unwrap(), expected);
            assert_eq!(body.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn what_is_whole_can_be_had_twice() {
        let body = PartBody::new(Body::Pieces { owner: pieces(&["ab", "cd"]), range: 0..4 });
        assert_eq!(body.copy().unwrap().joined().unwrap(), body.joined().unwrap());
    }
}
