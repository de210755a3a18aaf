//! A request's content on its way into a stream, as fast as the peer's windows allow (RFC 9113 5.2).
//!
//! No more than the windows allow is ever handed to `h2`. Content that breaks resets the stream: an end would make it
//! whole in the origin's eyes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body as _;
use tokio::time::Instant;

use crate::abort::AbortOnDrop;
use crate::upload::{Upload, UploadProgress};

/// How much is handed to `h2` at once.
const PIECE_BYTES: usize = 32 * 1024;

/// An upload that goes on beside the response. Dropped, it stops, and with it the stream where its content has not ended.
pub(crate) struct Uploading {
    task: AbortOnDrop,
    progress: Arc<UploadProgress>,
}

impl Uploading {
    /// Sends the rest. A task of its own, because a reader that pauses the response must not pause the request.
    pub(super) fn start(mut sending: Sending, progress: Arc<UploadProgress>) -> Self {
        let task = tokio::spawn(async move { poll_fn(|cx| sending.poll(cx)).await });
        Self { task: AbortOnDrop(task.abort_handle()), progress }
    }

    /// Whether all of it was sent.
    pub(crate) fn is_complete(&self) -> bool {
        self.task.0.is_finished() && self.progress.is_complete()
    }
}

/// What is being sent.
pub(super) struct Sending {
    stream: SendStream<Bytes>,
    upload: Option<Upload>,
    /// Taken from the upload and not yet handed over.
    piece: Bytes,
    /// Whether anything was taken from the upload, so that it is not whole any more.
    is_begun: bool,
    is_complete: bool,
    last_write: Instant,
}

impl Sending {
    /// The head has been sent; without content, the end of the stream as well.
    pub(super) fn new(stream: SendStream<Bytes>, upload: Upload) -> Self {
        let is_complete = upload.is_nothing();
        Self {
            stream,
            upload: Some(upload),
            piece: Bytes::new(),
            is_begun: false,
            is_complete,
            last_write: Instant::now(),
        }
    }

    /// Whether everything, the end included, was handed over.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// When something was last handed over. It may wait in a buffer for the socket, but only a small one.
    pub(super) fn last_write(&self) -> Instant {
        self.last_write
    }

    /// The content, where nothing was taken from it.
    pub(super) fn into_untouched(self) -> Option<Upload> {
        self.upload.filter(|_| !self.is_begun)
    }

    /// Sends no more, although the stream goes on: its answer came first. What was asked for of the windows is given
    /// back; `h2` would keep it for this stream, and other uploads on the connection would wait for it.
    pub(super) fn stop(mut self) {
        self.stream.reserve_capacity(0);
    }

    /// Sends what can be sent now. Ready when there is nothing more to do: it is complete, it broke (the upload's
    /// progress says how), or the peer wants no more of it. Not to be polled after that.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_complete {
            return Poll::Ready(());
        }
        loop {
            if !self.piece.is_empty() {
                match self.poll_piece(cx) {
                    Poll::Ready(true) => continue,
                    Poll::Ready(false) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let Some(upload) = &mut self.upload else {
                return Poll::Ready(());
            };
            let polled = Pin::new(upload).poll_frame(cx);
            self.is_begun |= polled.is_ready();
            match polled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.piece = data,
                    Err(frame) => {
                        self.upload = None;
                        let trailers = frame.into_trailers().unwrap_or_default();
                        self.is_complete = self.stream.send_trailers(trailers).is_ok();
                        return Poll::Ready(());
                    }
                },
                Poll::Ready(Some(Err(_))) => {
                    self.upload = None;
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(());
                }
                Poll::Ready(None) => {
                    self.upload = None;
                    self.hand_over(Bytes::new(), true);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Hands over what the windows allow of the piece. False where the peer takes no more.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.stream.reserve_capacity(self.piece.len().min(PIECE_BYTES));
        let mut room = self.stream.capacity();
        if room == 0 {
            room = match self.stream.poll_capacity(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(room))) => room,
                // A reset, of which the response tells more, or an answer that needs no more content.
                Poll::Ready(Some(Err(_)) | None) => {
                    self.upload = None;
                    return Poll::Ready(false);
                }
            };
        }
        let part = self.piece.split_to(room.min(self.piece.len()));
        let is_last =
            self.piece.is_empty() && self.upload.as_ref().is_none_or(|upload| upload.is_end_stream());
        Poll::Ready(self.hand_over(part, is_last) && !is_last)
    }

    fn hand_over(&mut self, bytes: Bytes, is_last: bool) -> bool {
        let is_taken = self.stream.send_data(bytes, is_last).is_ok();
        if is_taken {
            self.last_write = Instant::now();
            self.is_complete = is_last;
        } else {
            self.upload = None;
        }
        is_taken
    }
}
