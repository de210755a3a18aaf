//! From a request to the beginning of its answer.
//!
//! In: a parsed head, calls that are due, refusals. Out: heads of answers in the outbox, and their content: at once where it is there and the windows take all
//! of it, else by the schedule.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use larder_http::body::Body;
use larder_http::fields::cache_status::CACHE_STATUS;
use larder_http::fields::content_type;
use larder_http::message::{Request, RequestHead, Response, ResponseHead};

use super::connection::Http2Connection;
use super::flow::{ReceiveWindow, STREAM_WINDOW, SendWindow};
use super::frame::{DATA, END_STREAM, ErrorCode, WINDOW_UPDATE};
use super::hpack::encode::{Block, PassingName};
use super::incoming_content::{IncomingContent, Wanted};
use super::outgoing::OutgoingContent;
use super::priority::PRIORITY_FIELD;
use super::request_head::ParsedRequest;
use super::stream::{ServedStream, Stage, StreamFacts};
use crate::byte_stream::ByteStream;
use crate::date;
use crate::delivery::Report;
use crate::error::Refusal;
use crate::service::{Interims, Service};
use crate::settings::Limits;
use crate::timer::Pace;

impl<'a, T: ByteStream, S: Service> Http2Connection<'a, T, S> {
    /// Hands a request to the service.
    #[inline]
    pub(super) fn call(
        &mut self,
        cx: &mut Context<'_>,
        parsed: ParsedRequest,
        (id, has_ended, head_bytes): (u32, bool, usize),
    ) -> Result<(), ErrorCode> {
        let ParsedRequest { head, length, expects_continue, trailers, priority } = parsed;
        let context = self.context;
        let limits = &context.settings.limits;
        if length.zip(limits.body_bytes_max).is_some_and(|(length, most)| length > most) {
            self.refuse(id, (has_ended, head.method == Method::HEAD), Refusal::BodyTooLarge);
            return Ok(());
        }
        let (content, body) = match has_ended {
            true => (None, Body::Empty),
            false => {
                let (content, body) = IncomingContent::new(
                    length,
                    expects_continue,
                    (pace_of(&head, limits), self.window_turns.clone()),
                );
                (Some(content), body)
            }
        };
        let priority = self.take_announced_priority(id).or(priority).unwrap_or_default();
        let is_head = head.method == Method::HEAD;
        let window = SendWindow::new(self.queue.client.initial_window);
        let facts = StreamFacts { id, is_head, has_ended, window, priority, head_bytes };
        let mut interims = self.interims.take().unwrap_or_default();
        interims.begin(limits.interims_max);
        context.metrics.requests_http2.add(1);
        let request = Request { head, body, websocket: false, trailers, peer: context.peer.clone() };
        let mut call = context.service.call(request, &interims);
        if let Poll::Ready((response, receipt)) = Pin::new(&mut call).poll(cx) {
            drop(call);
            self.end_interims(id, interims);
            let begun = self.begin(facts, response, receipt);
            let Some((facts, sending, report)) = begun else {
                self.note_over(id, has_ended);
                return Ok(());
            };
            let place = self.place(facts, Stage::Sending { content: sending, report }, content);
            return self.drive(place);
        }
        let place = self.place(facts, Stage::Calling { call, interims }, content);
        // Polled again, so that it knows by whom it is woken.
        self.drive(place)
    }

    fn place(&mut self, facts: StreamFacts, stage: Stage<'a, S>, content: Option<IncomingContent>) -> usize {
        let place = self.streams.insert(ServedStream {
            facts,
            stage,
            content,
            received: 0,
            receive_window: ReceiveWindow::new(STREAM_WINDOW),
            is_blocked: false,
            is_scheduled: false,
            stall: None,
            unwritten: 0,
        });
        let waker = self.wakers.of(place);
        if let Some(content) = self.streams.at(place).and_then(|stream| stream.content.as_ref()) {
            content.set_waker(waker);
        }
        place
    }

    /// Polls what a stream waits for.
    pub(super) fn drive(&mut self, place: usize) -> Result<(), ErrorCode> {
        let waker = self.wakers.of(place);
        let cx = &mut Context::from_waker(&waker);
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        match &mut stream.stage {
            Stage::Calling { call, .. } => {
                let polled = Pin::new(call).poll(cx);
                let wanted = self.collect(place);
                match (polled, wanted.failed) {
                    (Poll::Ready(answer), failed) => return self.answer(place, answer, failed),
                    (Poll::Pending, Some(refusal)) => self.refuse_stream(place, refusal),
                    (Poll::Pending, None) => self.relay_interims(place, cx, wanted.go_on),
                }
            }
            Stage::Sending { content, .. } => {
                let is_ready = content.poll_ready(cx).is_ready();
                self.collect(place);
                if is_ready {
                    self.schedule(place, cx);
                }
            }
            Stage::Over(_) => {}
        }
        Ok(())
    }

    /// Hears of what the reader of a request's content wants, and opens the windows for what it has taken.
    pub(super) fn collect(&mut self, place: usize) -> Wanted {
        let Some(stream) = self.streams.at_mut(place) else { return Wanted::default() };
        let Some(content) = &stream.content else { return Wanted::default() };
        let wanted = content.wanted();
        self.receive_window.taken(wanted.taken);
        if stream.facts.has_ended {
            return wanted;
        }
        stream.receive_window.taken(wanted.taken);
        let id = stream.facts.id;
        if let Some(by) = stream.receive_window.update() {
            self.queue.control((WINDOW_UPDATE, 0, id), &by.to_be_bytes());
        }
        wanted
    }

    /// A call that had to wait is answered.
    fn answer(
        &mut self,
        place: usize,
        (response, receipt): (Response, S::Receipt),
        failed: Option<Refusal>,
    ) -> Result<(), ErrorCode> {
        // What the service made of content that broke is not the answer: whose fault it was is known here.
        if let Some(refusal) = failed {
            drop(Report::new(&self.context.service, receipt));
            self.refuse_stream(place, refusal);
            return Ok(());
        }
        let Some(stream) = self.streams.at_mut(place) else { return Ok(()) };
        let facts = stream.facts;
        if let Stage::Calling { interims, .. } = std::mem::replace(&mut stream.stage, Stage::Over(None)) {
            self.end_interims(facts.id, interims);
        }
        match self.begin(facts, response, receipt) {
            None => {
                self.leave_content(place);
                self.streams.close(place);
                Ok(())
            }
            Some((facts, content, report)) => {
                if let Some(stream) = self.streams.at_mut(place) {
                    stream.facts = facts;
                    stream.stage = Stage::Sending { content, report };
                }
                self.drive(place)
            }
        }
    }

    /// Queues the head of an answer, and its content where that goes without waiting: then nothing is left to do.
    #[inline]
    fn begin(
        &mut self,
        mut facts: StreamFacts,
        response: Response,
        receipt: S::Receipt,
    ) -> Option<(StreamFacts, OutgoingContent, Report<'a, S>)> {
        let context = self.context;
        let Response { mut head, mut body, .. } = response;
        let report = Report::new(&context.service, receipt);
        if head.status.is_informational() {
            // No stream becomes a tunnel: a switch is no answer here.
            head = ResponseHead::new(StatusCode::BAD_GATEWAY, HeaderMap::new());
            body = Body::Empty;
        }
        if let Some(field) = head.field(&PRIORITY_FIELD) {
            facts.priority = facts.priority.with(field.as_bytes());
        }
        let may_have_content =
            head.status != StatusCode::NO_CONTENT && head.status != StatusCode::NOT_MODIFIED;
        let length = body.length().filter(|_| may_have_content && head.field(&CONTENT_LENGTH).is_none());
        let has_content = !facts.is_head && may_have_content && !body.is_empty();
        self.queue_head(facts.id, &head, length, !has_content);
        drop(head);
        if !has_content {
            drop(body);
            self.finish(facts, 0, report);
            return None;
        }
        let is_here = !matches!(body, Body::Stream { .. });
        let mut content = OutgoingContent::new(body);
        // Of what lies in memory the pieces need no waker.
        let cx = &mut Context::from_waker(std::task::Waker::noop());
        if is_here && self.schedule.is_empty() && content.poll_ready(cx).is_ready() {
            let bytes = content.ready_bytes();
            let fits =
                bytes <= self.queue.data_room(&facts) && content.ends_with_next() && self.queue.has_room();
            if fits {
                self.queue.data(&mut facts, &mut content);
                self.budget.content(bytes);
                self.finish(facts, bytes as u64, report);
                return None;
            }
        }
        Some((facts, content, report))
    }

    /// An answer is queued whole. Its report is made when it is written.
    pub(super) fn finish(&mut self, facts: StreamFacts, bytes: u64, report: Report<'a, S>) {
        self.count_when_written(bytes, report);
        self.budget.finished();
        if !facts.has_ended {
            self.unended.push(facts.id);
        }
    }

    /// Queues the head of an answer.
    fn queue_head(&mut self, id: u32, head: &ResponseHead, length: Option<u64>, ends: bool) {
        let clock = &self.context.settings.clock;
        self.queue.block(id, ends, |block| {
            block.status(head.status);
            if let Some(stored) = &head.stored {
                match stored.block() {
                    Some(encoded) => block.stored(encoded),
                    None => each(block, &stored.prepared().map),
                }
            }
            each(block, &head.fields);
            if let Some(seconds) = head.age {
                block.number(&AGE, seconds);
            }
            if let Some(status) = &head.cache_status {
                block.passing(&CACHE_STATUS_NAME, |text| status.write(text));
            }
            if let Some(site) = &head.site {
                let missing = site.map.iter().filter(|(name, _)| head.field(name).is_none());
                missing.for_each(|(name, value)| block.field(name, value));
            }
            if let Some(length) = length {
                block.number(&CONTENT_LENGTH_NAME, length);
            }
            if !head.has_date() {
                block.passing(&DATE, |text| text.extend_from_slice(&date::text(clock)));
            }
        });
    }

    fn relay_interims(&mut self, place: usize, cx: &Context<'_>, go_on: bool) {
        let Some(stream) = self.streams.at(place) else { return };
        let Stage::Calling { interims, .. } = &stream.stage else { return };
        let id = stream.facts.id;
        let mut waiting = Vec::new();
        while let Some(interim) = interims.poll_next(cx) {
            waiting.push(interim);
        }
        for interim in waiting {
            self.queue_interim(id, interim.status, &interim.fields);
        }
        if go_on {
            self.queue_interim(id, StatusCode::CONTINUE, &HeaderMap::new());
        }
    }

    fn end_interims(&mut self, id: u32, interims: Interims) {
        for interim in interims.end(self.context.settings.limits.interims_max) {
            self.queue_interim(id, interim.status, &interim.fields);
        }
        self.interims = Some(interims);
    }

    fn queue_interim(&mut self, id: u32, status: StatusCode, fields: &HeaderMap) {
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            self.context.metrics.interims.add(1);
            self.queue.block(id, false, |block| {
                block.status(status);
                each(block, fields);
            });
        }
    }

    /// Answers a request that was refused while its call was under way, which is dropped.
    pub(super) fn refuse_stream(&mut self, place: usize, refusal: Refusal) {
        self.leave_content(place);
        let Some((facts, _)) = self.streams.close(place) else { return };
        self.queue_refusal(facts.id, (facts.window, facts.is_head), refusal);
        if !facts.has_ended {
            self.unended.push(facts.id);
        }
    }

    /// Answers a request that is none.
    pub(super) fn refuse(&mut self, id: u32, (has_ended, is_head): (bool, bool), refusal: Refusal) {
        let window = SendWindow::new(self.queue.client.initial_window);
        self.queue_refusal(id, (window, is_head), refusal);
        self.note_over(id, has_ended);
        if !has_ended {
            self.unended.push(id);
        }
    }

    fn queue_refusal(&mut self, id: u32, (window, is_head): (SendWindow, bool), refusal: Refusal) {
        let context = self.context;
        context.metrics.count_refusal(refusal);
        context.service.refused(refusal, Some(context.peer.clone()));
        let text = refusal.text();
        // Where the client takes no content, the status has to do.
        let has_text = !is_head && text.len() <= window.room().min(self.queue.window.room());
        self.queue.block(id, !has_text, |block| {
            block.status(refusal.status());
            block.field(&CONTENT_TYPE, &HeaderValue::from_static("text/plain; charset=utf-8"));
            block.field(&CACHE_CONTROL, &HeaderValue::from_static("no-store"));
            if has_text || is_head {
                block.number(&CONTENT_LENGTH_NAME, text.len() as u64);
            }
            block.field(&CACHE_STATUS, &refusal.cache_status());
            block.passing(&DATE, |text| text.extend_from_slice(&date::text(&context.settings.clock)));
        });
        if has_text {
            self.queue.window.sent(text.len());
            self.queue.frame((DATA, END_STREAM, id), text.as_bytes());
        }
        self.budget.finished();
    }

    /// Drops what a stream does. What was queued of it is sent.
    pub(super) fn drop_stream(&mut self, place: usize) {
        self.leave_content(place);
        match self.streams.close(place) {
            Some((_, Stage::Calling { .. })) => self.context.metrics.client_gone.add(1),
            Some((_, Stage::Sending { report, .. })) => self.streams.leave_report(place, report),
            Some((_, Stage::Over(_))) | None => {}
        }
    }

    /// Content that waits will not be taken any more, as far as this connection is concerned, and the stream has no turn any more.
    pub(super) fn leave_content(&mut self, place: usize) {
        let Some(stream) = self.streams.at_mut(place) else { return };
        if std::mem::take(&mut stream.is_scheduled) {
            self.schedule.remove(place);
        }
        if let Some(content) = stream.content.take() {
            self.receive_window.taken(content.leave());
        }
    }
}

static AGE: PassingName = PassingName::new("age");
static CACHE_STATUS_NAME: PassingName = PassingName::new("cache-status");
static CONTENT_LENGTH_NAME: PassingName = PassingName::new("content-length");
static DATE: PassingName = PassingName::new("date");

fn each(block: &mut Block<'_>, fields: &HeaderMap) {
    fields.iter().for_each(|(name, value)| block.field(name, value));
}

/// The least that a client must send of its content. A call of gRPC may pause for as long as a tunnel.
fn pace_of(head: &RequestHead, limits: &Limits) -> Pace {
    match limits.has_grpc && content_type::is_grpc(&head.fields) {
        true => Pace::new(limits.tunnel_idle, limits.tunnel_idle, 0),
        false => Pace::new(limits.body_idle, limits.rate_window, limits.rate_min),
    }
}
