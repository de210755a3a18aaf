//! A coded body as it was before its content coding was applied (RFC 9110 8.4.1).
//!
//! In: the fields of a response that name its coding, and the stream of its content. Out: the decoded stream, piece by piece as the
//! coded one comes. Everything is bounded: a piece has at most 64 KiB, and all of them at most a hundred times what they were
//! coded in, once they are more than a mebibyte. Content that is no content of its coding breaks the stream, and so does one
//! that ends early. Trailers come behind the content, as before.
//! Deliberately absent: encoding, and which responses are decoded at all. Each coding has a file of its own.

mod brotli;
mod coding;
mod decode;
mod deflate;
mod gzip;
mod zstd;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::Frame;
use larder_http::body::{BodyError, Stream, read_buffer};

pub(crate) use coding::{Coding, UnknownCoding, coding_of};
use decode::{Decode, DecodeProgress};

/// The most that one poll gives.
const OUTPUT_BYTES: usize = 64 * 1024;
/// As much may come of any coded content.
const ANYWAY_BYTES: u64 = 1024 * 1024;
/// Beyond that, so much of each coded byte on average.
const TIMES_MAX: u64 = 100;

/// The decoded content of `stream`.
pub(crate) fn decoded(coding: Coding, stream: Stream) -> Stream {
    Box::pin(Decoded {
        decoder: Some(coding.decoder()),
        stream,
        input: Bytes::new(),
        output: read_buffer(OUTPUT_BYTES),
        coded_bytes: 0,
        decoded_bytes: 0,
        trailers: None,
    })
}

struct Decoded {
    /// `None` when the stream has ended.
    decoder: Option<Box<dyn Decode>>,
    stream: Stream,
    input: Bytes,
    /// Written before it is copied into a piece of the right size.
    output: Vec<u8>,
    coded_bytes: u64,
    decoded_bytes: u64,
    trailers: Option<HeaderMap>,
}

impl Decoded {
    /// The next piece of what has come already; `None` where that gives none.
    fn next_piece(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Some(decoder) = &mut self.decoder else { return Ok(None) };
        loop {
            let Ok(DecodeProgress { read, written }) = decoder.decode(&self.input, &mut self.output) else {
                return Err(BodyError::Framing);
            };
            self.input.advance(read.min(self.input.len()));
            self.coded_bytes += read as u64;
            self.decoded_bytes += written as u64;
            let most = ANYWAY_BYTES.max(self.coded_bytes.saturating_mul(TIMES_MAX));
            if self.decoded_bytes > most {
                return Err(BodyError::TooLarge);
            }
            if written > 0 {
                return Ok(self.output.get(..written).map(Bytes::copy_from_slice));
            }
            if self.input.is_empty() {
                return Ok(None);
            }
            if read == 0 {
                // It has more than enough, and makes nothing of it.
                return Err(BodyError::Framing);
            }
        }
    }

    /// The coded stream has ended: what comes behind the content.
    fn end(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        let decoder = self.decoder.take()?;
        // Some servers name a coding and send nothing at all.
        if self.coded_bytes > 0 && !decoder.is_whole() {
            return Some(Err(BodyError::Framing));
        }
        self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))
    }
}

impl http_body::Body for Decoded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        while this.decoder.is_some() {
            match this.next_piece() {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {}
                Err(error) => {
                    this.decoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
            match ready!(this.stream.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.input = data,
                    Err(frame) => this.trailers = frame.into_trailers().ok(),
                },
                Some(Err(error)) => {
                    this.decoder = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(this.end()),
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests;
