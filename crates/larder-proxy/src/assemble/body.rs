//! The body of a part: chunks that are in memory, and a stream of what is to come.
//!
//! In: the body of a response. Out: its chunks, in order. A body is good for a page when all of it is in memory, or [`GOOD_BYTES`]
//! of it: what breaks before that is a failed fragment, and what breaks later cuts the page.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use larder_http::body::{Body, BodyError, Pieces, Stream};

use super::GOOD_BYTES;
use super::room::{FetchPlace, TakenRoom};
use super::tag::{DIGESTED_BYTES_MAX, Digest, digest_of};

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
    /// They are all that the owner has.
    is_all_of_owner: bool,
    rest: Option<Stream>,
    /// What it takes of the page's room.
    room: Option<Arc<TakenRoom>>,
    /// What the page's queue counts of it.
    charged_bytes: u64,
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
                let is_all_of_owner = owner.pieces().iter().map(Bytes::len).sum::<usize>() == ahead_bytes;
                Self { ahead, ahead_bytes, owner: Some(owner), is_all_of_owner, ..Self::default() }
            }
            Body::Stream { stream, .. } => Self { rest: Some(stream), ..Self::default() },
        }
    }

    /// Whether all of it is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether enough of it is in memory to go into a page.
    pub(super) fn is_good(&self) -> bool {
        self.is_whole() || self.ahead_bytes > GOOD_BYTES
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
            is_all_of_owner: self.is_all_of_owner,
            rest: None,
            ahead_bytes: self.ahead_bytes,
            room: self.room.clone(),
            charged_bytes: 0,
        })
    }

    /// Whether it is whole, and so long.
    pub(crate) fn has_length(&self, bytes: u64) -> bool {
        self.is_whole() && self.ahead_bytes as u64 == bytes
    }

    /// Its owner, where it is all that the owner has.
    pub(super) fn sole_owner(&self) -> Option<&Arc<dyn Pieces>> {
        self.owner.as_ref().filter(|_| self.is_all_of_owner)
    }

    /// The SHA-256 of all of it, where it is whole, and not so long that making it takes too much time.
    pub(crate) fn digest(&self) -> Option<Digest> {
        if !self.is_whole() || self.ahead_bytes as u64 > DIGESTED_BYTES_MAX {
            return None;
        }
        let kept = self.sole_owner().and_then(|owner| owner.digest());
        kept.or_else(|| digest_of(self.ahead.iter()))
    }

    /// What of it is in memory for this page alone: nothing where a store keeps it counted.
    pub(super) fn own_bytes(&self) -> u64 {
        if self.owner.is_some() { 0 } else { self.ahead_bytes as u64 }
    }

    /// It is there at once, and nothing else counts it: the page's queue does.
    pub(super) fn charge(&mut self) {
        self.charged_bytes = self.own_bytes();
    }

    /// What the page's queue counts of it.
    pub(super) fn charged_bytes(&self) -> u64 {
        self.charged_bytes
    }

    /// It has come. It keeps the room that it needs, until the last of its copies was sent. A short one is put into one piece, because
    /// its chunks may be small parts of the buffers that they were read into.
    pub(super) fn settle(&mut self, place: FetchPlace) {
        if self.owner.is_some() {
            return;
        }
        if self.is_whole() && self.ahead_bytes <= GOOD_BYTES && self.ahead_bytes > 0 {
            let mut all = BytesMut::with_capacity(self.ahead_bytes);
            self.ahead.iter().for_each(|chunk| all.extend_from_slice(chunk));
            self.ahead = [all.freeze()].into();
        }
        self.room = Some(Arc::new(place.keep(self.ahead_bytes)));
    }

    /// Leaves its room to whoever takes its chunks.
    pub(super) fn take_room(&mut self) -> Option<Arc<TakenRoom>> {
        self.room.take()
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
        while !body.is_good() {
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
        self.is_all_of_owner = false;
        if self.ahead.is_empty() {
            // The rest of it, where there is one, flows.
            self.room = None;
        }
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

    #[test]
    fn a_digest_is_of_the_bytes_that_are_there() {
        let whole = PartBody::new(Body::Pieces { owner: pieces(&["abc", "def"]), range: 0..6 });
        let part = PartBody::new(Body::Pieces { owner: pieces(&["abc", "def"]), range: 1..6 });
        let full = PartBody::new(Body::Full(Bytes::from_static(b"bcdef")));
        assert_eq!((whole.sole_owner().is_some(), part.sole_owner().is_some()), (true, false));
        assert_eq!(part.digest(), full.digest());
        assert_ne!(part.digest(), whole.digest());
        let mut sent = whole.copy().unwrap();
        sent.pop();
        assert_eq!(sent.digest(), PartBody::new(Body::Full(Bytes::from_static(b"def"))).digest());
        assert!(sent.digest().is_some());
    }
}
