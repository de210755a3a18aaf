//! The content of one request on its way from the connection to whoever reads it.
//!
//! The connection's task reads and decodes; the reader may live in another task. Between them is a pipe of one frame:
//! bytes are read from the socket only after the reader has asked. So a slow origin slows the client down and nothing
//! piles up, but for the few bytes that show that the client has left. A reader that goes away leaves content that
//! nobody wants, which is thrown away within bounds.
//!
//! ```text
//! reader polls -> wanted -> connection reads, decodes, fills the slot -> reader takes it -> ...
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use larder_http::body::{Body, BodyError};
use larder_http::framing::{Chunked, Decoded, Framing, FramingError};
use parking_lot::Mutex;

use crate::timer::Pace;

/// The connection's end.
#[derive(Debug)]
pub(super) struct Incoming {
    left: Left,
    pipe: Option<Writer>,
    /// The client waits for `100 Continue` before it sends anything.
    pub(super) awaits_continue: bool,
    /// Content bytes decoded so far.
    pub(super) received: u64,
    /// Content bytes thrown away so far.
    pub(super) discarded: u64,
    /// The limit on a client that is waited for.
    pub(super) pace: Option<Box<Pace>>,
}

#[derive(Debug)]
enum Left {
    Nothing,
    Length(u64),
    Chunked(Chunked),
    /// It ended before its end: nothing more is read, ever.
    Broken,
}

/// Whether somebody waits for content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// A reader waits.
    Wanted,
    /// There is a reader, busy elsewhere. The task is woken when it wants more, or goes.
    Later,
    /// Nobody will ever read it.
    Nobody,
}

impl Incoming {
    /// The content that `framing` announces, and the body that its reader gets.
    pub(super) fn new(framing: Framing, expects_continue: bool) -> (Self, Body) {
        let (left, length) = match framing {
            Framing::None | Framing::Length(0) => (Left::Nothing, Some(0)),
            Framing::Length(length) => (Left::Length(length), Some(length)),
            Framing::Chunked => (Left::Chunked(Chunked::default()), None),
        };
        let mut incoming = Self {
            awaits_continue: expects_continue && length != Some(0),
            left,
            pipe: None,
            received: 0,
            discarded: 0,
            pace: None,
        };
        if length == Some(0) {
            return (incoming, Body::Empty);
        }
        let pipe = Arc::new(Mutex::new(Slot::default()));
        incoming.pipe = Some(Writer(pipe.clone()));
        (incoming, Body::Stream { length, stream: Box::pin(Reader { pipe, left: length }) })
    }

    /// Whether all of it has been taken from the connection, so that the next message may follow.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.left, Left::Nothing)
    }

    /// How much of it has not been taken from the connection yet, where that is known.
    pub(super) fn missing(&self) -> Option<u64> {
        match self.left {
            Left::Length(left) => Some(left),
            Left::Nothing | Left::Chunked(_) | Left::Broken => None,
        }
    }

    /// Whether it broke.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.left, Left::Broken)
    }

    pub(super) fn demand(&self, cx: &Context<'_>) -> Demand {
        let Some(writer) = &self.pipe else {
            return Demand::Nobody;
        };
        let mut slot = writer.0.lock();
        if slot.reader_gone {
            return Demand::Nobody;
        }
        if slot.wanted && slot.frame.is_none() {
            return Demand::Wanted;
        }
        if !slot.writer.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            slot.writer = Some(cx.waker().clone());
        }
        Demand::Later
    }

    /// Whether no reader is left.
    pub(super) fn is_unread(&self) -> bool {
        self.pipe.as_ref().is_none_or(|writer| writer.0.lock().reader_gone)
    }

    /// Takes the next content from `buffer`.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, FramingError> {
        let decoded = match &mut self.left {
            Left::Nothing => Decoded::End,
            Left::Broken => Decoded::NeedMore,
            Left::Length(_) if buffer.is_empty() => Decoded::NeedMore,
            Left::Length(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *left -= take as u64;
                if *left == 0 {
                    self.left = Left::Nothing;
                }
                Decoded::Data(buffer.split_to(take).freeze())
            }
            Left::Chunked(decoder) => {
                let decoded = decoder.decode(buffer)?;
                if decoded == Decoded::End {
                    let trailers = decoder.take_trailers();
                    if let Some(writer) = self.pipe.as_ref().filter(|_| trailers.is_some()) {
                        writer.0.lock().trailers = trailers;
                    }
                    self.left = Left::Nothing;
                }
                decoded
            }
        };
        if let Decoded::Data(bytes) = &decoded {
            self.received = self.received.saturating_add(bytes.len() as u64);
        }
        Ok(decoded)
    }

    /// Hands `bytes` to the reader, or throws them away where there is none.
    pub(super) fn give(&mut self, bytes: Bytes) {
        let length = bytes.len() as u64;
        let is_last = self.is_complete();
        match &self.pipe {
            Some(writer) if writer.give(bytes, is_last) => {}
            _ => self.discarded = self.discarded.saturating_add(length),
        }
    }

    /// Tells the reader that the end was reached.
    pub(super) fn finish(&mut self) {
        if let Some(writer) = &self.pipe {
            writer.end(None);
        }
    }

    /// Gives up: the reader learns why, and nothing more is read.
    pub(super) fn fail(&mut self, error: BodyError) {
        self.left = Left::Broken;
        if let Some(writer) = &self.pipe {
            writer.end(Some(error));
        }
    }

    /// Throws away unread content as far as it lies in `buffer` already.
    #[inline]
    pub(super) fn discard_buffered(&mut self, buffer: &mut BytesMut) {
        if !self.is_complete() {
            self.discard_incomplete(buffer);
        }
    }

    #[inline(never)]
    fn discard_incomplete(&mut self, buffer: &mut BytesMut) {
        while !self.is_complete() && self.is_unread() {
            match self.decode(buffer) {
                Ok(Decoded::Data(bytes)) => self.give(bytes),
                Ok(Decoded::NeedMore | Decoded::End) => return,
                Err(_) => return self.fail(BodyError::Framing),
            }
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    frame: Option<Result<Bytes, BodyError>>,
    /// What the reader gets behind the last of the content.
    trailers: Option<HeaderMap>,
    ended: bool,
    wanted: bool,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Ends the pipe when dropped: a reader that had not reached the end learns that the rest will never come.
#[derive(Debug)]
struct Writer(Arc<Mutex<Slot>>);

impl Writer {
    /// False where nobody reads any more.
    fn give(&self, bytes: Bytes, is_last: bool) -> bool {
        let waker = {
            let mut slot = self.0.lock();
            if slot.reader_gone {
                return false;
            }
            slot.frame = Some(Ok(bytes));
            slot.wanted = false;
            slot.ended |= is_last;
            slot.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    fn end(&self, error: Option<BodyError>) {
        let waker = {
            let mut slot = self.0.lock();
            if slot.ended {
                return;
            }
            slot.ended = true;
            if let Some(error) = error {
                slot.frame = Some(Err(error));
            }
            slot.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end(Some(BodyError::Cut));
    }
}

/// The reader's end: a body.
#[derive(Debug)]
struct Reader {
    pipe: Arc<Mutex<Slot>>,
    left: Option<u64>,
}

impl http_body::Body for Reader {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let writer = {
            let mut slot = self.pipe.lock();
            if let Some(frame) = slot.frame.take() {
                drop(slot);
                if let (Ok(bytes), Some(left)) = (&frame, &mut self.left) {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                return Poll::Ready(Some(frame.map(Frame::data)));
            }
            if slot.ended {
                return Poll::Ready(slot.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            slot.wanted = true;
            slot.reader = Some(cx.waker().clone());
            slot.writer.take()
        };
        if let Some(waker) = writer {
            waker.wake();
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let slot = self.pipe.lock();
        slot.ended && slot.frame.is_none() && slot.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let writer = {
            let mut slot = self.pipe.lock();
            slot.reader_gone = true;
            slot.frame = None;
            slot.writer.take()
        };
        if let Some(waker) = writer {
            waker.wake();
        }
    }
}
