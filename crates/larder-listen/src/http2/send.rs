//! Content of answers: queued by priority as windows allow, and counted when it is written.
//!
//! In: streams that have something to send. Out: their frames in the queue, which takes a bound at once, so that what is urgent overtakes; and reports on
//! what was delivered. Where all that a client's windows leave is a few bytes, others come first.

use std::task::Context;

use http::HeaderMap;
use tokio::time::Instant;

use super::connection::{Http2Connection, Portion, TurnCount, Whose};
use super::flow::SendWindow;
use super::frame::{DATA, END_STREAM, ErrorCode};
use super::frame_queue::ClientGone;
use super::outgoing::ContentEnd;
use super::stream::{Stage, StreamList};
use crate::byte_stream::ByteStream;
use crate::delivery::Report;
use crate::service::Service;
use crate::timer::{Pace, Timer};

/// Less than that is not worth a frame, as long as there are others to send.
const WORTH_BYTES: usize = 1024;

impl<'a, T: ByteStream, S: Service> Http2Connection<'a, T, S> {
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
        let is_open = self.queue.window.room() > 0;
        let Some(stream) = self.streams.at_mut(place) else { return };
        if stream.facts.window.room() > 0
            && let Some(stall) = &mut stream.stall
        {
            // Whatever it waits for now, it is not its own window.
            stall.0.moved(0);
        }
        if stream.is_blocked && is_open && stream.facts.window.room() > 0 {
            stream.is_blocked = false;
            stream.is_scheduled = true;
            self.schedule.push(place, stream.facts.priority);
        }
    }

    /// A stream waits for its client to open a window. For its own it waits for a limited time; that of the connection has a limit for all
    /// streams together, since others may be taking all of it.
    fn poll_blocked(&mut self, place: usize, cx: &mut Context<'_>) {
        let limits = &self.context.settings.limits;
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.is_blocked = true;
        if stream.facts.window.room() > 0 {
            return;
        }
        let (pace, timer) = &mut **stream.stall.get_or_insert_with(|| {
            Box::new((Pace::new(limits.write_idle, limits.rate_window, limits.rate_min), Timer::default()))
        });
        if pace.poll_stalled(cx, timer).is_ready() {
            self.context.metrics.write_stalled.add(1);
            self.cut(place, ErrorCode::Cancel);
        }
    }

    /// Streams wait for the window of the connection, for a limited time.
    pub(super) fn poll_window(&mut self, cx: &mut Context<'_>) {
        if self.queue.window.room() > 0 || self.streams.open() == 0 {
            return self.end_window_wait();
        }
        let waits = |place: &usize| {
            let stream = self.streams.at(*place);
            stream.is_some_and(|stream| stream.is_blocked && stream.facts.window.room() > 0)
        };
        let waiting: Vec<usize> = self.streams.places().filter(waits).collect();
        if waiting.is_empty() {
            return self.end_window_wait();
        }
        let limits = &self.context.settings.limits;
        let pace = self.window_pace.get_or_insert_with(|| {
            Box::new(Pace::new(limits.write_idle, limits.rate_window, limits.rate_min))
        });
        if pace.poll_stalled(cx, &mut self.timer).is_pending() {
            return;
        }
        self.window_pace = None;
        for place in waiting {
            self.context.metrics.write_stalled.add(1);
            self.cut(place, ErrorCode::Cancel);
        }
        self.has_news = true;
    }

    /// No stream waits for the window of the connection. The next wait has all of its time; what counts by rate goes on.
    fn end_window_wait(&mut self) {
        if let Some(pace) = &mut self.window_pace {
            pace.moved(0);
        }
    }

    /// Ends a stream whose answer cannot be whole.
    fn cut(&mut self, place: usize, code: ErrorCode) {
        if let Some(id) = self.streams.at(place).map(|stream| stream.facts.id) {
            self.drop_stream(place);
            self.queue.reset(id, code);
            self.budget.finished();
        }
    }

    /// Queues content of the streams in their turns, as long as there is room.
    pub(super) fn queue_content(&mut self, turn: &mut TurnCount) {
        while !self.schedule.is_empty() && self.queue.has_room() {
            let (window, streams) = (self.queue.window, &self.streams);
            let Some(place) = self.schedule.pop(|place| is_worth_it(streams, place, window)) else { break };
            let before = self.queue.end();
            self.send_next(place);
            turn.bytes += (self.queue.end() - before) as usize;
        }
    }

    /// The next frame of a stream that was taken out of the schedule.
    fn send_next(&mut self, place: usize) {
        let waker = self.wakers.of(place);
        let cx = &mut Context::from_waker(&waker);
        let Some(stream) = self.streams.at_mut(place) else { return };
        stream.is_scheduled = false;
        let Stage::Sending { content, .. } = &mut stream.stage else { return };
        let has_content = content.ready_bytes() > 0;
        if has_content && self.queue.window.room().min(stream.facts.window.room()) == 0 {
            return self.poll_blocked(place, cx);
        }
        let (length, end) = match has_content {
            true => self.queue.data(&mut stream.facts, content),
            false => (0, content.take_end()),
        };
        let is_ready = end.is_none() && content.poll_ready(cx).is_ready();
        if has_content {
            self.budget.content(length);
            if let Some(stall) = &mut stream.stall {
                stall.0.moved(length as u64);
            }
            if let Some(pace) = &mut self.window_pace {
                pace.moved(length as u64);
            }
        }
        let priority = stream.facts.priority;
        match end {
            Some(ContentEnd::Whole(trailers)) => self.end_stream(place, length, trailers, !has_content),
            Some(ContentEnd::Cut) => {
                self.note_portion(place, length, false);
                self.context.metrics.responses_cut.add(1);
                self.cut(place, ErrorCode::Internal);
            }
            None => {
                stream.is_scheduled = is_ready;
                if is_ready {
                    self.schedule.put_back(place, priority);
                }
                self.note_portion(place, length, false);
            }
        }
    }

    /// All content of a stream is queued, of which the last frame had `length`. `is_unsaid`: that frame did not say so, or there was none.
    fn end_stream(&mut self, place: usize, length: usize, trailers: Option<HeaderMap>, is_unsaid: bool) {
        let Some(id) = self.streams.at(place).map(|stream| stream.facts.id) else { return };
        match trailers {
            Some(trailers) => self.queue.block(id, true, |block| {
                trailers.iter().for_each(|(name, value)| block.field(name, value));
            }),
            None if is_unsaid => self.queue.frame((DATA, END_STREAM, id), &[]),
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
        self.portions.push_back(Portion { end: self.queue.end(), bytes: length as u64, whose });
    }

    /// Counts an answer when all that is queued now is written.
    pub(super) fn count_when_written(&mut self, bytes: u64, report: Report<'a, S>) {
        self.portions.push_back(Portion { end: self.queue.end(), bytes, whose: Whose::Report(report) });
    }

    /// Writes what is queued, as far as the client takes it. True where all of it is written.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) -> Result<bool, ClientGone> {
        if self.queue.is_empty() {
            return Ok(true);
        }
        let (pace, metrics) = (&mut self.pace, &self.context.metrics);
        let written = self.queue.write(cx, &mut self.io, |bytes| {
            metrics.bytes_out.add(bytes);
            if let Some(pace) = pace {
                pace.moved(bytes);
            }
        });
        self.count_written();
        written
    }

    /// Counts what was written.
    fn count_written(&mut self) {
        let written = self.queue.written();
        let mut now = None;
        while let Some(portion) = self.portions.pop_front_if(|portion| portion.end <= written) {
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
        if now.is_some() {
            // Where nothing else is open, it is idle from now on.
            self.idle_since = now;
        }
    }

    /// Counts what was written of the frame that was cut.
    pub(super) fn count_partly_written(&mut self) {
        let Some(Portion { end, bytes, whose }) = self.portions.pop_front() else { return };
        let part = bytes.saturating_sub(end - self.queue.written());
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
