//! One request and its response on an HTTP/2 stream.
//!
//! A stream is a task of its own. It ends early when the client resets it, which drops the call; it resets the stream
//! itself when the response's content breaks, or when the client keeps its window closed for too long.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Version};
use larder_http::body::Body;
use larder_http::fields::cache_status::CACHE_STATUS;
use larder_http::fields::content_type;
use larder_http::message::{Request, RequestHead, Response, ResponseHead};

use super::content::{ContentEvent, RequestContent, Side};
use super::head::{self, ParsedRequest};
use crate::content::{Gathered, Source};
use crate::context::ConnectionContext;
use crate::date;
use crate::delivery::Report;
use crate::error::Refusal;
use crate::service::{Interims, Service};
use crate::settings::Limits;
use crate::timer::{Pace, Timer};

/// How much content is handed to `h2` at once.
const PIECE_BYTES: usize = 32 * 1024;

/// How a stream ended, for the count of resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Answered, or cut by us.
    Finished,
    /// Reset by the client before the answer was complete.
    Reset,
}

/// Why a call was not answered.
enum Unanswered {
    Gone,
    Refused(Refusal),
}

/// Serves one stream.
pub(super) async fn serve<S: Service>(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    context: &ConnectionContext<S>,
) -> End {
    let limits = &context.settings.limits;
    let (parts, receive) = request.into_parts();
    let ParsedRequest { head, length, expects_continue, trailers } =
        match head::parse(parts, context.scheme, limits) {
            Ok(parsed) => parsed,
            Err(refusal) => return refuse(respond, context, refusal),
        };
    if length.zip(limits.body_bytes_max).is_some_and(|(length, most)| length > most) {
        return refuse(respond, context, Refusal::BodyTooLarge);
    }
    let side = Side::default();
    let body = if receive.is_end_stream() {
        Body::Empty
    } else {
        // Nothing, with an end that is still to come, is content of a length that is not known: a length of 0 would
        // tell the origin of an end that this client may yet break.
        let length = length.filter(|length| *length > 0);
        let pace = pace_of(&head, limits);
        let content = RequestContent::new(
            receive,
            side.clone(),
            length,
            expects_continue,
            (pace, limits.body_bytes_max),
        );
        Body::Stream { length, stream: Box::pin(content) }
    };
    let is_head = head.method == Method::HEAD;
    let mut interims = Interims::default();
    interims.begin(limits.interims_max);
    let request = Request { head, body, websocket: false, trailers, peer: context.peer.clone() };
    let called = {
        let mut call = context.service.call(request, &interims);
        poll_fn(|cx| {
            if let Poll::Ready(answer) = Pin::new(&mut call).poll(cx) {
                // What the service made of content that broke is not the answer: whose fault it was is known here.
                return Poll::Ready(match side.failed() {
                    Some(refusal) => {
                        drop(Report::new(&context.service, answer.1));
                        Err(Unanswered::Refused(refusal))
                    }
                    None => Ok(answer),
                });
            }
            poll_beside_call(cx, &mut respond, &side, &interims, context).map(Err)
        })
        .await
    };
    match called {
        Ok((response, receipt)) => {
            for interim in interims.end(limits.interims_max) {
                send_interim(&mut respond, context, interim.status, interim.fields);
            }
            let report = Report::new(&context.service, receipt);
            answer(respond, response, report, is_head, context).await
        }
        Err(Unanswered::Refused(refusal)) => refuse(respond, context, refusal),
        Err(Unanswered::Gone) => {
            context.metrics.client_gone.add(1);
            End::Reset
        }
    }
}

/// The least that a client must send of its content. A call of gRPC may pause for as long as a tunnel.
fn pace_of(head: &RequestHead, limits: &Limits) -> Pace {
    match content_type::is_grpc(&head.fields) {
        true => Pace::new(limits.tunnel_idle, limits.tunnel_idle, 0),
        false => Pace::new(limits.body_idle, limits.rate_window, limits.rate_min),
    }
}

fn poll_beside_call<S>(
    cx: &mut Context<'_>,
    respond: &mut SendResponse<Bytes>,
    side: &Side,
    interims: &Interims,
    context: &ConnectionContext<S>,
) -> Poll<Unanswered> {
    while let Some(interim) = interims.poll_next(cx) {
        send_interim(respond, context, interim.status, interim.fields);
    }
    while let Poll::Ready(told) = side.poll(cx) {
        match told {
            ContentEvent::Continue => send_interim(respond, context, StatusCode::CONTINUE, HeaderMap::new()),
            ContentEvent::Failed(refusal) => return Poll::Ready(Unanswered::Refused(refusal)),
        }
    }
    // A reset, or the end of the whole connection.
    respond.poll_reset(cx).map(|_| Unanswered::Gone)
}

fn send_interim<S>(
    respond: &mut SendResponse<Bytes>,
    context: &ConnectionContext<S>,
    status: StatusCode,
    fields: HeaderMap,
) {
    if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    let mut interim = http::Response::new(());
    *interim.status_mut() = status;
    *interim.headers_mut() = fields;
    if respond.send_informational(interim).is_ok() {
        context.metrics.interims.add(1);
    }
}

/// Answers a request that was refused. Dropping the stream afterwards tells the client to stop sending.
fn refuse<S: Service>(
    mut respond: SendResponse<Bytes>,
    context: &ConnectionContext<S>,
    refusal: Refusal,
) -> End {
    context.metrics.count_refusal(refusal);
    context.service.refused(refusal, Some(context.peer.clone()));
    let text = refusal.text();
    let mut response = http::Response::new(());
    *response.status_mut() = refusal.status();
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    fields.insert(CACHE_STATUS, refusal.cache_status());
    add_date(fields, context);
    if let Ok(mut stream) = respond.send_response(response, false) {
        // The text is shorter than any window but a closed one, and then `h2` keeps it as long as the stream lives.
        let _ = stream.send_data(Bytes::from(text), true);
    }
    End::Finished
}

fn add_date<S>(fields: &mut HeaderMap, context: &ConnectionContext<S>) {
    if let Some(date) = date::value(&context.settings.clock) {
        fields.insert(DATE, date);
    }
}

async fn answer<S: Service>(
    mut respond: SendResponse<Bytes>,
    response: Response,
    mut report: Report<'_, S>,
    is_head: bool,
    context: &ConnectionContext<S>,
) -> End {
    let Response { mut head, mut body, .. } = response;
    if head.status.is_informational() {
        // No stream becomes a tunnel: a switch is no answer here.
        head = ResponseHead::new(StatusCode::BAD_GATEWAY, HeaderMap::new());
        body = Body::Empty;
    }
    let may_have_content = head.status != StatusCode::NO_CONTENT && head.status != StatusCode::NOT_MODIFIED;
    let length = body.length().filter(|_| may_have_content && head.field(&CONTENT_LENGTH).is_none());
    let status = head.status;
    let mut fields = head.into_fields();
    if let Some(length) = length {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if !fields.contains_key(DATE) {
        add_date(&mut fields, context);
    }
    let mut message = http::Response::new(());
    *message.status_mut() = status;
    *message.version_mut() = Version::HTTP_2;
    *message.headers_mut() = fields;

    if is_head || !may_have_content || body.is_empty() {
        drop(body);
        report.complete = respond.send_response(message, true).is_ok();
        return if report.complete { End::Finished } else { End::Reset };
    }
    let Ok(mut stream) = respond.send_response(message, false) else {
        return End::Reset;
    };
    let limits = &context.settings.limits;
    let mut pace = Pace::new(limits.write_idle, limits.rate_window, limits.rate_min);
    let mut timer = Timer::default();
    let mut source = Gathered::new(Source::new(body));
    loop {
        let next = poll_fn(|cx| match source.poll_next(cx) {
            Poll::Ready(next) => Poll::Ready(Some(next)),
            // Nothing to send now: watch for the client to leave.
            Poll::Pending => stream.poll_reset(cx).map(|_| None),
        })
        .await;
        match next {
            None => return End::Reset,
            Some(None) => {
                report.complete = match source.take_trailers() {
                    Some(trailers) => stream.send_trailers(trailers).is_ok(),
                    None => stream.send_data(Bytes::new(), true).is_ok(),
                };
                return End::Finished;
            }
            Some(Some(Err(_))) => {
                context.metrics.responses_cut.add(1);
                // A reset drops what `h2` has not written of the stream, the head too. The connection's own task writes meanwhile, as
                // far as the client takes it.
                tokio::task::yield_now().await;
                stream.send_reset(Reason::INTERNAL_ERROR);
                return End::Finished;
            }
            Some(Some(Ok(bytes))) => {
                let bytes = source.together(bytes).await;
                let is_last = source.is_done();
                if let Err(end) =
                    send(&mut stream, bytes, is_last, &mut report, (&mut pace, &mut timer), context).await
                {
                    return end;
                }
                if is_last {
                    report.complete = true;
                    return End::Finished;
                }
            }
        }
    }
}

/// Hands `bytes` to `h2` as the windows allow, so that no more than they allow ever waits inside it.
async fn send<S: Service>(
    stream: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    is_last: bool,
    report: &mut Report<'_, S>,
    (pace, timer): (&mut Pace, &mut Timer),
    context: &ConnectionContext<S>,
) -> Result<(), End> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len().min(PIECE_BYTES));
        let room = poll_fn(|cx| {
            match stream.poll_capacity(cx) {
                Poll::Ready(Some(Ok(room))) => return Poll::Ready(Ok(room)),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(End::Reset)),
                Poll::Pending => {}
            }
            ready!(pace.poll_stalled(cx, timer));
            context.metrics.write_stalled.add(1);
            Poll::Ready(Err(End::Finished))
        })
        .await
        .inspect_err(|_| stream.send_reset(Reason::CANCEL))?;
        let piece = bytes.split_to(room.min(bytes.len()));
        let sent = piece.len() as u64;
        let ends = is_last && bytes.is_empty();
        stream.send_data(piece, ends).map_err(|_| End::Reset)?;
        pace.moved(sent);
        report.body_bytes += sent;
    }
    Ok(())
}
