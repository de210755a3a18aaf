//! The content of a request, between its connection and its reader.
//!
//! In: pieces as frames bring them, within the stream's window. Out: a body, for a reader in the same task or in another. The connection opens the
//! window for what the reader has taken, so a slow origin slows the client down.
//!
//! The last of an announced length waits for the end of the stream. Content that goes on behind its length is malformed (RFC 9113 8.1.1),
//! and an origin that had all of the length would take the request for a whole one. Small pieces are copied together, since each
//! of its own would cost more than its bytes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use larder_http::body::{Body, BodyError};
use parking_lot::Mutex;

use super::flow::WindowTurns;
use crate::error::Refusal;
use crate::timer::{Pace, Timer};

/// Smaller pieces are copied together.
const SMALL_BYTES: usize = 1024;
/// Up to so much.
const TOGETHER_BYTES: usize = 16 * 1024;
/// The reader tells the connection of so much that it has taken, and of all where nothing is left.
const TOLD_BYTES: usize = 16 * 1024;

/// What a reader wants from its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The client may be told to go on.
    pub(super) go_on: bool,
    /// So much was taken.
    pub(super) taken: usize,
    /// The content broke, for this reason.
    pub(super) failed: Option<Refusal>,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// What was copied together, behind the pieces.
    small: BytesMut,
    waiting: usize,
    /// What was announced and did not come yet.
    left: Option<u64>,
    ended: bool,
    trailers: Option<HeaderMap>,
    error: Option<BodyError>,
    awaits_continue: bool,
    wanted: Wanted,
    is_reader_gone: bool,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

/// The connection's end. Dropped before the end of the content, it tells the reader that the rest will not come.
#[derive(Debug)]
pub(super) struct IncomingContent(Arc<Mutex<State>>);

impl IncomingContent {
    /// Content of this length, where it is known, and the body that its reader gets. `awaits_continue`: the client sends nothing before it
    /// is told to go on. The pace counts while it may send.
    pub(super) fn new(
        length: Option<u64>,
        awaits_continue: bool,
        (pace, window_turns): (Pace, WindowTurns),
    ) -> (Self, Body) {
        let state = Arc::new(Mutex::new(State { left: length, awaits_continue, ..State::default() }));
        // Nothing, with an end that is still to come, is content of a length that is not known: a length of 0 would tell the origin of an
        // end that this client may yet break.
        let length = length.filter(|length| *length > 0);
        let reader = ContentReader {
            state: Arc::clone(&state),
            left: length,
            pace,
            timer: Timer::default(),
            window_turns,
            turns_seen: 0,
        };
        (Self(state), Body::Stream { length, stream: Box::pin(reader) })
    }

    /// Who is woken when the reader wants something.
    pub(super) fn set_waker(&self, waker: Waker) {
        self.0.lock().connection = Some(waker);
    }

    /// What the reader wants, told once.
    pub(super) fn wanted(&self) -> Wanted {
        let mut state = self.0.lock();
        let failed = state.wanted.failed;
        std::mem::replace(&mut state.wanted, Wanted { failed, ..Wanted::default() })
    }

    /// Hands over a piece; `false` where the reader is gone, and nothing waits for it.
    ///
    /// # Errors
    /// It is more than was announced.
    pub(super) fn give(&self, piece: Bytes) -> Result<bool, BodyError> {
        let mut state = self.0.lock();
        if let Some(left) = &mut state.left {
            *left = left.checked_sub(piece.len() as u64).ok_or(BodyError::Framing)?;
        }
        if state.is_reader_gone || state.error.is_some() {
            return Ok(false);
        }
        state.waiting += piece.len();
        if piece.len() < SMALL_BYTES {
            if state.small.len() + piece.len() > TOGETHER_BYTES {
                state.flush();
            }
            state.small.extend_from_slice(&piece);
        } else {
            state.flush();
            state.pieces.push_back(piece);
        }
        wake(state, |state| state.reader.take());
        Ok(true)
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// It has less than was announced.
    pub(super) fn end(&self, trailers: Option<HeaderMap>) -> Result<(), BodyError> {
        let mut state = self.0.lock();
        if state.error.is_some() {
            // What broke has no end.
            return Ok(());
        }
        if state.left.is_some_and(|left| left > 0) {
            return Err(BodyError::Framing);
        }
        state.ended = true;
        state.trailers = trailers;
        wake(state, |state| state.reader.take());
        Ok(())
    }

    /// It broke: the reader learns why behind what is here already.
    pub(super) fn fail(&self, error: BodyError) {
        let mut state = self.0.lock();
        if !state.ended {
            state.error.get_or_insert(error);
            wake(state, |state| state.reader.take());
        }
    }

    /// The connection has no more to do with it: gives what was taken and not told, and what still waits.
    pub(super) fn leave(&self) -> usize {
        let mut state = self.0.lock();
        state.connection = None;
        std::mem::take(&mut state.wanted.taken) + state.waiting
    }
}

impl Drop for IncomingContent {
    fn drop(&mut self) {
        self.fail(BodyError::Cut);
    }
}

fn wake(mut state: parking_lot::MutexGuard<'_, State>, whom: impl FnOnce(&mut State) -> Option<Waker>) {
    let waker = whom(&mut state);
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    fn flush(&mut self) {
        if !self.small.is_empty() {
            let small = self.small.split().freeze();
            self.pieces.push_back(small);
        }
    }

    /// The next piece that the reader may have.
    fn next(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.flush();
        }
        let is_last = self.pieces.len() == 1 && self.small.is_empty();
        if is_last && self.left == Some(0) && !self.ended {
            return None;
        }
        let piece = self.pieces.pop_front()?;
        self.waiting = self.waiting.saturating_sub(piece.len());
        self.wanted.taken += piece.len();
        Some(piece)
    }

    /// Whom to wake where the connection is to hear of what was taken.
    fn waker_to_tell(&self) -> Option<Waker> {
        let is_due = self.wanted.taken >= TOLD_BYTES || self.waiting == 0;
        if is_due { self.connection.clone() } else { None }
    }
}

/// The reader's end: a body.
#[derive(Debug)]
struct ContentReader {
    state: Arc<Mutex<State>>,
    left: Option<u64>,
    /// The limit on a client that the reader waits for.
    pace: Pace,
    timer: Timer,
    /// Content of other streams that is not taken may have shut the window of the connection, for this one too.
    window_turns: WindowTurns,
    turns_seen: u32,
}

impl http_body::Body for ContentReader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let mut state = this.state.lock();
        let mut connection = None;
        if std::mem::take(&mut state.awaits_continue) {
            state.wanted.go_on = true;
            connection = state.connection.clone();
        }
        if let Some(piece) = state.next() {
            connection = connection.or(state.waker_to_tell());
            drop(state);
            if let Some(waker) = connection {
                waker.wake();
            }
            let length = piece.len() as u64;
            this.pace.moved(length);
            if let Some(left) = &mut this.left {
                *left = left.saturating_sub(length);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if state.ended {
            return Poll::Ready(state.trailers.take().map(|fields| Ok(Frame::trailers(fields))));
        }
        if let Some(error) = state.error {
            state.ended = true;
            return Poll::Ready(Some(Err(error)));
        }
        if !state.reader.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
        drop(state);
        if let Some(waker) = connection {
            waker.wake();
        }
        if this.pace.poll_stalled(cx, &mut this.timer).is_pending() {
            return Poll::Pending;
        }
        if this.window_turns.was_shut(&mut this.turns_seen) {
            this.pace.restart();
            if this.pace.poll_stalled(cx, &mut this.timer).is_pending() {
                return Poll::Pending;
            }
        }
        let mut state = this.state.lock();
        state.ended = true;
        state.wanted.failed = Some(Refusal::BodyTimeout);
        wake(state, |state| state.connection.clone());
        Poll::Ready(Some(Err(BodyError::Stalled)))
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state.lock();
        state.ended && state.waiting == 0 && state.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for ContentReader {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.is_reader_gone = true;
        state.pieces.clear();
        state.small = BytesMut::new();
        state.wanted.taken += std::mem::take(&mut state.waiting);
        wake(state, |state| state.connection.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    fn content(length: Option<u64>) -> (IncomingContent, larder_http::body::Stream) {
        let pace = Pace::new(Duration::from_secs(30), Duration::from_secs(30), 1);
        match IncomingContent::new(length, false, (pace, WindowTurns::default())) {
            (content, Body::Stream { stream, .. }) => (content, stream),
            _ => panic!("a stream"),
        }
    }

    /// What is there now; `None` where the reader has to wait.
    fn next(body: &mut larder_http::body::Stream) -> Option<Option<Result<Vec<u8>, BodyError>>> {
        match body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(frame) => Some(frame.map(|frame| frame.map(|f| f.into_data().unwrap().to_vec()))),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn the_last_of_an_announced_length_waits_for_the_end() {
        let (content, mut body) = content(Some(2000));
        let large = Bytes::from(vec![b'x'; 1998]);
        assert_eq!(content.give(large.clone()), Ok(true));
        assert_eq!(next(&mut body), Some(Some(Ok(large.to_vec()))));
        assert_eq!(content.give(Bytes::from_static(b"yz")), Ok(true));
        assert_eq!(next(&mut body), None);
        assert_eq!(content.wanted().taken, 1998);
        assert_eq!(content.end(None), Ok(()));
        assert_eq!(next(&mut body), Some(Some(Ok(b"yz".to_vec()))));
        assert_eq!(next(&mut body), Some(None));
        assert!(body.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_may_not_send_is_not_slow() {
        let pace = Pace::new(Duration::from_secs(30), Duration::from_secs(30), 1);
        let turns = WindowTurns::default();
        let (_content, body) = IncomingContent::new(None, false, (pace, turns.clone()));
        let Body::Stream { mut stream, .. } = body else { panic!("a stream") };
        let reading = tokio::spawn(async move { poll_fn(|cx| stream.as_mut().poll_frame(cx)).await });
        let after = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        after(20).await;
        turns.note(true);
        after(100).await;
        assert!(!reading.is_finished(), "its window is shut");
        turns.note(false);
        after(29).await;
        assert!(!reading.is_finished(), "its time begins when it may send");
        after(62).await;
        assert!(reading.is_finished());
        assert!(matches!(reading.await, Ok(Some(Err(BodyError::Stalled)))));
    }

    #[tokio::test]
    async fn more_or_less_than_announced_is_no_end() {
        let (content, _body) = self::content(Some(3));
        assert_eq!(content.give(Bytes::from_static(b"ab")), Ok(true));
        assert_eq!(content.end(None), Err(BodyError::Framing));
        assert_eq!(content.give(Bytes::from_static(b"cd")), Err(BodyError::Framing));
    }

    #[tokio::test]
    async fn nothing_announced_is_not_said_before_the_end() {
        let pace = Pace::new(Duration::from_secs(30), Duration::from_secs(30), 1);
        let (content, body) = IncomingContent::new(Some(0), false, (pace, WindowTurns::default()));
        assert_eq!(body.length(), None);
        assert_eq!(content.give(Bytes::from_static(b"a")), Err(BodyError::Framing));
        assert_eq!(content.end(None), Ok(()));
    }

    #[tokio::test]
    async fn content_that_broke_has_no_end() {
        let (content, mut body) = content(None);
        assert_eq!(content.give(Bytes::from_static(b"abc")), Ok(true));
        content.fail(BodyError::TooLarge);
        assert_eq!((content.give(Bytes::from_static(b"de")), content.end(None)), (Ok(false), Ok(())));
        assert_eq!(next(&mut body), Some(Some(Ok(b"abc".to_vec()))));
        assert_eq!(next(&mut body), Some(Some(Err(BodyError::TooLarge))));
    }

    #[tokio::test]
    async fn small_pieces_come_together_and_a_cut_comes_behind_them() {
        let (content, mut body) = content(None);
        for _ in 0..300 {
            assert_eq!(content.give(Bytes::from(vec![b's'; 100])), Ok(true));
        }
        assert_eq!(content.give(Bytes::from(vec![b'l'; 5000])), Ok(true));
        drop(content);
        let mut lengths = Vec::new();
        let end = loop {
            match next(&mut body) {
                Some(Some(Ok(piece))) => lengths.push(piece.len()),
                end => break end,
            }
        };
        assert_eq!((lengths, end), (vec![16_300, 13_700, 5000], Some(Some(Err(BodyError::Cut)))));
    }

    #[tokio::test]
    async fn what_a_reader_leaves_counts_as_taken_and_nothing_waits_for_it() {
        let (content, body) = content(None);
        assert_eq!(content.give(Bytes::from(vec![0; 3000])), Ok(true));
        drop(body);
        assert_eq!(content.wanted().taken, 3000);
        assert_eq!(content.leave(), 0);
        assert_eq!(content.give(Bytes::from(vec![0; 10])), Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_waits_too_long_says_so() {
        let (content, mut body) = content(None);
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        assert!(matches!(frame, Some(Err(BodyError::Stalled))));
        assert_eq!(content.wanted().failed, Some(Refusal::BodyTimeout));
    }
}
