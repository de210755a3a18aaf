//! What the client's frames do (RFC 9113 6).
//!
//! In: bytes as they were read. Out: requests handed to the service, content to its reader, windows and settings taken over, answers
//! to what has to be answered. Content of a frame is handed on as it comes; of all other frames, and of field blocks, the whole is
//! waited for, within `head_time`. An error of a stream resets it; what is returned as an error ends the connection.

use std::task::Context;

use bytes::{Buf as _, BytesMut};
use larder_http::body::BodyError;

use super::budget::Exhausted;
use super::connection::{Http2Connection, LEAVING_PING, Leaving, OpenBlock, OpenData, Reading, TurnCount};
use super::flow::WindowError;
use super::frame::{
    self, ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ErrorCode, FrameHead, GOAWAY, HEAD_BYTES,
    HEADERS, PADDED, PAYLOAD_MAX, PING, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};
use super::hpack::decode::{DecodeError, HeadLimits};
use super::priority::Priority;
use super::request_head::{HeadBuilder, HeadContext, NoRequest, TrailerBuilder};
use super::stream::{EndedBy, Stage};
use crate::byte_stream::ByteStream;
use crate::error::Refusal;
use crate::service::Service;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// CONTINUATION frames of one block (CVE-2024-27316).
const CONTINUATIONS_MAX: usize = 8;
/// A block may be so many times as long as the head that it stands for, and is refused with an answer up to there.
const BLOCK_EXCESS: usize = 4;
/// The heads of all open streams together, in heads of the largest size.
const HEADS_MAX: usize = 32;
/// Fields that every request has beside those that its limit counts.
const PSEUDO_FIELDS: usize = 4;
/// Pieces of content that are smaller are copied out of the buffer that they were read to.
const COPIED_BYTES_MAX: usize = 8 * 1024;
/// Priorities that are remembered for streams that are still to come.
const PRIORITIES_MAX: usize = 16;

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
    fn spend(&mut self) -> Result<(), ErrorCode> {
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
        sink: impl FnMut(super::hpack::decode::DecodedField<'_>),
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
        let head_context = &mut HeadContext { scheme: context.scheme, limits, known_host: &mut known_host };
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

    /// A DATA frame begins.
    fn begin_data(&mut self, read: &mut BytesMut, head: FrameHead) -> Result<bool, ErrorCode> {
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
    fn take_content(&mut self, read: &mut BytesMut, open: OpenData) -> Result<bool, ErrorCode> {
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

    fn give(&mut self, place: usize, piece: bytes::Bytes) -> Result<(), ErrorCode> {
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
    fn note_ended(&mut self, id: u32) {
        if !self.unended.is_empty() {
            self.unended.retain(|other| *other != id);
        }
    }

    /// A frame of RFC 7540, which only has a form any more.
    fn take_priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        let dependency = frame::number(payload).map(|stream| stream & 0x7fff_ffff);
        let code = match payload.len() {
            5 if dependency != Some(head.stream) => return self.spend(),
            5 => ErrorCode::Protocol,
            _ => ErrorCode::FrameSize,
        };
        match self.streams.find(head.stream) {
            Some(place) => self.fail_stream(place, BodyError::Cut, code),
            None => Err(code),
        }
    }

    fn take_reset(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        if payload.len() != 4 {
            return Err(ErrorCode::FrameSize);
        }
        if head.stream > self.streams.last || head.stream.is_multiple_of(2) {
            return Err(ErrorCode::Protocol);
        }
        self.note_ended(head.stream);
        let Some(place) = self.streams.find(head.stream) else { return self.spend() };
        if let Some(stream) = self.streams.at_mut(place) {
            // Nothing more comes of it.
            stream.facts.has_ended = true;
        }
        self.drop_stream(place);
        self.budget.reset().map_err(|exhausted| self.exhausted(exhausted))
    }

    fn take_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        if head.has(ACK) {
            if !payload.is_empty() {
                return Err(ErrorCode::FrameSize);
            }
            // Ours are sent once.
            return if std::mem::replace(&mut self.is_acknowledged, true) {
                Err(ErrorCode::Protocol)
            } else {
                Ok(())
            };
        }
        if self.has_settings {
            self.spend()?;
        }
        self.has_settings = true;
        let before = self.queue.client.initial_window;
        self.queue.client.apply(payload)?;
        if let Some(bytes) = self.queue.client.table_bytes.take() {
            self.queue.encoder.set_table_size(bytes);
        }
        let by = i64::from(self.queue.client.initial_window) - i64::from(before);
        if by != 0 {
            let places: Vec<usize> = self.streams.places().collect();
            for place in places {
                if let Some(stream) = self.streams.at_mut(place) {
                    stream.facts.window.open(by).map_err(|WindowError| ErrorCode::FlowControl)?;
                }
                self.unblock(place);
            }
        }
        self.queue.control((SETTINGS, ACK, 0), &[]);
        Ok(())
    }

    fn take_ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        if payload.len() != 8 {
            return Err(ErrorCode::FrameSize);
        }
        if !head.has(ACK) {
            self.spend()?;
            self.queue.control((PING, ACK, 0), payload);
            return Ok(());
        }
        if payload == LEAVING_PING && matches!(self.leaving, Leaving::Warned(_)) {
            self.say_last();
            return Ok(());
        }
        self.spend()
    }

    fn take_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        if payload.len() != 4 {
            return Err(ErrorCode::FrameSize);
        }
        let by = frame::number(payload).unwrap_or_default() & 0x7fff_ffff;
        self.spend()?;
        if head.stream == 0 {
            if by == 0 {
                return Err(ErrorCode::Protocol);
            }
            self.queue.window.open(by.into()).map_err(|WindowError| ErrorCode::FlowControl)?;
            let places: Vec<usize> = self.streams.places().collect();
            places.into_iter().for_each(|place| self.unblock(place));
            return Ok(());
        }
        let Some(place) = self.streams.find(head.stream) else {
            let is_idle = head.stream > self.streams.last || head.stream.is_multiple_of(2);
            return if is_idle { Err(ErrorCode::Protocol) } else { Ok(()) };
        };
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        if by == 0 {
            return self.fail_stream(place, BodyError::Cut, ErrorCode::Protocol);
        }
        if stream.facts.window.open(by.into()).is_err() {
            return self.fail_stream(place, BodyError::Cut, ErrorCode::FlowControl);
        }
        self.unblock(place);
        Ok(())
    }

    fn take_priority_update(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
        let (Some(id), Some(field)) = (frame::number(payload), payload.get(4..)) else {
            return Err(ErrorCode::FrameSize);
        };
        let id = id & 0x7fff_ffff;
        if id == 0 {
            return Err(ErrorCode::Protocol);
        }
        self.spend()?;
        let priority = Priority::default().with(field);
        if let Some(place) = self.streams.find(id) {
            self.reprioritise(place, priority);
        } else if id > self.streams.last {
            self.priorities.retain(|(other, _)| *other != id);
            if self.priorities.len() == PRIORITIES_MAX {
                self.priorities.pop_front();
            }
            self.priorities.push_back((id, priority));
        }
        Ok(())
    }

    /// What PRIORITY_UPDATE has said of a stream before it began.
    pub(super) fn take_announced_priority(&mut self, id: u32) -> Option<Priority> {
        if self.priorities.is_empty() {
            return None;
        }
        let found = self.priorities.iter().find(|(other, _)| *other == id).map(|(_, priority)| *priority);
        self.priorities.retain(|(other, _)| *other > id);
        found
    }

    fn reprioritise(&mut self, place: usize, priority: Priority) {
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.facts.priority = priority;
        if stream.is_scheduled {
            self.schedule.remove(place);
            self.schedule.push(place, priority);
        }
    }

    /// An error of a stream: it is reset, and counted.
    fn fail_stream(&mut self, place: usize, error: BodyError, code: ErrorCode) -> Result<(), ErrorCode> {
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

    /// Content cannot be taken. Where the call is under way still, its client is answered.
    fn refuse_content(&mut self, place: usize, refusal: Refusal, error: BodyError) -> Result<(), ErrorCode> {
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        if let Some(content) = &stream.content {
            content.fail(error);
        }
        if let Stage::Calling { .. } = stream.stage {
            self.refuse_stream(place, refusal);
        }
        Ok(())
    }

    /// What is told at the end of a turn: more room for content, and that a request which was answered needs no more of it.
    pub(super) fn settle(&mut self) {
        if let Some(by) = self.receive_window.update() {
            self.queue.control((WINDOW_UPDATE, 0, 0), &by.to_be_bytes());
        }
        for id in std::mem::take(&mut self.unended) {
            self.queue.reset(id, ErrorCode::NoError);
        }
    }
}
