//! A whole body from a stored part and the rest of it, which is arriving (RFC 9111 3.4).
//!
//! In: the part's bytes, what of the whole they are, and the origin's body for the one gap before or behind them. Out: a
//! stream of the whole, in order. An incoming body that is not exactly as long as the gap breaks it: no reader ever
//! takes a misfit for a whole.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::{Body, BodyError, Stream};
use larder_store::StoredBody;

/// The whole of `complete` bytes: `part` is all of it but `missing`, which lies before or behind and which `incoming`
/// brings.
pub(crate) fn completed(part: Arc<StoredBody>, missing: &Range<u64>, complete: u64, incoming: Body) -> Body {
    let incoming = match incoming {
        Body::Stream { stream, .. } => Incoming::Arriving(stream),
        Body::Full(bytes) => Incoming::Here(bytes),
        Body::Empty | Body::Pieces { .. } => Incoming::Over,
    };
    let whole = Completed {
        part,
        part_read: 0,
        part_first: missing.start > 0,
        incoming,
        left: missing.end - missing.start,
    };
    Body::Stream { length: Some(complete), stream: Box::pin(whole) }
}

enum Incoming {
    Arriving(Stream),
    Here(Bytes),
    Over,
}

struct Completed {
    part: Arc<StoredBody>,
    part_read: u64,
    part_first: bool,
    incoming: Incoming,
    /// Bytes of the gap that have not come.
    left: u64,
}

impl Completed {
    fn next_of_part(&mut self) -> Option<Bytes> {
        let bytes = self.part.at(self.part_read)?;
        self.part_read += bytes.len() as u64;
        Some(bytes)
    }

    /// The next bytes of the gap, or `None` when it is filled.
    fn poll_gap(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            let bytes = match &mut self.incoming {
                Incoming::Arriving(stream) => match ready!(stream.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => {
                        self.incoming = Incoming::Over;
                        continue;
                    }
                },
                Incoming::Here(bytes) => {
                    let bytes = std::mem::take(bytes);
                    self.incoming = Incoming::Over;
                    bytes
                }
                // It ended as its own framing said: what it said of itself is wrong.
                Incoming::Over if self.left > 0 => return Poll::Ready(Some(Err(BodyError::Framing))),
                Incoming::Over => return Poll::Ready(None),
            };
            if bytes.len() as u64 > self.left {
                return Poll::Ready(Some(Err(BodyError::Framing)));
            }
            self.left -= bytes.len() as u64;
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(bytes)));
            }
        }
    }
}

impl http_body::Body for Completed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.part_first
            && let Some(bytes) = self.next_of_part()
        {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Some(next) = ready!(self.poll_gap(cx)) {
            return Poll::Ready(Some(next.map(Frame::data)));
        }
        Poll::Ready(self.next_of_part().map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use larder_store::{MemoryStoreSettings, Store};

    use super::*;

    struct Script(Vec<Result<Bytes, BodyError>>);

    impl http_body::Body for Script {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            let next = if self.0.is_empty() { None } else { Some(self.0.remove(0)) };
            Poll::Ready(next.map(|next| next.map(Frame::data)))
        }
    }

    fn check(
        part: &[&'static str],
        missing: Range<u64>,
        incoming: &[&'static str],
        expected: Result<&str, BodyError>,
    ) {
        let store = Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 });
        let pieces: Vec<Bytes> = part.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let Some(room) = store.reserve(64) else { panic!("no room") };
        let part = Arc::new(StoredBody::new(pieces, room));
        let complete = part.length() + (missing.end - missing.start);
        let script = Script(incoming.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect());
        let body =
            completed(part, &missing, complete, Body::Stream { length: None, stream: Box::pin(script) });
        assert_eq!(body.length(), Some(complete));
        let Body::Stream { mut stream, .. } = body else { panic!("not a stream") };
        let mut found = Vec::new();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let end = loop {
            match stream.as_mut().poll_frame(&mut cx) {
                Poll::Ready(Some(Ok(frame))) => found.extend(frame.into_data().unwrap_or_default()),
                Poll::Ready(Some(Err(error))) => break Err(error),
                Poll::Ready(None) => break Ok(()),
                Poll::Pending => panic!("nothing here waits"),
            }
        };
        let found = String::from_utf8_lossy(&found).into_owned();
        assert_eq!(end.map(|()| found.as_str()), expected, "{missing:?} {incoming:?}");
    }

    #[test]
    fn the_rest_comes_before_or_behind_and_has_to_fit() {
        check(&["01", "234"], 5..10, &["56", "", "789"], Ok("0123456789"));
        check(&["01", "234"], 0..3, &["abc"], Ok("abc01234"));
        check(&["01234"], 5..10, &["5678"], Err(BodyError::Framing));
        check(&["01234"], 5..10, &["56789", "x"], Err(BodyError::Framing));
        check(&["01234"], 0..2, &[], Err(BodyError::Framing));
    }
}
