//! One request and its response on an HTTP/1 connection.
//!
//! The call and the response are two waits over the same set of things: the service, the request's content, the
//! write side, the client's presence, and the limits on all of them. Each is polled in turn by the connection's task.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, StatusCode, Version};
use larder_http::body::{Body, BodyError};
use larder_http::framing::{Decoded, Framing};
use larder_http::message::{Request, Response, ResponseHead, Tunnel};
use larder_http::trailers::Wish;
use tokio::time::Instant;

use super::head::ParsedHead;
use super::incoming::{Demand, Incoming};
use super::respond::{self, Content, Delimited, Persistence};
use super::{Conn, Next, READ_CONTENT_BYTES, Stop};
use crate::byte_stream::ByteStream;
use crate::delivery::Report;
use crate::detect::READ_BYTES;
use crate::error::Refusal;
use crate::service::{Interims, Service};
use crate::timer::Pace;

/// What happened on the read side.
enum Flow {
    /// Content reached its reader, or its end.
    Moved,
    /// The client is gone.
    Left,
    /// The content broke; its reader knows.
    Failed(Refusal),
}

/// How an exchange ended.
enum Ended<'a, S: Service> {
    Over(Next),
    Refused(Refusal),
    Tunnel(Box<Switching<'a, S>>),
}

/// What has to be remembered of a request when its response is framed.
struct Asked {
    version: Version,
    is_head: bool,
    may_persist: bool,
    websocket: bool,
    /// Whether it takes trailers behind its answer.
    takes_trailers: bool,
    /// Whether no content came with it.
    is_bare: bool,
    /// How many interim responses it may have.
    interims: usize,
}

/// An exchange under way. Most are over when they have been polled once: those never leave the stack.
struct Exchange<S: Service> {
    stage: Stage<S::Call>,
    asked: Asked,
    incoming: Incoming,
    interims: Interims,
    pace: Option<Pace>,
}

enum Stage<C> {
    /// The service works.
    Calling(C),
    /// The head is queued, and the content follows.
    Sending { content: Content, must_close: bool },
}

/// An exchange after its first poll.
enum Polled<'a, S: Service> {
    Ended(Ended<'a, S>),
    Pending(Box<Exchange<S>>),
}

impl<'a, T: ByteStream, S: Service> Conn<'a, T, S> {
    /// Serves the request whose head lies at `extent` of the read buffer.
    pub(super) async fn exchange(&mut self, extent: Range<usize>) -> Next {
        let polled = poll_fn(|cx| Poll::Ready(self.start(cx, &extent))).await;
        let ended = match polled {
            Polled::Ended(ended) => ended,
            Polled::Pending(mut exchange) => {
                let ended = poll_fn(|cx| self.poll_exchange(cx, &mut exchange)).await;
                self.interims = Some(exchange.interims);
                ended
            }
        };
        match ended {
            Ended::Over(next) => next,
            Ended::Refused(refusal) => self.refuse(refusal).await,
            Ended::Tunnel(switching) => self.open_tunnel(*switching).await,
        }
    }

    /// Begins an exchange and takes it as far as it goes without waiting.
    fn start(&mut self, cx: &mut Context<'_>, extent: &Range<usize>) -> Polled<'a, S> {
        let (request, asked, incoming) = match self.receive(extent) {
            Ok(received) => received,
            Err(refusal) => return Polled::Ended(Ended::Refused(refusal)),
        };
        let mut interims = self.interims.take().unwrap_or_default();
        interims.begin(asked.interims);
        let stage = Stage::Calling(self.context.service.call(request, &interims));
        let mut exchange = Exchange { stage, asked, incoming, interims, pace: None };
        match self.poll_exchange(cx, &mut exchange) {
            Poll::Ready(ended) => {
                self.interims = Some(exchange.interims);
                Polled::Ended(ended)
            }
            Poll::Pending => Polled::Pending(Box::new(exchange)),
        }
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>, exchange: &mut Exchange<S>) -> Poll<Ended<'a, S>> {
        let Exchange { stage, asked, incoming, interims, pace } = exchange;
        loop {
            match stage {
                Stage::Calling(call) => {
                    if let Poll::Ready(answer) = Pin::new(call).poll(cx) {
                        match self.begin(answer, asked, incoming, interims) {
                            Begun::Content { content, must_close } => {
                                *stage = Stage::Sending { content, must_close };
                                *pace = None;
                            }
                            Begun::Tunnel(switching) => return Poll::Ready(Ended::Tunnel(switching)),
                        }
                    } else if let Err(ended) = ready!(self.poll_beside_call(cx, incoming, interims, pace)) {
                        return Poll::Ready(ended);
                    }
                    // Else content moved, and its reader may be the call itself: it is polled again at once.
                }
                Stage::Sending { content, must_close } => {
                    let sent = ready!(self.poll_send(cx, content, incoming, pace));
                    return Poll::Ready(Ended::Over(self.sent(sent, *must_close, asked)));
                }
            }
        }
    }

    /// Takes the head from the buffer and makes the request of it.
    fn receive(&mut self, extent: &Range<usize>) -> Result<(Request, Asked, Incoming), Refusal> {
        let context = self.context;
        let limits = &context.settings.limits;
        let ParsedHead { head, framing, options, expects_continue, websocket, announced } =
            self.parse(extent)?;
        if let (Framing::Length(length), Some(most)) = (framing, limits.body_bytes_max)
            && length > most
        {
            return Err(Refusal::BodyTooLarge);
        }
        let asked = Asked {
            version: head.version,
            is_head: head.method == Method::HEAD,
            may_persist: !options.close && (head.version == Version::HTTP_11 || options.keep_alive),
            websocket,
            takes_trailers: options.te_trailers,
            is_bare: matches!(framing, Framing::None),
            interims: if head.version == Version::HTTP_11 { limits.interims_max } else { 0 },
        };
        let (incoming, body) = Incoming::new(framing, expects_continue);
        context.metrics.requests_http1.add(1);
        let trailers = Wish { takes: options.te_trailers, announced };
        Ok((Request { head, body, websocket, trailers, peer: context.peer.clone() }, asked, incoming))
    }

    /// Everything that goes on while the service works: ready when content moved, or the call is in vain.
    fn poll_beside_call(
        &mut self,
        cx: &mut Context<'_>,
        incoming: &mut Incoming,
        interims: &Interims,
        pace: &mut Option<Pace>,
    ) -> Poll<Result<(), Ended<'a, S>>> {
        while let Some(interim) = interims.poll_next(cx) {
            self.queue_interim(interim.status, &interim.fields);
        }
        let flow = self.poll_incoming(cx, incoming, false);
        // Written also when content moved: the reader may wait for what the client sends after its 100.
        match self.poll_flush(cx, pace) {
            Poll::Ready(Err(Stop::Gone | Stop::Stalled)) => return Poll::Ready(Err(self.left())),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        match ready!(flow) {
            Flow::Moved => Poll::Ready(Ok(())),
            Flow::Left => Poll::Ready(Err(self.left())),
            Flow::Failed(refusal) => Poll::Ready(Err(Ended::Refused(refusal))),
        }
    }

    /// The client has left before its answer.
    fn left(&self) -> Ended<'a, S> {
        self.context.metrics.client_gone.add(1);
        Ended::Over(Next::Close)
    }

    /// Moves request content from the connection to its reader, as far as it asks; with none left, watches for the
    /// client to leave.
    fn poll_incoming(&mut self, cx: &mut Context<'_>, incoming: &mut Incoming, answered: bool) -> Poll<Flow> {
        let limits = &self.context.settings.limits;
        while !incoming.is_complete() {
            if incoming.is_broken() {
                return Poll::Pending;
            }
            match incoming.demand(cx) {
                Demand::Later if answered || incoming.awaits_continue => return Poll::Pending,
                Demand::Later => return self.poll_left_unread(cx, incoming.missing()),
                Demand::Wanted if incoming.awaits_continue && !answered => {
                    incoming.awaits_continue = false;
                    self.queue_interim(StatusCode::CONTINUE, &HeaderMap::new());
                }
                Demand::Wanted => {}
                Demand::Nobody => {
                    if incoming.awaits_continue || incoming.discarded > limits.unread_bytes_max {
                        return Poll::Pending;
                    }
                }
            }
            match incoming.decode(&mut self.read) {
                Ok(Decoded::Data(bytes)) => {
                    if limits.body_bytes_max.is_some_and(|most| incoming.received > most) {
                        incoming.fail(BodyError::TooLarge);
                        return Poll::Ready(Flow::Failed(Refusal::BodyTooLarge));
                    }
                    incoming.give(bytes);
                    return Poll::Ready(Flow::Moved);
                }
                Ok(Decoded::End) => {
                    incoming.finish();
                    return Poll::Ready(Flow::Moved);
                }
                Err(error) => {
                    incoming.fail(BodyError::Framing);
                    return Poll::Ready(Flow::Failed(Refusal::Framing(error)));
                }
                Ok(Decoded::NeedMore) => {}
            }
            if self.eof {
                incoming.fail(BodyError::Cut);
                return Poll::Ready(Flow::Failed(Refusal::BodyCut));
            }
            match self.poll_fill(cx, READ_CONTENT_BYTES) {
                Poll::Ready(Ok(read)) => {
                    if let Some(pace) = &mut incoming.pace {
                        pace.moved(read as u64);
                    }
                }
                Poll::Ready(Err(_)) => {
                    incoming.fail(BodyError::Cut);
                    return Poll::Ready(Flow::Left);
                }
                Poll::Pending => {
                    let pace = incoming.pace.get_or_insert_with(|| {
                        Box::new(Pace::new(limits.body_idle, limits.rate_window, limits.rate_min))
                    });
                    ready!(pace.poll_stalled(cx, &mut self.timer));
                    incoming.fail(BodyError::Stalled);
                    return Poll::Ready(Flow::Failed(Refusal::BodyTimeout));
                }
            }
        }
        self.poll_left(cx)
    }

    /// Ready when the client has left. What it sends ahead meanwhile is kept for later, as much as one head may hold.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<Flow> {
        while !self.eof && self.read.len() < self.context.settings.limits.head_bytes_max {
            match ready!(self.poll_fill(cx, READ_BYTES)) {
                // With requests in hand that are not answered yet, it has only closed its own direction.
                Ok(0) if self.read.is_empty() => return Poll::Ready(Flow::Left),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Flow::Left),
            }
        }
        Poll::Pending
    }

    /// Ready when the client has left while its content waits for its reader, where what is `missing` of that fits into one
    /// head's bound: a form that queues for an origin is not sent for somebody who has gone. More is not read ahead, so
    /// that a slow origin slows the client down.
    fn poll_left_unread(&mut self, cx: &mut Context<'_>, missing: Option<u64>) -> Poll<Flow> {
        let most = self.context.settings.limits.head_bytes_max;
        let Some(missing) = missing.and_then(|missing| usize::try_from(missing).ok()) else {
            return Poll::Pending;
        };
        while !self.eof && missing < most && self.read.len() < most {
            match ready!(self.poll_fill(cx, READ_BYTES)) {
                // With more than its content in hand, it has only closed its own direction; with less, its reader is to hear
                // that it was cut.
                Ok(0) if self.read.len() == missing => return Poll::Ready(Flow::Left),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Flow::Left),
            }
        }
        Poll::Pending
    }

    fn queue_interim(&mut self, status: StatusCode, fields: &HeaderMap) {
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            self.context.metrics.interims.add(1);
            self.out.inline(|out| respond::write_interim(out, status, fields));
        }
    }

    /// Sends the content of a response whose head is queued.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        content: &mut Content,
        incoming: &mut Incoming,
        pace: &mut Option<Pace>,
    ) -> Poll<Sent> {
        loop {
            let queued = content.poll_queue(cx, &mut self.out);
            match self.poll_flush(cx, pace) {
                Poll::Ready(Ok(())) if content.is_cut() => {
                    return Poll::Ready(Sent::Cut { ends_with_connection: content.ends_with_connection() });
                }
                Poll::Ready(Ok(())) if content.is_done() => return Poll::Ready(Sent::All),
                Poll::Ready(Ok(())) if queued.is_ready() => continue,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(Stop::Gone | Stop::Stalled)) => return Poll::Ready(Sent::Stopped),
                Poll::Pending if incoming.is_complete() => return Poll::Pending,
                Poll::Pending => {}
            }
            match ready!(self.poll_incoming(cx, incoming, true)) {
                // The response may be waiting for what the client sends.
                Flow::Moved => {}
                // The connection closes after the response anyway.
                Flow::Failed(_) => {}
                Flow::Left => return Poll::Ready(Sent::Stopped),
            }
        }
    }

    /// Closes the account of a response, and says what comes next.
    fn sent(&mut self, sent: Sent, must_close: bool, asked: &Asked) -> Next {
        let now = Instant::now();
        self.idle_since = Some(now);
        if let Some(mut report) = self.report.take() {
            report.complete = matches!(sent, Sent::All);
            report.ended = Some(now);
        }
        if !matches!(sent, Sent::All) {
            self.out.clear();
        }
        match sent {
            // A client that wanted the end sends no other request (RFC 9112 9.6). To be closed on at once it must not even have
            // sent what might have bytes behind it: one that the kernel still holds would make the close a reset.
            Sent::All
                if !asked.may_persist
                    && asked.is_bare
                    && T::READS_ALL
                    && self.read.is_empty()
                    && !self.may_have_more =>
            {
                Next::Close
            }
            Sent::All if must_close => Next::Linger,
            Sent::All => Next::KeepAlive,
            Sent::Stopped => Next::Reset,
            Sent::Cut { ends_with_connection } => {
                self.context.metrics.responses_cut.add(1);
                // A reset throws away what the kernel has not sent yet, and what the client has not read. Where the framing shows
                // that the end is missing, an orderly close loses nothing of either.
                if ends_with_connection { Next::Reset } else { Next::Linger }
            }
        }
    }

    /// Frames the response and queues its head.
    fn begin(
        &mut self,
        (response, receipt): (Response, S::Receipt),
        asked: &Asked,
        incoming: &mut Incoming,
        interims: &Interims,
    ) -> Begun<'a, S> {
        for interim in interims.end(asked.interims) {
            self.queue_interim(interim.status, &interim.fields);
        }
        let Response { mut head, mut body, tunnel, close } = response;
        let report = Report::new(&self.context.service, receipt);
        let mut must_close = close;
        if head.status.is_informational() {
            if let (StatusCode::SWITCHING_PROTOCOLS, Some(tunnel), true) =
                (head.status, tunnel, asked.websocket)
            {
                return Begun::Tunnel(Box::new(Switching { head, tunnel, report }));
            }
            // A switch that nobody asked for is no answer to this client.
            head = ResponseHead::new(StatusCode::BAD_GATEWAY, HeaderMap::new());
            body = Body::Empty;
            must_close = true;
        }

        // Content that nobody reads and that is here already does not cost the connection; whatever is still to come
        // might be taken for a request, or might never come at all.
        incoming.discard_buffered(&mut self.read);
        let delimited = Delimited::of(&head, &body, asked.version, asked.is_head);
        must_close |= !incoming.is_complete()
            || !asked.may_persist
            || delimited == Delimited::Close
            || self.context.settings.limits.keep_alive_idle.is_zero()
            || self.drain.is_draining();
        let persistence = match asked.version {
            _ if must_close => Persistence::Close,
            Version::HTTP_10 => Persistence::KeepAlive,
            _ => Persistence::Implied,
        };
        let sends_content = !asked.is_head && delimited != Delimited::Never;
        debug_assert!(
            !sends_content || head.field(&CONTENT_LENGTH).is_none(),
            "framing is the listener's affair"
        );
        if matches!(body, Body::Stream { .. }) {
            respond::settle_announcement(&mut head, delimited, asked.takes_trailers);
        }
        let clock = &self.context.settings.clock;
        self.out.inline(|out| respond::write_head(out, &head, delimited, persistence, clock));
        drop(head);
        // What is not sent is let go of before anything waits.
        let body = if sends_content { body } else { Body::Empty };
        self.report = Some(report);
        Begun::Content {
            content: Content::new(body, delimited, T::SENDS_FILES, asked.takes_trailers),
            must_close,
        }
    }

    async fn open_tunnel(&mut self, switching: Switching<'a, S>) -> Next {
        let Switching { head, tunnel, mut report } = switching;
        let settings = &self.context.settings;
        self.out.inline(|out| {
            respond::write_head(out, &head, Delimited::Never, Persistence::Upgrade, &settings.clock);
        });
        let mut pace = None;
        if poll_fn(|cx| self.poll_flush(cx, &mut pace)).await.is_err() {
            return Next::Close;
        }
        report.complete = true;
        drop(report);
        self.context.metrics.tunnels.add(1);
        Next::Tunnel(tunnel)
    }
}

/// A response whose head is queued.
enum Begun<'a, S: Service> {
    Content { content: Content, must_close: bool },
    Tunnel(Box<Switching<'a, S>>),
}

/// A switch that the client asked for.
struct Switching<'a, S: Service> {
    head: ResponseHead,
    tunnel: Tunnel,
    report: Report<'a, S>,
}

/// How sending a response ended.
enum Sent {
    All,
    /// The client is gone, or too slow.
    Stopped,
    /// The content broke on its way here. All that came of it is with the kernel.
    Cut {
        ends_with_connection: bool,
    },
}
