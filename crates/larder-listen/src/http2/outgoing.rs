//! The content of a response on its way into frames.
//!
//! In: a source of pieces. Out: pieces of the length that windows and frames allow, and what comes behind the last. Small ones
//! come together as far as they are there: clients that count the overhead of frames take a run of small ones for an attack. For that the first
//! small piece waits for one turn of the worker, since more of its kind may be in the hands of other tasks.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use larder_http::body::Body;

use crate::content::{Piece, Source};

/// Pieces smaller than this are put together.
const SMALL_BYTES: usize = 1024;
/// Up to so many bytes, a copy that costs less than the frames it saves.
const TOGETHER_BYTES: usize = 16 * 1024;

/// How content is over.
#[derive(Debug)]
pub(super) enum ContentEnd {
    /// Whole, with trailers behind it or without.
    Whole(Option<HeaderMap>),
    /// It broke before its end.
    Cut,
}

fn is_small(piece: &Piece) -> bool {
    piece.len() < SMALL_BYTES
}

/// Content of one response.
pub(super) struct OutgoingContent {
    source: Source,
    /// Small pieces that wait for more.
    small: BytesMut,
    has_waited: bool,
    next: Option<Piece>,
    /// A large piece behind small ones.
    behind: Option<Piece>,
    end: Option<ContentEnd>,
}

impl OutgoingContent {
    pub(super) fn new(body: Body) -> Self {
        let source = Source::new(body);
        Self { source, small: BytesMut::new(), has_waited: false, next: None, behind: None, end: None }
    }

    /// Ready where a piece or the end can be taken.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.next.is_none() && self.end.is_none() {
            match self.source.poll_next(cx) {
                Poll::Pending if self.small.is_empty() => return Poll::Pending,
                Poll::Pending if !self.has_waited => {
                    self.has_waited = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => self.flush(None),
                Poll::Ready(Some(Ok(piece))) if is_small(&piece) && !self.is_alone() => {
                    self.small.extend_from_slice(&piece);
                    if self.small.len() > TOGETHER_BYTES - SMALL_BYTES {
                        self.flush(None);
                    }
                }
                Poll::Ready(Some(Ok(piece))) => {
                    self.flush(Some(piece));
                }
                Poll::Ready(next) => {
                    self.flush(None);
                    self.end_with(next.is_none());
                }
            }
        }
        self.look_ahead(cx);
        Poll::Ready(())
    }

    /// Whether a piece that was taken has no others beside it.
    fn is_alone(&self) -> bool {
        self.small.is_empty() && self.source.is_done()
    }

    fn flush(&mut self, behind: Option<Piece>) {
        self.has_waited = false;
        if self.small.is_empty() {
            self.next = behind;
        } else {
            self.next = Some(Piece::Bytes(std::mem::take(&mut self.small).freeze()));
            self.behind = behind;
        }
    }

    /// Whether the end follows, so that the last piece's frame can say so.
    fn look_ahead(&mut self, cx: &mut Context<'_>) {
        if self.behind.is_some() || self.end.is_some() || !self.small.is_empty() {
            return;
        }
        if self.source.is_done() {
            self.end_with(true);
            return;
        }
        if let Source::Stream { .. } = self.source {
            match self.source.poll_next(cx) {
                Poll::Pending => {}
                Poll::Ready(Some(Ok(piece))) if is_small(&piece) => {
                    self.small.extend_from_slice(&piece);
                }
                Poll::Ready(Some(Ok(piece))) => self.behind = Some(piece),
                Poll::Ready(next) => self.end_with(next.is_none()),
            }
        }
    }

    fn end_with(&mut self, is_whole: bool) {
        self.end = Some(match is_whole {
            true => ContentEnd::Whole(self.source.take_trailers()),
            false => ContentEnd::Cut,
        });
    }

    /// How long the piece is that comes next; 0 where none is ready.
    pub(super) fn ready_bytes(&self) -> usize {
        self.next.as_ref().map_or(0, |piece| piece.len())
    }

    /// Whether it is the last, with nothing behind it.
    pub(super) fn ends_with_next(&self) -> bool {
        let is_last = self.next.is_some() && self.behind.is_none() && self.small.is_empty();
        is_last && matches!(self.end, Some(ContentEnd::Whole(None)))
    }

    /// Takes at most so much of the piece that is ready.
    pub(super) fn take(&mut self, bytes_max: usize) -> Piece {
        match &mut self.next {
            Some(piece) if piece.len() > bytes_max => piece.split_to(bytes_max),
            next => match std::mem::replace(next, self.behind.take()) {
                Some(piece) => piece,
                None => Piece::Bytes(Bytes::new()),
            },
        }
    }

    /// How it is over, where nothing is left before the end.
    pub(super) fn take_end(&mut self) -> Option<ContentEnd> {
        if self.next.is_some() || self.behind.is_some() || !self.small.is_empty() {
            return None;
        }
        self.end.take()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::Waker;

    use http_body::Frame;
    use larder_http::body::BodyError;

    use super::*;

    /// What a script has; `None` is a wait.
    struct Script(VecDeque<Option<Result<Frame<Bytes>, BodyError>>>);

    impl http_body::Body for Script {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            match self.0.pop_front() {
                Some(None) => Poll::Pending,
                Some(frame) => Poll::Ready(frame),
                None => Poll::Ready(None),
            }
        }
    }

    fn of(script: Vec<Option<Result<Frame<Bytes>, BodyError>>>) -> OutgoingContent {
        OutgoingContent::new(Body::Stream { length: None, stream: Box::pin(Script(script.into())) })
    }

    fn bytes(length: usize) -> Option<Result<Frame<Bytes>, BodyError>> {
        Some(Ok(Frame::data(Bytes::from(vec![b'x'; length]))))
    }

    /// The lengths of all pieces, 0 for a wait, and how it ended; with whether the end came with the last piece.
    fn run(mut content: OutgoingContent, bytes_max: usize) -> (Vec<usize>, ContentEnd, bool) {
        let mut lengths = Vec::new();
        loop {
            if content.poll_ready(&mut Context::from_waker(Waker::noop())).is_pending() {
                lengths.push(0);
                continue;
            }
            let has_piece = content.ready_bytes() > 0;
            if has_piece {
                lengths.push(content.take(bytes_max).len());
            }
            if let Some(end) = content.take_end() {
                return (lengths, end, has_piece);
            }
        }
    }

    #[test]
    fn pieces_are_as_long_as_allowed_and_the_last_one_knows_that_it_is() {
        let (lengths, end, at_once) = run(OutgoingContent::new(Bytes::from(vec![0; 2500]).into()), 1000);
        assert_eq!(lengths, [1000, 1000, 500]);
        assert!(at_once && matches!(end, ContentEnd::Whole(None)));
        let (lengths, _, at_once) = run(of(vec![bytes(2000), bytes(2000)]), 5000);
        assert_eq!((lengths, at_once), (vec![2000, 2000], true));
        let pieces: Vec<Bytes> = vec![Bytes::from(vec![1; 10]), Bytes::from(vec![2; 3000])];
        let kept = Body::Pieces { owner: std::sync::Arc::new(pieces), range: 5..3010 };
        let (lengths, _, at_once) = run(OutgoingContent::new(kept), 2000);
        assert_eq!((lengths, at_once), (vec![5, 2000, 1000], true));
        let pieces: Vec<Bytes> = vec![Bytes::from(vec![1; 10]); 3];
        let kept = Body::Pieces { owner: std::sync::Arc::new(pieces), range: 0..30 };
        assert_eq!(run(OutgoingContent::new(kept), 2000).0, [30]);
    }

    #[test]
    fn small_pieces_wait_for_one_turn_and_come_together() {
        let (lengths, ..) = run(of(vec![bytes(10), None, bytes(20), None, None, bytes(5)]), 5000);
        assert_eq!(lengths, [0, 30, 5]);
        let (lengths, ..) = run(of(vec![bytes(10), bytes(20), bytes(1024), bytes(3)]), 5000);
        assert_eq!(lengths, [30, 1024, 3]);
        let (lengths, ..) = run(of((0..40).map(|_| bytes(1000)).collect()), 50_000);
        assert_eq!(lengths.iter().sum::<usize>(), 40_000);
        assert!(lengths.iter().all(|length| *length <= TOGETHER_BYTES), "{lengths:?}");
    }

    #[test]
    fn what_came_before_a_cut_is_taken_before_it() {
        let (lengths, end, _) = run(of(vec![bytes(5), Some(Err(BodyError::Cut))]), 5000);
        assert_eq!(lengths, [5]);
        assert!(matches!(end, ContentEnd::Cut));
        let mut trailers = HeaderMap::new();
        trailers.insert("x-end", http::HeaderValue::from_static("1"));
        let (lengths, end, _) = run(of(vec![bytes(2000), Some(Ok(Frame::trailers(trailers)))]), 5000);
        assert_eq!(lengths, [2000]);
        assert!(matches!(end, ContentEnd::Whole(Some(fields)) if fields["x-end"] == "1"));
    }
}
