//! DATA of the client: content of requests, within its windows (RFC 9113 6.1, 8.1.1).
//!
//! In: frames of content. Out: content for its reader, as it comes; what has no reader is passed over, and opens the window of the connection.

use bytes::{Buf as _, Bytes, BytesMut};
use larder_http::body::BodyError;

use super::connection::{Http2Connection, OpenData, Reading};
use super::flow::WindowError;
use super::frame::{END_STREAM, ErrorCode, FrameHead, HEAD_BYTES, PADDED};
use super::stream::{EndedBy, Stage};
use crate::byte_stream::ByteStream;
use crate::error::Refusal;
use crate::service::Service;

/// Pieces of content that are smaller are copied out of the buffer that they were read to.
const COPIED_BYTES_MAX: usize = 8 * 1024;

impl<T: ByteStream, S: Service> Http2Connection<'_, T, S> {
    /// A DATA frame begins.
    pub(super) fn begin_data(&mut self, read: &mut BytesMut, head: FrameHead) -> Result<bool, ErrorCode> {
        let mut padding = 0;
        let mut padding_head = 0;
        if head.has(PADDED) {
            if head.length == 0 {
                return Err(ErrorCode::FrameSize);
            }
            let Some(length) = read.get(HEAD_BYTES) else { return Ok(false) };
            (padding, padding_head) = (usize::from(*length), 1);
        }
        let left = (head.length - padding_head).checked_sub(padding).ok_or(ErrorCode::Protocol)?;
        if head.stream > self.streams.last || head.stream.is_multiple_of(2) {
            return Err(ErrorCode::Protocol);
        }
        read.advance(HEAD_BYTES + padding_head);
        let (stream, ends) = (head.stream, head.has(END_STREAM));
        let place = self.streams.find(stream);
        if place.is_none() || (left == 0 && !ends) {
            self.spend()?;
        } else {
            self.budget.content(left);
        }
        let overrun = |_: WindowError| ErrorCode::FlowControl;
        self.receive_window.received(head.length).map_err(overrun)?;
        self.receive_window.taken(padding + padding_head);
        self.reading = Reading::Content(OpenData { stream, left, padding, ends });
        let Some(place) = place else {
            return match self.streams.ended_by(stream) {
                Some(EndedBy::Larder) => Ok(true),
                Some(EndedBy::Client) | None => Err(ErrorCode::StreamClosed),
            };
        };
        let Some(found) = self.streams.at_mut(place) else { return Ok(true) };
        found.receive_window.taken(padding + padding_head);
        if found.facts.has_ended {
            self.fail_stream(place, BodyError::Framing, ErrorCode::StreamClosed)?;
        } else if found.receive_window.received(head.length).is_err() {
            self.fail_stream(place, BodyError::Framing, ErrorCode::FlowControl)?;
        } else if padding + padding_head > 0 {
            self.collect(place);
        }
        Ok(true)
    }

    /// Hands on what came of a DATA frame. False where nothing did.
    pub(super) fn take_content(&mut self, read: &mut BytesMut, open: OpenData) -> Result<bool, ErrorCode> {
        let OpenData { stream, left, padding, ends } = open;
        let length = left.min(read.len());
        if length > 0 {
            // A small piece of a large buffer would keep all of it.
            let piece = match length < COPIED_BYTES_MAX {
                true => read.copy_to_bytes(length),
                false => read.split_to(length).freeze(),
            };
            self.reading = Reading::Content(OpenData { left: left - length, ..open });
            match self.streams.find(stream) {
                Some(place) => self.give(place, piece)?,
                None => self.receive_window.taken(length),
            }
            return Ok(true);
        }
        let skipped = padding.min(read.len());
        if left > 0 || (padding > 0 && skipped == 0) {
            return Ok(false);
        }
        read.advance(skipped);
        if skipped < padding {
            self.reading = Reading::Content(OpenData { padding: padding - skipped, ..open });
            return Ok(true);
        }
        self.reading = Reading::Frame;
        if ends {
            self.end_content(stream)?;
        }
        Ok(true)
    }

    fn give(&mut self, place: usize, piece: Bytes) -> Result<(), ErrorCode> {
        let length = piece.len();
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        stream.received = stream.received.saturating_add(length as u64);
        let limits = &self.context.settings.limits;
        if limits.body_bytes_max.is_some_and(|most| stream.received > most) {
            self.receive_window.taken(length);
            return self.refuse_content(place, Refusal::BodyTooLarge, BodyError::TooLarge);
        }
        match stream.content.as_ref().map_or(Ok(false), |content| content.give(piece)) {
            Ok(true) => {}
            // Its reader is gone. The window of the stream stays as it is, so that little of it comes.
            Ok(false) => self.receive_window.taken(length),
            Err(error) => {
                self.receive_window.taken(length);
                return self.fail_stream(place, error, ErrorCode::Protocol);
            }
        }
        Ok(())
    }

    fn end_content(&mut self, id: u32) -> Result<(), ErrorCode> {
        self.note_ended(id);
        let Some(place) = self.streams.find(id) else { return Ok(()) };
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        stream.facts.has_ended = true;
        match stream.content.as_ref().map_or(Ok(()), |content| content.end(None)) {
            Ok(()) => Ok(()),
            Err(error) => self.fail_stream(place, error, ErrorCode::Protocol),
        }
    }

    /// The client has sent all of a request that was answered before.
    pub(super) fn note_ended(&mut self, id: u32) {
        if !self.unended.is_empty() {
            self.unended.retain(|other| *other != id);
        }
    }

    /// Content cannot be taken. Where the call is under way still, its client is answered.
    pub(super) fn refuse_content(
        &mut self,
        place: usize,
        refusal: Refusal,
        error: BodyError,
    ) -> Result<(), ErrorCode> {
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        if let Some(content) = &stream.content {
            content.fail(error);
        }
        if let Stage::Calling { .. } = stream.stage {
            self.refuse_stream(place, refusal);
        }
        Ok(())
    }
}
