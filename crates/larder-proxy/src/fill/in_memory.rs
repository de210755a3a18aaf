//! A body that is in memory, as a stream.
//!
//! In: a body of any kind. Out: its pieces, each as it lies there. What is in memory stays counted until the stream is dropped.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::{Body, BodyError, Pieces, Stream};

/// The stream that it is, or one of what is in memory.
pub(crate) fn as_stream(body: Body) -> Stream {
    let (owner, range): (Arc<dyn Pieces>, _) = match body {
        Body::Stream { stream, .. } => return stream,
        Body::Empty => (Arc::new(Vec::new()), 0..0),
        Body::Full(bytes) => {
            let range = 0..bytes.len() as u64;
            (Arc::new(vec![bytes]), range)
        }
        Body::Pieces { owner, range } => (owner, range),
    };
    Box::pin(InMemory { owner, range, next: 0, start: 0 })
}

struct InMemory {
    owner: Arc<dyn Pieces>,
    range: Range<u64>,
    /// The piece that is looked at next, and where it begins.
    next: usize,
    start: u64,
}

impl InMemory {
    /// What of the next piece lies within the range.
    fn next_piece(&mut self) -> Option<Bytes> {
        while self.start < self.range.end {
            let piece = self.owner.pieces().get(self.next)?;
            let (start, end) = (self.start, self.start + piece.len() as u64);
            (self.next, self.start) = (self.next + 1, end);
            let (first, last) = (self.range.start.max(start), self.range.end.min(end));
            let at = |position: u64| usize::try_from(position - start).ok();
            if first < last {
                return Some(piece.slice(at(first)?..at(last)?));
            }
        }
        None
    }
}

impl http_body::Body for InMemory {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.next_piece().map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::read;
    use super::*;

    fn check(pieces: &[&'static str], range: Range<u64>, expected: &str) {
        let pieces: Vec<Bytes> = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        let body = Body::Pieces { owner: Arc::new(pieces), range };
        assert_eq!(read(as_stream(body)), (expected.as_bytes().to_vec(), Ok(None)));
    }

    #[test]
    fn a_range_of_pieces_is_what_lies_within_it() {
        check(&["01", "", "234", "5"], 0..6, "012345");
        check(&["01", "", "234", "5"], 1..4, "123");
        check(&["01", "234"], 2..5, "234");
        check(&["01", "234"], 3..3, "");
        assert_eq!(read(as_stream(Body::from("ab"))), (b"ab".to_vec(), Ok(None)));
        assert_eq!(read(as_stream(Body::Empty)), (Vec::new(), Ok(None)));
    }
}
