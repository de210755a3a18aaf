//! Frames of the client that carry neither fields nor content (RFC 9113 6.3 to 6.9, RFC 9218 7.1).
//!
//! In: their heads and payloads. Out: streams reset, settings and windows taken over, priorities, acknowledgements. Each costs a part of
//! the client's budget.

use larder_http::body::BodyError;

use super::connection::{Http2Connection, LEAVING_PING, Leaving};
use super::flow::WindowError;
use super::frame::{self, ACK, ErrorCode, FrameHead, PING, SETTINGS};
use super::priority::Priority;
use crate::byte_stream::ByteStream;
use crate::service::Service;

/// Priorities that are remembered for streams that are still to come.
const PRIORITIES_MAX: usize = 16;

impl<T: ByteStream, S: Service> Http2Connection<'_, T, S> {
    /// A frame of RFC 7540, which only has a form any more.
    pub(super) fn take_priority(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
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

    pub(super) fn take_reset(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
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

    pub(super) fn take_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
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

    pub(super) fn take_ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
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

    pub(super) fn take_window_update(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), ErrorCode> {
        if payload.len() != 4 {
            return Err(ErrorCode::FrameSize);
        }
        let by = frame::number(payload).unwrap_or_default() & 0x7fff_ffff;
        self.spend()?;
        if head.stream == 0 {
            if by == 0 {
                return Err(ErrorCode::Protocol);
            }
            let was_closed = self.queue.window.room() == 0;
            self.queue.window.open(by.into()).map_err(|WindowError| ErrorCode::FlowControl)?;
            if !was_closed {
                // No stream waits for it.
                return Ok(());
            }
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

    pub(super) fn take_priority_update(&mut self, payload: &[u8]) -> Result<(), ErrorCode> {
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
}
