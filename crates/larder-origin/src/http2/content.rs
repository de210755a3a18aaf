//! The content of a response as it comes in a stream.
//!
//! `h2` holds DATA against Content-Length and resets a stream that has more or less of it (RFC 9113 8.1.1). The last
//! bytes of an announced length still wait here for the end of the stream, so that content that goes on behind its
//! length was never seen whole by anybody. The window opens again as the reader reads. Trailers come last, and
//! dropping this before the end resets the stream.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use larder_http::body::BodyError;

pub(crate) struct Content {
    /// Gone once the content has ended.
    receive: Option<RecvStream>,
    /// What was announced and not yet handed over.
    left: Option<u64>,
    /// The last bytes of the announced length, while the stream has not ended.
    last: Option<Bytes>,
    /// All data has been handed over, and only trailers may follow.
    at_trailers: bool,
}

impl Content {
    /// Content under a head with `fields`; none of it where the head says so by its nature (HEAD, 204, 304).
    pub(super) fn new(receive: RecvStream, fields: &HeaderMap, may_have_content: bool) -> Self {
        if !may_have_content || receive.is_end_stream() {
            return Self { receive: None, left: Some(0), last: None, at_trailers: false };
        }
        // `h2` has compared several and refused what is no number; the checks of the head come on top.
        let left = fields.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { receive: Some(receive), left, last: None, at_trailers: false }
    }

    /// What is still to come, where it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.left
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.receive.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    /// The next bytes, or the trailers behind them; `None` only where the stream ended as its framing promised.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let Some(receive) = &mut self.receive else {
                return Poll::Ready(None);
            };
            if self.at_trailers {
                let trailers = ready!(receive.poll_trailers(cx));
                self.receive = None;
                return Poll::Ready(match trailers {
                    Ok(fields) => fields.map(|fields| Ok(Frame::trailers(fields))),
                    Err(error) => Some(Err(body_error(&error))),
                });
            }
            match receive.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(bytes))) => {
                    // It fails only for a stream that is gone, which the next poll tells.
                    let _ = receive.flow_control().release_capacity(bytes.len());
                    if bytes.is_empty() {
                        continue;
                    }
                    if self.left == Some(bytes.len() as u64) && !receive.is_end_stream() {
                        self.last = Some(bytes);
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(self.hand_over(bytes)))));
                }
                Poll::Ready(Some(Err(error))) => {
                    self.receive = None;
                    self.last = None;
                    return Poll::Ready(Some(Err(body_error(&error))));
                }
                Poll::Ready(None) => {
                    self.at_trailers = true;
                    if let Some(last) = self.last.take() {
                        return Poll::Ready(Some(Ok(Frame::data(self.hand_over(last)))));
                    }
                }
            }
        }
    }

    fn hand_over(&mut self, bytes: Bytes) -> Bytes {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        bytes
    }
}

/// Tells a cut from broken framing: what `h2` itself refused of this stream is the latter. Where it ended the whole
/// connection, this stream need not be the reason.
fn body_error(error: &h2::Error) -> BodyError {
    if error.is_library() && error.is_reset() { BodyError::Framing } else { BodyError::Cut }
}
