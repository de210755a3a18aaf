//! The client's frames, in their order (RFC 9113 4, 6), and field blocks of requests and trailers.
//!
//! In: bytes as they were read. Out: requests handed to the service, trailers to their reader; `request_data` has the frames of content, `control` those
//! that carry none. Of all but content the whole frame is waited for, and the whole block, within `head_time`. An error of a stream resets
//! it; a returned error ends the connection.

use std::task::Context;

use bytes::{Buf as _, BytesMut};
use larder_http::body::BodyError;

use super::budget::Exhausted;
use super::connection::{Http2Connection, Leaving, OpenBlock, Reading, TurnCount};
use super::frame::{
    self, ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ErrorCode, FrameHead, GOAWAY, HEAD_BYTES,
    HEADERS, PAYLOAD_MAX, PING, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use super::hpack::decode::{DecodeError, DecodedField, HeadLimits};
use super::request_head::{HeadBuilder, HeadContext, NoRequest, TrailerBuilder};
use super::stream::EndedBy;
use crate::byte_stream::ByteStream;
use crate::detect::PREFACE;
use crate::service::Service;

/// CONTINUATION frames of one block (CVE-2024-27316).
const CONTINUATIONS_MAX: usize = 8;
/// A block may be so many times as long as the head that it stands for, and is refused with an answer up to there.
const BLOCK_EXCESS: usize = 4;
/// The heads of all open streams together, in heads of the largest size.
const HEADS_MAX: usize = 32;
/// Fields that every request has beside those that its limit counts.
const PSEUDO_FIELDS: usize = 4;

impl<T: ByteStream, S: Service> Http2Connection<'_, T, S> {
    /// Does what the frames say that were read, as far as the turn goes.
    ///
    /// # Errors
    /// The connection is to end with this code.
    pub(super) fn take_frames(
        &mut self,
        cx: &mut Context<'_>,
        turn: &mut TurnCount,
    ) -> Result<(), ErrorCode> {
        let mut read = std::mem::take(&mut self.read);
        let mut taken = Ok(true);
        while let Ok(true) = taken {
            let may_go_on = !turn.is_used_up() && !self.queue.is_crowded();
            let before = read.len();
            taken = if may_go_on { self.take_next(cx, &mut read, turn) } else { Ok(false) };
            turn.bytes += before - read.len();
        }
        self.read = read;
        taken.map(|_| ())
    }

    /// Takes the next frame, or content. False where more has to be read for it.
    fn take_next(
        &mut self,
        cx: &mut Context<'_>,
        read: &mut BytesMut,
        turn: &mut TurnCount,
    ) -> Result<bool, ErrorCode> {
        match self.reading {
            Reading::Preface => {
                let length = read.len().min(PREFACE.len());
                if read.get(..length) != PREFACE.get(..length) {
                    return Err(ErrorCode::Protocol);
                }
                if length == PREFACE.len() {
                    read.advance(length);
                    self.reading = Reading::Frame;
                }
                Ok(length == PREFACE.len())
            }
            Reading::Content(open) => self.take_content(read, open),
            Reading::Frame => {
                let Some(head) = FrameHead::read(read) else { return Ok(false) };
                self.admit(head)?;
                if head.kind == DATA {
                    return self.begin_data(read, head);
                }
                let Some(payload) = read.get(HEAD_BYTES..HEAD_BYTES + head.length) else { return Ok(false) };
                self.take_frame(cx, head, payload, turn)?;
                read.advance(HEAD_BYTES + head.length);
                if self.block.is_none() {
                    // The next one has its own time.
                    self.partial_since = None;
                }
                Ok(true)
            }
        }
    }

    /// Whether a frame is there that can be taken.
    pub(super) fn has_whole_frame(&self) -> bool {
        match self.reading {
            Reading::Content(open) => !self.read.is_empty() || (open.left == 0 && open.padding == 0),
            Reading::Preface | Reading::Frame => self.missing_bytes() == 0 && !self.read.is_empty(),
        }
    }

    /// How many bytes are missing for the next step, where that is known.
    pub(super) fn missing_bytes(&self) -> usize {
        match (self.reading, FrameHead::read(&self.read)) {
            (Reading::Preface, _) => PREFACE.len().saturating_sub(self.read.len()),
            (Reading::Content(_), _) => 0,
            (Reading::Frame, None) => HEAD_BYTES - self.read.len(),
            (Reading::Frame, Some(head)) => {
                // Of content the first octet is enough. One that is too long is refused at its head.
                let needed =
                    if head.kind == DATA { 1.min(head.length) } else { head.length.min(PAYLOAD_MAX) };
                (HEAD_BYTES + needed).saturating_sub(self.read.len())
            }
        }
    }

    /// Whether such a frame may stand here at all.
    fn admit(&self, head: FrameHead) -> Result<(), ErrorCode> {
        if head.length > PAYLOAD_MAX {
            return Err(ErrorCode::FrameSize);
        }
        let is_settings = head.kind == SETTINGS && !head.has(ACK);
        let interrupts = self.block.as_ref().is_some_and(|block| block.stream != head.stream);
        let is_continuation = head.kind == CONTINUATION;
        let is_of_stream = head.stream != 0;
        let is_misplaced = match head.kind {
            DATA | HEADERS | PRIORITY | RST_STREAM | CONTINUATION => !is_of_stream,
            SETTINGS | PING | GOAWAY | PRIORITY_UPDATE => is_of_stream,
            PUSH_PROMISE => true,
            _ => false,
        };
        if (!self.has_settings && !is_settings)
            || interrupts
            || is_continuation != self.block.is_some()
            || is_misplaced
        {
            return Err(ErrorCode::Protocol);
        }
        Ok(())
    }

    fn take_frame(
        &mut self,
        cx: &mut Context<'_>,
        head: FrameHead,
        payload: &[u8],
        turn: &mut TurnCount,
    ) -> Result<(), ErrorCode> {
        match head.kind {
            HEADERS => {
                let (block, dependency) = frame::field_block(head, payload)?;
                let ends = head.has(END_STREAM);
                if head.has(END_HEADERS) {
                    return self.take_block(cx, (head.stream, ends, dependency), block, turn);
                }
                let (stream, octets) = (head.stream, block.to_vec());
                self.block = Some(OpenBlock { stream, ends, dependency, octets, continuations: 0 });
                Ok(())
            }
            CONTINUATION => self.take_continuation(cx, head, payload, turn),
            PRIORITY => self.take_priority(head, payload),
            RST_STREAM => self.take_reset(head, payload),
            SETTINGS => self.take_settings(head, payload),
            PING => self.take_ping(head, payload),
            GOAWAY if payload.len() < 8 => Err(ErrorCode::FrameSize),
            GOAWAY => {
                self.is_client_leaving = true;
                self.spend()
            }
            WINDOW_UPDATE => self.take_window_update(head, payload),
            PRIORITY_UPDATE => self.take_priority_update(payload),
            _ => self.spend(),
        }
    }

    /// A frame came that does nothing by itself.
    pub(super) fn spend(&mut self) -> Result<(), ErrorCode> {
        self.budget.frame().map_err(|exhausted| self.exhausted(exhausted))
    }

    pub(super) fn exhausted(&self, exhausted: Exhausted) -> ErrorCode {
        let metrics = &self.context.metrics;
        match exhausted {
            Exhausted::Resets => metrics.resets.add(1),
            Exhausted::ForcedResets => metrics.forced_resets.add(1),
            Exhausted::Frames => metrics.idle_frames.add(1),
        }
        ErrorCode::EnhanceYourCalm
    }

    fn take_continuation(
        &mut self,
        cx: &mut Context<'_>,
        head: FrameHead,
        payload: &[u8],
        turn: &mut TurnCount,
    ) -> Result<(), ErrorCode> {
        let Some(mut block) = self.block.take() else { return Err(ErrorCode::Protocol) };
        let most = self.context.settings.limits.head_bytes_max.saturating_mul(BLOCK_EXCESS);
        block.continuations += 1;
        if block.continuations > CONTINUATIONS_MAX || block.octets.len() + payload.len() > most {
            self.context.metrics.blocks_too_long.add(1);
            return Err(ErrorCode::EnhanceYourCalm);
        }
        block.octets.extend_from_slice(payload);
        if head.has(END_HEADERS) {
            return self.take_block(cx, (block.stream, block.ends, block.dependency), &block.octets, turn);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A whole field block: a request, trailers, or what is passed over.
    fn take_block(
        &mut self,
        cx: &mut Context<'_>,
        (id, ends, dependency): (u32, bool, Option<u32>),
        block: &[u8],
        turn: &mut TurnCount,
    ) -> Result<(), ErrorCode> {
        if let Some(place) = self.streams.find(id) {
            return self.take_trailers(place, (id, ends), block);
        }
        if id.is_multiple_of(2) {
            return Err(ErrorCode::Protocol);
        }
        if id <= self.streams.last {
            return match self.streams.ended_by(id) {
                // Its table goes on.
                Some(EndedBy::Larder) => {
                    self.decode(block, |_| ())?;
                    if ends {
                        self.note_ended(id);
                    }
                    self.spend()
                }
                Some(EndedBy::Client) => Err(ErrorCode::StreamClosed),
                None => Err(ErrorCode::Protocol),
            };
        }
        self.streams.last = id;
        if let Leaving::Final(_) = self.leaving {
            // It was told that this one is not served.
            self.streams.note_end(id, EndedBy::Larder);
            self.decode(block, |_| ())?;
            return self.spend();
        }
        turn.requests += 1;
        self.open_stream(cx, (id, ends, dependency), block)
    }

    /// Decodes a block, with or without an interest in it; gives its size, and whether it had more than the limits allow.
    fn decode(
        &mut self,
        block: &[u8],
        sink: impl FnMut(DecodedField<'_>),
    ) -> Result<(usize, bool), ErrorCode> {
        let limits = &self.context.settings.limits;
        let limits = HeadLimits {
            fields_max: limits.fields_max.saturating_add(PSEUDO_FIELDS),
            bytes_max: limits.head_bytes_max,
        };
        match self.decoder.decode(block, &limits, sink) {
            Ok(counted) => Ok((counted.bytes, counted.is_over)),
            Err(DecodeError::Excess) => {
                self.context.metrics.blocks_too_long.add(1);
                Err(ErrorCode::EnhanceYourCalm)
            }
            Err(_) => Err(ErrorCode::Compression),
        }
    }

    fn open_stream(
        &mut self,
        cx: &mut Context<'_>,
        (id, ends, dependency): (u32, bool, Option<u32>),
        block: &[u8],
    ) -> Result<(), ErrorCode> {
        let context = self.context;
        let limits = &context.settings.limits;
        let mut builder = HeadBuilder::default();
        let mut known_host = self.known_host.take();
        let is_trusted = || context.settings.trusted.contain(context.peer.remote.ip());
        let head_context = &mut HeadContext {
            scheme: context.scheme,
            is_trusted: &is_trusted,
            limits,
            known_host: &mut known_host,
        };
        let (head_bytes, is_over) = self.decode(block, |field| builder.field(field, head_context))?;
        let is_head = builder.is_head();
        let request = builder.finish((is_over, ends), head_context);
        self.known_host = known_host;
        self.budget.request();
        self.idle_since = None;
        if dependency == Some(id) {
            return self.force_reset(id, ends, ErrorCode::Protocol);
        }
        let is_crowded = self.streams.open() >= limits.streams_max as usize;
        let has_room =
            self.streams.head_bytes + head_bytes <= limits.head_bytes_max.saturating_mul(HEADS_MAX);
        if is_crowded || !has_room {
            let counter =
                if is_crowded { &context.metrics.streams_refused } else { &context.metrics.heads_refused };
            counter.add(1);
            self.queue.reset(id, ErrorCode::RefusedStream);
            self.note_over(id, ends);
            return self.budget.reset().map_err(|exhausted| self.exhausted(exhausted));
        }
        match request {
            Ok(parsed) => self.call(cx, parsed, (id, ends, head_bytes)),
            Err(NoRequest::Refused(refusal)) => {
                self.refuse(id, (ends, is_head), refusal);
                Ok(())
            }
            Err(NoRequest::Malformed(refusal)) => {
                context.metrics.count_refusal(refusal);
                context.service.refused(refusal, Some(context.peer.clone()));
                self.force_reset(id, ends, ErrorCode::Protocol)
            }
        }
    }

    /// A block on an open stream: what comes behind its content.
    fn take_trailers(
        &mut self,
        place: usize,
        (id, ends): (u32, bool),
        block: &[u8],
    ) -> Result<(), ErrorCode> {
        let mut builder = TrailerBuilder::default();
        let (_, is_over) = self.decode(block, |field| builder.field(field))?;
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        if stream.facts.has_ended {
            return self.fail_stream(place, BodyError::Framing, ErrorCode::StreamClosed);
        }
        stream.facts.has_ended = ends;
        let trailers = match builder.finish(is_over) {
            _ if !ends => return self.fail_stream(place, BodyError::Framing, ErrorCode::Protocol),
            Err(NoRequest::Malformed(_)) => {
                return self.fail_stream(place, BodyError::Framing, ErrorCode::Protocol);
            }
            Err(NoRequest::Refused(refusal)) => {
                return self.refuse_content(place, refusal, BodyError::Framing);
            }
            Ok(trailers) => trailers,
        };
        match stream.content.as_ref().map_or(Ok(()), |content| content.end(trailers)) {
            Ok(()) => {
                self.note_ended(id);
                Ok(())
            }
            Err(error) => self.fail_stream(place, error, ErrorCode::Protocol),
        }
    }

    /// An error of a stream: it is reset, and counted.
    pub(super) fn fail_stream(
        &mut self,
        place: usize,
        error: BodyError,
        code: ErrorCode,
    ) -> Result<(), ErrorCode> {
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        if let Some(content) = &stream.content {
            content.fail(error);
        }
        let id = stream.facts.id;
        self.drop_stream(place);
        self.queue.reset(id, code);
        self.budget.forced().map_err(|exhausted| self.exhausted(exhausted))
    }

    /// The same of a stream that is not open yet.
    fn force_reset(&mut self, id: u32, ends: bool, code: ErrorCode) -> Result<(), ErrorCode> {
        self.queue.reset(id, code);
        self.note_over(id, ends);
        self.budget.forced().map_err(|exhausted| self.exhausted(exhausted))
    }

    pub(super) fn note_over(&mut self, id: u32, has_ended: bool) {
        self.streams.note_end(id, if has_ended { EndedBy::Client } else { EndedBy::Larder });
    }

    /// What is told at the end of a turn: more room for content, and that a request which was answered needs no more of it.
    pub(super) fn settle(&mut self) {
        if let Some(by) = self.receive_window.update() {
            self.queue.control((WINDOW_UPDATE, 0, 0), &by.to_be_bytes());
        }
        self.window_turns.note(self.receive_window.is_shut());
        for id in std::mem::take(&mut self.unended) {
            self.queue.reset(id, ErrorCode::NoError);
        }
    }
}
