//! What a request carries beside its head; of a QUERY the content, which belongs to its key and so has to be here before anything is looked up.
//!
//! In: a request's body and a bound. Out: all of it; or, where it is longer, a body that says the same again, for a
//! request that is passed on. How long a client may take is the listener's affair.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use http_body::Frame;
use larder_http::body::{Body, BodyError, Stream};

/// What a request carries beside its head.
pub(super) struct Inside {
    pub(super) body: Body,
    pub(super) websocket: bool,
    /// The trailers that are announced for the body.
    pub(super) announced: Option<Box<HeaderValue>>,
}

/// What was read.
#[derive(Debug)]
pub(super) enum Taken {
    /// The whole content.
    All(Bytes),
    /// More than the bound: what was read, followed by the rest.
    TooLong(Body),
}

/// Reads the content, up to `most` bytes. Trailers are dropped.
///
/// # Errors
/// The client's content broke off.
///
/// # Cancel safety
/// What was read is lost, and with it the request.
pub(super) async fn take(body: Body, most: usize) -> Result<Taken, BodyError> {
    let (length, mut stream) = match body {
        Body::Stream { length, stream } => (length, stream),
        Body::Full(bytes) => return Ok(Taken::All(bytes)),
        Body::Empty | Body::Pieces { .. } => return Ok(Taken::All(Bytes::new())),
    };
    let mut read = BytesMut::new();
    loop {
        if read.len() > most || length.is_some_and(|length| length > most as u64) {
            let again = Again { read: read.freeze(), rest: stream };
            return Ok(Taken::TooLong(Body::Stream { length, stream: Box::pin(again) }));
        }
        let Some(frame) = std::future::poll_fn(|cx| stream.as_mut().poll_frame(cx)).await else { break };
        if let Ok(data) = frame?.into_data() {
            read.extend_from_slice(&data);
        }
    }
    Ok(Taken::All(read.freeze()))
}

/// What was read already, then the rest.
struct Again {
    read: Bytes,
    rest: Stream,
}

impl http_body::Body for Again {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match std::mem::take(&mut self.read) {
            read if read.is_empty() => self.rest.as_mut().poll_frame(cx),
            read => Poll::Ready(Some(Ok(Frame::data(read)))),
        }
    }
}
