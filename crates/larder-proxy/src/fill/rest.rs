//! What is missing of a body that lies on disks in part, from the origin, one gap after the other (RFC 9111 3.4).
//!
//! In: the gaps, the origin's answer for the first, and a way to ask for the others. Out: a stream of the missing bytes, in
//! order. An answer that is not exactly the gap that was asked for breaks it, and so does one of another representation: no
//! reader ever takes a misfit for the whole. The next gap is asked for when the one before has come.
//! An origin that answers a request for a gap with the whole of the same representation is as good: [`without`] leaves out
//! what is there.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_cache::part::Gap;
use larder_http::body::{Body, BodyError, Stream};

/// An answer for one gap.
type Asked = Pin<Box<dyn Future<Output = Result<Body, BodyError>> + Send>>;

/// Asks for the gap of a number; fails with [`BodyError::Framing`] where what comes is something else.
pub(crate) type AskAgain = Box<dyn FnMut(usize) -> Asked + Send>;

enum Incoming {
    Asking(Asked),
    Arriving(Stream),
    Here(Bytes),
}

impl Incoming {
    fn of(body: Body) -> Self {
        match body {
            Body::Stream { stream, .. } => Self::Arriving(stream),
            Body::Full(bytes) => Self::Here(bytes),
            Body::Empty | Body::Pieces { .. } => Self::Here(Bytes::new()),
        }
    }

    /// The next bytes; `None` where there are no more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            match self {
                Self::Asking(asked) => match ready!(asked.as_mut().poll(cx)) {
                    Ok(body) => *self = Self::of(body),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                Self::Arriving(stream) => match ready!(stream.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        if let Ok(bytes) = frame.into_data()
                            && !bytes.is_empty()
                        {
                            return Poll::Ready(Some(Ok(bytes)));
                        }
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => *self = Self::Here(Bytes::new()),
                },
                Self::Here(bytes) if bytes.is_empty() => return Poll::Ready(None),
                Self::Here(bytes) => return Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            }
        }
    }
}

/// The missing bytes of a body.
pub(crate) struct Rest {
    gap: Gap,
    /// Which gap is filled now.
    number: usize,
    /// Bytes of it that have not come.
    left: u64,
    incoming: Incoming,
    ask: AskAgain,
}

impl Rest {
    /// The first gap is filled by `first`; for the others `ask` is called.
    pub(crate) fn new(gap: Gap, first: Body, ask: AskAgain) -> Self {
        let left = gap.missing.first().map_or(0, length);
        Self { gap, number: 0, left, incoming: Incoming::of(first), ask }
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl http_body::Body for Rest {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            match ready!(this.incoming.poll_next(cx)) {
                Some(Ok(bytes)) if bytes.len() as u64 > this.left => {
                    return Poll::Ready(Some(Err(BodyError::Framing)));
                }
                Some(Ok(bytes)) => {
                    this.left -= bytes.len() as u64;
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                // It ended as its own framing said: what it said of itself is wrong.
                None if this.left > 0 => return Poll::Ready(Some(Err(BodyError::Framing))),
                None => {
                    let Some(next) = this.gap.missing.get(this.number + 1) else { return Poll::Ready(None) };
                    this.number += 1;
                    this.left = length(next);
                    this.incoming = Incoming::Asking((this.ask)(this.number));
                }
            }
        }
    }
}

/// The missing bytes of a body, from all of it.
pub(crate) fn without(gap: Gap, whole: Body) -> impl http_body::Body<Data = Bytes, Error = BodyError> + Send {
    Without { gap, number: 0, position: 0, incoming: Incoming::of(whole) }
}

struct Without {
    gap: Gap,
    /// Which gap is next, or being filled.
    number: usize,
    position: u64,
    incoming: Incoming,
}

impl Without {
    /// What of these bytes, which come next, is missing: the front of them, and whether something of them is left.
    fn missing(&mut self, bytes: &mut Bytes) -> Option<Bytes> {
        let gap = self.gap.missing.get(self.number)?;
        let held = gap.start.saturating_sub(self.position).min(bytes.len() as u64);
        let _ = bytes.split_to(usize::try_from(held).unwrap_or(bytes.len()));
        self.position += held;
        let taken = gap.end.saturating_sub(self.position).min(bytes.len() as u64);
        let taken = bytes.split_to(usize::try_from(taken).unwrap_or(bytes.len()));
        self.position += taken.len() as u64;
        self.number += usize::from(self.position == gap.end);
        Some(taken)
    }
}

impl http_body::Body for Without {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            let mut bytes = match ready!(this.incoming.poll_next(cx)) {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let is_whole = this.position == this.gap.complete;
                    return Poll::Ready((!is_whole).then_some(Err(BodyError::Framing)));
                }
            };
            let mut out = Vec::new();
            while !bytes.is_empty() {
                match this.missing(&mut bytes) {
                    Some(taken) => out.extend_from_slice(&taken),
                    // Behind the last gap.
                    None => {
                        this.position += bytes.len() as u64;
                        bytes.clear();
                    }
                }
            }
            if this.position > this.gap.complete {
                return Poll::Ready(Some(Err(BodyError::Framing)));
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }
}

#[cfg(test)]
mod tests;
