//! Frames on their way to the client.
//!
//! In: control frames, field blocks, content. Out: octets in the crate's outbox, within what the client has announced, and how many of them are written.
//! Deliberately absent: which stream has its turn, and what becomes of it.

use std::task::{Context, Poll};

use super::flow::SendWindow;
use super::flow::WINDOW_DEFAULT;
use super::frame::{
    self, CONTINUATION, DATA, END_HEADERS, END_STREAM, ErrorCode, FrameHead, HEAD_BYTES, HEADERS,
    PAYLOAD_MAX, RST_STREAM,
};
use super::hpack::encode::{Block, Encoder};
use super::outgoing::{ContentEnd, OutgoingContent};
use super::settings::{self, ClientSettings};
use super::stream::StreamFacts;
use crate::byte_stream::ByteStream;
use crate::outbox::Outbox;
use crate::settings::Limits;

/// Content of one frame. With its head it fills a record of TLS.
const DATA_MAX: usize = PAYLOAD_MAX - HEAD_BYTES;
/// Content that is queued before something is written.
const CONTENT_QUEUED_MAX: usize = 128 * 1024;
/// With so much waiting to be written, nothing more is read: an answer's head costs memory too.
const QUEUED_MAX: usize = 256 * 1024;
/// The same for acknowledgements and resets alone, which cost their sender nothing.
const CONTROL_QUEUED_MAX: usize = 16 * 1024;

/// The client is gone.
#[derive(Debug)]
pub(super) struct ClientGone;

/// See the head of the file.
pub(super) struct FrameQueue {
    out: Outbox,
    pub(super) encoder: Encoder,
    /// What the client has announced.
    pub(super) client: ClientSettings,
    /// What the connection may be sent.
    pub(super) window: SendWindow,
    /// Bytes written in all.
    written: u64,
    control_bytes: usize,
    /// Where the last of them ends.
    control_end: u64,
}

impl FrameQueue {
    /// A queue that begins with larder's own SETTINGS.
    pub(super) fn new(limits: &Limits) -> Self {
        let mut out = Outbox::default();
        out.inline(|out| settings::write_own(out, limits));
        Self {
            out,
            encoder: Encoder::default(),
            client: ClientSettings::default(),
            window: SendWindow::new(WINDOW_DEFAULT),
            written: 0,
            control_bytes: 0,
            control_end: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Whether content may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.out.has_room(CONTENT_QUEUED_MAX)
    }

    /// Whether so much waits that nothing more is to be read.
    pub(super) fn is_crowded(&self) -> bool {
        self.out.queued_bytes() > QUEUED_MAX || self.control_bytes > CONTROL_QUEUED_MAX
    }

    /// Bytes written in all.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Where the queue ends, in bytes of the connection.
    pub(super) fn end(&self) -> u64 {
        self.written + self.out.queued_bytes() as u64
    }

    /// Queues a frame that its client has caused, and that it does not pay for.
    pub(super) fn control(&mut self, head: (u8, u8, u32), payload: &[u8]) {
        self.frame(head, payload);
        self.control_bytes += HEAD_BYTES + payload.len();
        self.control_end = self.end();
    }

    pub(super) fn reset(&mut self, id: u32, code: ErrorCode) {
        self.control((RST_STREAM, 0, id), &(code as u32).to_be_bytes());
    }

    /// Queues a frame.
    pub(super) fn frame(&mut self, head: (u8, u8, u32), payload: &[u8]) {
        self.out.inline(|out| frame::write(out, head, payload));
    }

    /// Queues a field block, in as many frames as its client's limit asks for.
    pub(super) fn block(&mut self, id: u32, ends: bool, write: impl FnOnce(&mut Block<'_>)) {
        let payload_max = self.client.payload_max;
        let encoder = &mut self.encoder;
        let end = if ends { END_STREAM } else { 0 };
        self.out.inline(|out| {
            let start = out.len();
            let first = start + HEAD_BYTES;
            out.extend_from_slice(&[0; HEAD_BYTES]);
            write(&mut encoder.begin(out));
            let length = out.len() - first;
            let whole = if length <= payload_max { END_HEADERS } else { 0 };
            let head =
                FrameHead { length: length.min(payload_max), kind: HEADERS, flags: end | whole, stream: id };
            if let Some(place) = out.get_mut(start..first) {
                place.copy_from_slice(&head.octets());
            }
            if length > payload_max {
                let rest = out.split_off(first + payload_max);
                let mut pieces = rest.chunks(payload_max).peekable();
                while let Some(piece) = pieces.next() {
                    let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
                    frame::write(out, (CONTINUATION, flags, id), piece);
                }
            }
        });
    }

    /// How long the next frame of a stream's content may be.
    pub(super) fn data_room(&self, stream: &StreamFacts) -> usize {
        self.window.room().min(stream.window.room()).min(DATA_MAX).min(self.client.payload_max)
    }

    /// Queues a frame of content, and tells how long it is, and how the content is over with it.
    pub(super) fn data(
        &mut self,
        stream: &mut StreamFacts,
        content: &mut OutgoingContent,
    ) -> (usize, Option<ContentEnd>) {
        let piece = content.take(self.data_room(stream));
        let length = piece.len();
        let end = content.take_end();
        let flags = if matches!(end, Some(ContentEnd::Whole(None))) { END_STREAM } else { 0 };
        let head = FrameHead { length, kind: DATA, flags, stream: stream.id };
        self.out.inline(|out| out.extend_from_slice(&head.octets()));
        self.out.content(piece);
        self.window.sent(length);
        stream.window.sent(length);
        (length, end)
    }

    /// Writes what is queued, as far as the client takes it, and gives how much each write took to `took`. True where all of it is written.
    pub(super) fn write<T: ByteStream>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut T,
        mut took: impl FnMut(u64),
    ) -> Result<bool, ClientGone> {
        while !self.out.is_empty() {
            match self.out.poll_write(cx, io) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(written)) if written.bytes > 0 => {
                    self.written += written.bytes as u64;
                    if self.written >= self.control_end {
                        self.control_bytes = 0;
                    }
                    took(written.bytes as u64);
                }
                Poll::Ready(_) => return Err(ClientGone),
            }
        }
        Ok(true)
    }
}
