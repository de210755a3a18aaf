//! Streams that follow a script, and what is read of a stream, for the tests of adaptors.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use larder_http::body::{BodyError, Stream};

/// Its frames, one a poll, and then the end.
pub(super) struct Script(std::vec::IntoIter<Result<Frame<Bytes>, BodyError>>);

/// A stream of these frames.
pub(super) fn frames(frames: Vec<Result<Frame<Bytes>, BodyError>>) -> Stream {
    Box::pin(Script(frames.into_iter()))
}

/// A stream of `content` in pieces of so many bytes.
pub(super) fn pieces(content: &[u8], bytes: usize) -> Stream {
    let frame = |piece: &[u8]| Ok(Frame::data(Bytes::copy_from_slice(piece)));
    frames(content.chunks(bytes.max(1)).map(frame).collect())
}

impl http_body::Body for Script {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.0.next())
    }
}

/// The next frame of a stream that never waits.
pub(super) fn next(stream: &mut Stream) -> Option<Result<Frame<Bytes>, BodyError>> {
    match stream.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// The data of a stream that never waits, and how it ends: with trailers or none, or broken.
pub(super) fn read(mut stream: Stream) -> (Vec<u8>, Result<Option<HeaderMap>, BodyError>) {
    let (mut content, mut trailers) = (Vec::new(), None);
    loop {
        match next(&mut stream).map(|frame| frame.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => content.extend_from_slice(&data),
            Some(Ok(Err(frame))) => trailers = frame.into_trailers().ok(),
            Some(Err(error)) => return (content, Err(error)),
            None => return (content, Ok(trailers)),
        }
    }
}
