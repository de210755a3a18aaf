//! What a coded body is decoded to, for fuzz targets alone.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use larder_http::body::BodyError;

use crate::fill::{Coding, decoded};

/// The codings that can be decoded: gzip, deflate, br, zstd.
const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

/// What came of a coded body, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedBody {
    /// All that came.
    pub content: Vec<u8>,
    /// Why it broke, where it did.
    pub error: Option<BodyError>,
}

/// Decodes content that comes in these pieces; `coding` is one of them in this order, around the end: gzip, deflate, br, zstd.
pub fn decode<'a>(coding: u8, pieces: impl IntoIterator<Item = &'a [u8]>) -> DecodedBody {
    let pieces: Vec<Bytes> = pieces.into_iter().map(Bytes::copy_from_slice).collect();
    let coding = CODINGS[usize::from(coding) % CODINGS.len()];
    let mut stream = decoded(coding, Box::pin(Coded(pieces.into_iter())));
    let mut content = Vec::new();
    loop {
        match stream.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => content.extend(frame.into_data().unwrap_or_default()),
            Poll::Ready(Some(Err(error))) => return DecodedBody { content, error: Some(error) },
            Poll::Ready(None) => return DecodedBody { content, error: None },
            Poll::Pending => unreachable!("nothing here waits"),
        }
    }
}

struct Coded(std::vec::IntoIter<Bytes>);

impl http_body::Body for Coded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.0.next().map(|bytes| Ok(Frame::data(bytes))))
    }
}
