//! A request's content on its way to the origin.
//!
//! In: a [`Body`] from the client. Out: the frames that hyper pulls, and a [`UploadProgress`] that the exchange watches:
//! whether everything was handed over, whether we are waiting for the client, what the client did wrong.
//!
//! A body that breaks ends in an error, never in an end, so hyper never writes the last chunk. A body that is stopped
//! (the origin answered before it was complete) becomes silent for ever instead: an error would also cut the answer
//! that is being read. Trailers go along as far as they may and the framing can carry them: over HTTP/1.1 behind chunks, and
//! only those that the head announces, because hyper writes no others; over HTTP/2 all of them.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body as HttpBody, Frame, SizeHint};
use larder_http::body::{Body, BodyError, Pieces, Stream};
use larder_http::trailers;
use parking_lot::Mutex;

/// What is known of an upload from outside hyper. Locked for a few instructions per frame.
#[derive(Debug, Default)]
pub(crate) struct UploadProgress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_complete: bool,
    is_stopped: bool,
    is_waiting: bool,
    error: Option<BodyError>,
    waker: Option<Waker>,
}

impl UploadProgress {
    /// Whether the whole body was handed over.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.lock().is_complete
    }

    /// Whether hyper asked for more and the client has not sent it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.lock().is_waiting
    }

    /// What the client did wrong.
    pub(crate) fn error(&self) -> Option<BodyError> {
        self.0.lock().error
    }

    /// Lets go of the client's body; nothing more is sent. Does nothing once the body is complete.
    pub(crate) fn stop(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.is_stopped = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

enum Source {
    Nothing,
    Bytes(Bytes),
    Pieces { owner: Arc<dyn Pieces>, range: Range<u64> },
    Stream(Stream),
}

/// The body as hyper wants it.
pub(crate) struct Upload {
    source: Source,
    /// Bytes that the framing still promises.
    remaining: Option<u64>,
    /// The trailers that the head announces.
    announced: Vec<HeaderName>,
    /// Whether the others are sent as well.
    sends_unannounced: bool,
    progress: Arc<UploadProgress>,
}

impl Upload {
    pub(crate) fn new(body: Body) -> Self {
        let remaining = body.length();
        let source = match body {
            _ if remaining == Some(0) => Source::Nothing,
            Body::Empty => Source::Nothing,
            Body::Full(bytes) => Source::Bytes(bytes),
            Body::Pieces { owner, range } => Source::Pieces { owner, range },
            Body::Stream { stream, .. } => Source::Stream(stream),
        };
        let progress = Arc::new(UploadProgress::default());
        progress.0.lock().is_complete = matches!(source, Source::Nothing);
        Self { source, remaining, announced: Vec::new(), sends_unannounced: false, progress }
    }

    /// The head will announce these trailers.
    pub(crate) fn announce(&mut self, names: Vec<HeaderName>) {
        self.announced = names;
    }

    /// Whether trailers are sent that the head does not announce, which HTTP/2 can.
    pub(crate) fn send_unannounced(&mut self, does: bool) {
        self.sends_unannounced = does;
    }

    pub(crate) fn progress(&self) -> Arc<UploadProgress> {
        self.progress.clone()
    }

    /// The same body once more, where it is in memory.
    pub(crate) fn replay(&self) -> Option<Self> {
        let source = match &self.source {
            Source::Nothing => Source::Nothing,
            Source::Bytes(bytes) => Source::Bytes(bytes.clone()),
            Source::Pieces { owner, range } => Source::Pieces { owner: owner.clone(), range: range.clone() },
            Source::Stream(_) => return None,
        };
        let progress = Arc::new(UploadProgress::default());
        progress.0.lock().is_complete = matches!(source, Source::Nothing);
        let announced = self.announced.clone();
        Some(Self { source, remaining: self.remaining, announced, sends_unannounced: false, progress })
    }

    /// Whether there is nothing to send at all.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.source, Source::Nothing)
    }

    /// The length that the request announces; `None` is sent in chunks.
    pub(crate) fn length(&self) -> Option<u64> {
        self.remaining
    }

    /// The trailers that may be sent.
    fn sendable(&self, fields: HeaderMap) -> Option<HeaderMap> {
        let fields = trailers::permitted(fields).ok().flatten()?;
        if self.sends_unannounced {
            return Some(fields);
        }
        let is_sendable = |name: &HeaderName| self.remaining.is_none() && self.announced.contains(name);
        let lines = fields.iter().filter(|(name, _)| is_sendable(name));
        let mut kept = HeaderMap::new();
        for (name, value) in lines {
            kept.append(name.clone(), value.clone());
        }
        (!kept.is_empty()).then_some(kept)
    }

    /// The end of the content, with these trailers behind it.
    fn end_with(&mut self, fields: HeaderMap) -> Option<Result<Frame<Bytes>, BodyError>> {
        self.source = Source::Nothing;
        match self.remaining {
            None | Some(0) => self.sendable(fields).map(|fields| Ok(Frame::trailers(fields))),
            Some(_) => Some(Err(BodyError::Framing)),
        }
    }

    /// The next data, checked against the promised length, or what comes behind it.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let data = match &mut self.source {
            Source::Nothing => None,
            Source::Bytes(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Source::Pieces { owner, range } => next_piece(owner.as_ref(), range),
            Source::Stream(stream) => loop {
                match stream.as_mut().poll_frame(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => break None,
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) if data.is_empty() => {}
                        Ok(data) => break Some(data),
                        Err(frame) => {
                            return Poll::Ready(self.end_with(frame.into_trailers().unwrap_or_default()));
                        }
                    },
                }
            },
        };
        let Some(data) = data else {
            return Poll::Ready(match self.remaining {
                None | Some(0) => None,
                Some(_) => Some(Err(BodyError::Framing)),
            });
        };
        if let Some(remaining) = &mut self.remaining {
            match remaining.checked_sub(data.len() as u64) {
                Some(left) => *remaining = left,
                None => return Poll::Ready(Some(Err(BodyError::Framing))),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    /// Whether a stream of known length has trailers left behind its last byte.
    fn has_trailers_left(&self) -> bool {
        match &self.source {
            Source::Stream(stream) => {
                self.sends_unannounced && stream.size_hint().exact() == Some(0) && !stream.is_end_stream()
            }
            _ => false,
        }
    }
}

/// Takes the first piece that overlaps `range` and moves the range behind it. Pieces are few (bodies are kept in
/// large ones), so walking from the start is cheap.
fn next_piece(owner: &dyn Pieces, range: &mut Range<u64>) -> Option<Bytes> {
    let mut start = 0_u64;
    for piece in owner.pieces() {
        let end = start + piece.len() as u64;
        if range.start < end && range.start < range.end {
            let from = usize::try_from(range.start - start).ok()?;
            let to = usize::try_from(range.end.min(end) - start).ok()?;
            range.start = range.end.min(end);
            return Some(piece.slice(from..to));
        }
        start = end;
    }
    None
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.progress.0.lock().is_stopped {
            self.source = Source::Nothing;
            return Poll::Pending;
        }
        let polled = self.poll_next(cx);
        let is_last = self.is_end_stream();
        let mut state = self.progress.0.lock();
        state.is_waiting = polled.is_pending();
        match &polled {
            Poll::Pending => state.waker = Some(cx.waker().clone()),
            Poll::Ready(None) => state.is_complete = true,
            Poll::Ready(Some(Ok(frame))) => state.is_complete = is_last || frame.is_trailers(),
            Poll::Ready(Some(Err(error))) => state.error = Some(*error),
        }
        drop(state);
        polled
    }

    fn is_end_stream(&self) -> bool {
        // A stream of unknown length is only over when it says so.
        self.remaining == Some(0) && !self.has_trailers_left()
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_to_their_range() {
        let pieces = vec![Bytes::from_static(b"abc"), Bytes::new(), Bytes::from_static(b"defg")];
        let cases: &[(Range<u64>, &str)] = &[
            (0..7, "abcdefg"),
            (1..2, "b"),
            (2..5, "cde"),
            (3..7, "defg"),
            (6..7, "g"),
            (4..4, ""),
            (6..99, "g"),
        ];
        for (range, expected) in cases {
            let mut left = range.clone();
            let mut got = Vec::new();
            while let Some(piece) = next_piece(&pieces, &mut left) {
                got.extend_from_slice(&piece);
            }
            assert_eq!(String::from_utf8(got).unwrap(), *expected, "{range:?}");
        }
    }
}
