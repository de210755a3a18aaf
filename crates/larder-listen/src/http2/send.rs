//! Content of answers: queued by priority as windows allow, and counted when it is written.
//!
//! In: streams that have something to send. Out: DATA frames and ends of streams in the outbox, which takes a bound at once, so that what is urgent
//! overtakes. A frame's content with its head is as long as a record of TLS. Where all that a client's windows leave is a few bytes, others come first.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::connection::{Http2Connection, Portion, TurnCount, Whose};
use super::flow::SendWindow;
use super::frame::{DATA, END_STREAM, ErrorCode, FrameHead, HEAD_BYTES, PAYLOAD_MAX};
use super::outgoing::{ContentEnd, OutgoingContent};
use super::stream::{Stage, StreamFacts, StreamList};
use crate::byte_stream::ByteStream;
use crate::delivery::Report;
use crate::outbox::Written;
use crate::service::Service;
use crate::timer::{Pace, Timer};

/// Content of one frame. With its head it fills a record of TLS.
const DATA_MAX: usize = PAYLOAD_MAX - HEAD_BYTES;
/// Content that is queued before something is written.
const QUEUED_MAX: usize = 128 * 1024;
/// Less than that is not worth a frame, as long as there are others to send.
const WORTH_BYTES: usize = 1024;

/// The client is gone.
#[derive(Debug)]
pub(super) struct ClientGone;

impl<'a, T: ByteStream, S: Service> Http2Connection<'a, T, S> {
    /// Whether content may be queued.
    pub(super) fn has_room(&self) -> bool {
        self.out.has_room(QUEUED_MAX)
    }

    /// How long the next frame of a stream may be.
    pub(super) fn frame_room(&self, facts: &StreamFacts) -> usize {
        self.send_window.room().min(facts.window.room()).min(DATA_MAX).min(self.client.payload_max)
    }

    /// Queues a frame of content, and tells how long it is, and how the content is over with it.
    pub(super) fn queue_data(
        &mut self,
        facts: &mut StreamFacts,
        content: &mut OutgoingContent,
    ) -> (usize, Option<ContentEnd>) {
        let piece = content.take(self.frame_room(facts));
        let length = piece.len();
        let end = content.take_end();
        let flags = if matches!(end, Some(ContentEnd::Whole(None))) { END_STREAM } else { 0 };
        let head = FrameHead { length, kind: DATA, flags, stream: facts.id };
        self.out.inline(|out| out.extend_from_slice(&head.octets()));
        self.out.content(piece);
        self.send_window.sent(length);
        facts.window.sent(length);
        self.budget.content(length);
        (length, end)
    }

    /// Counts an answer when all that is queued now is written.
    pub(super) fn count_when_written(&mut self, bytes: u64, report: Report<'a, S>) {
        let end = self.position();
        self.portions.push_back(Portion { end, bytes, whose: Whose::Report(report) });
    }

    /// Where the outbox ends, in bytes of the connection.
    fn position(&self) -> u64 {
        self.written + self.out.queued_bytes() as u64
    }

    /// A stream has something to send: it gets its turn, or waits for its windows.
    pub(super) fn schedule(&mut self, place: usize, cx: &mut Context<'_>) {
        let Some(stream) = self.streams.at_mut(place) else { return };
        if stream.is_blocked {
            self.poll_blocked(place, cx);
        } else if !std::mem::replace(&mut stream.is_scheduled, true) {
            self.schedule.push(place, stream.facts.priority);
        }
    }

    /// The windows of a stream have changed.
    pub(super) fn unblock(&mut self, place: usize) {
        let is_open = self.send_window.room() > 0;
        let Some(stream) = self.streams.at_mut(place) else { return };
        if stream.is_blocked && is_open && stream.facts.window.room() > 0 {
            stream.is_blocked = false;
            stream.is_scheduled = true;
            self.schedule.push(place, stream.facts.priority);
        }
    }

    /// A stream waits for its client to open a window, for a limited time.
    fn poll_blocked(&mut self, place: usize, cx: &mut Context<'_>) {
        let limits = &self.context.settings.limits;
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.is_blocked = true;
        let (pace, timer) = &mut **stream.stall.get_or_insert_with(|| {
            Box::new((Pace::new(limits.write_idle, limits.rate_window, limits.rate_min), Timer::default()))
        });
        if pace.poll_stalled(cx, timer).is_ready() {
            self.context.metrics.write_stalled.add(1);
            self.cut(place, ErrorCode::Cancel);
        }
    }

    /// Ends a stream whose answer cannot be whole.
    fn cut(&mut self, place: usize, code: ErrorCode) {
        if let Some(id) = self.streams.at(place).map(|stream| stream.facts.id) {
            self.drop_stream(place);
            self.queue_reset(id, code);
            self.budget.finished();
        }
    }

    /// Queues content of the streams in their turns, as long as there is room.
    pub(super) fn queue_content(&mut self, turn: &mut TurnCount) {
        while !self.schedule.is_empty() && self.has_room() {
            let (connection, streams) = (self.send_window, &self.streams);
            let Some(place) = self.schedule.pop(|place| is_worth_it(streams, place, connection)) else {
                break;
            };
            let before = self.position();
            self.send_next(place);
            turn.bytes += (self.position() - before) as usize;
        }
    }

    /// The next frame of a stream that was taken out of the schedule.
    fn send_next(&mut self, place: usize) {
        let waker = self.wakers.of(place);
        let cx = &mut Context::from_waker(&waker);
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.is_scheduled = false;
        let mut facts = stream.facts;
        let Stage::Sending { content, .. } = &mut stream.stage else { return };
        let mut end = None;
        if content.ready_bytes() == 0 {
            end = content.take_end();
            if end.is_none() {
                return;
            }
        } else if self.send_window.room().min(facts.window.room()) == 0 {
            return self.poll_blocked(place, cx);
        }
        if end.is_none() {
            // Taken out, so that the connection can be changed meanwhile.
            let mut taken = std::mem::replace(content, OutgoingContent::new(larder_http::body::Body::Empty));
            let (length, over) = self.queue_data(&mut facts, &mut taken);
            end = over;
            let Some(stream) = self.streams.at_mut(place) else { return };
            stream.facts = facts;
            if let Some(stall) = &mut stream.stall {
                stall.0.moved(length as u64);
            }
            let is_ready = end.is_some() || taken.poll_ready(cx).is_ready();
            if let Stage::Sending { content, .. } = &mut stream.stage {
                *content = taken;
            }
            if end.is_none() {
                self.note_portion(place, length, false);
                if is_ready && let Some(stream) = self.streams.at_mut(place) {
                    stream.is_scheduled = true;
                    self.schedule.put_back(place, facts.priority);
                }
                return;
            }
            if let Some(ContentEnd::Whole(trailers)) = end {
                return self.end_stream(place, facts, length, trailers, false);
            }
            self.note_portion(place, length, false);
        }
        match end {
            Some(ContentEnd::Whole(trailers)) => self.end_stream(place, facts, 0, trailers, true),
            _ => {
                self.context.metrics.responses_cut.add(1);
                self.cut(place, ErrorCode::Internal);
            }
        }
    }

    /// All content of a stream is queued, of which the last frame had `length`.
    fn end_stream(
        &mut self,
        place: usize,
        facts: StreamFacts,
        length: usize,
        trailers: Option<http::HeaderMap>,
        is_unsaid: bool,
    ) {
        match trailers {
            Some(trailers) => self.queue_block(facts.id, true, |block| {
                trailers.iter().for_each(|(name, value)| block.field(name, value));
            }),
            None if is_unsaid => {
                let head = FrameHead { length: 0, kind: DATA, flags: END_STREAM, stream: facts.id };
                self.out.inline(|out| out.extend_from_slice(&head.octets()));
            }
            None => {}
        }
        self.note_portion(place, length, true);
        self.budget.finished();
        self.leave_content(place);
        if let Some((facts, stage)) = self.streams.close(place) {
            if let Stage::Sending { report, .. } = stage {
                self.streams.leave_report(place, report);
            }
            if !facts.has_ended {
                self.unended.push(facts.id);
            }
        }
    }

    fn note_portion(&mut self, place: usize, length: usize, is_last: bool) {
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.unwritten += 1;
        let whose = if is_last { Whose::LastOf(place) } else { Whose::Stream(place) };
        let end = self.position();
        self.portions.push_back(Portion { end, bytes: length as u64, whose });
    }

    /// Writes what is queued, as far as the client takes it. True where all of it is written.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, ClientGone> {
        while !self.out.is_empty() {
            match self.out.poll_write(cx, &mut self.io) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(Written { bytes: 0, .. }) | Err(_)) => return Err(ClientGone),
                Poll::Ready(Ok(written)) => {
                    self.written += written.bytes as u64;
                    self.context.metrics.bytes_out.add(written.bytes as u64);
                    if let Some(pace) = &mut self.pace {
                        pace.moved(written.bytes as u64);
                    }
                    self.count_written();
                }
            }
        }
        self.control_bytes = 0;
        Ok(true)
    }

    /// Counts what was written.
    fn count_written(&mut self) {
        let mut now = None;
        while let Some(portion) = self.portions.pop_front_if(|portion| portion.end <= self.written) {
            let Portion { bytes, whose, .. } = portion;
            let (report, is_whole) = match whose {
                Whose::Report(mut report) => {
                    report.body_bytes += bytes;
                    (Some(report), true)
                }
                Whose::Stream(place) => (self.streams.written(place, bytes), false),
                Whose::LastOf(place) => (self.streams.written(place, bytes), true),
            };
            if let Some(mut report) = report {
                report.complete = is_whole;
                report.ended = Some(*now.get_or_insert_with(Instant::now));
            }
        }
    }

    /// Counts what was written of the frame that was cut.
    pub(super) fn count_partly_written(&mut self) {
        let Some(Portion { end, bytes, whose }) = self.portions.pop_front() else { return };
        let part = bytes.saturating_sub(end - self.written);
        match whose {
            Whose::Report(mut report) => report.body_bytes += part,
            Whose::Stream(place) | Whose::LastOf(place) => drop(self.streams.written(place, part)),
        }
    }
}

/// Whether a stream's next frame is worth its head.
fn is_worth_it<S: Service>(streams: &StreamList<'_, S>, place: usize, connection: SendWindow) -> bool {
    let Some(stream) = streams.at(place) else { return true };
    let Stage::Sending { content, .. } = &stream.stage else { return true };
    let room = connection.room().min(stream.facts.window.room());
    room >= content.ready_bytes().min(WORTH_BYTES)
}
