//! One request and its final head on a stream of an HTTP/2 connection, and whether a failure may be repeated.
//!
//! In: a lease on room for a stream. Out: what an HTTP/1.1 attempt gives. Nothing was processed, and the request may
//! be sent again whatever it is, where the peer says so (REFUSED_STREAM, or GOAWAY with a lower last stream; RFC 9113
//! 8.7) or where the connection had ended before. Beyond that the rule of a used connection holds: a GET or HEAD
//! without a body whose connection ended before a byte of its answer. The same requests, and no others, are sent over
//! HTTP/1.1 where the peer wants that (HTTP_1_1_REQUIRED), because it does not promise that it did nothing.
//! Every way out but the good one drops the stream's handles, which resets it.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use h2::client::ResponseFuture;
use h2::{Reason, RecvStream};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::LAST_STREAM_ID;
use super::content::Content;
use super::head;
use super::sending::{Sending, Uploading};
use crate::answer::InterimSink;
use crate::attempt::{Answered, Failed, Interims, Late, TOO_MANY_INTERIMS, first_byte_limit, is_plain_read};
use crate::download::Incoming;
use crate::error::OriginError;
use crate::lease::Lease;
use crate::request::Outgoing;
use crate::settings::OriginSettings;
use crate::upload::Upload;

/// What a client's streams begin with (RFC 9113 5.1.1).
const FIRST_STREAM_ID: u32 = 1;

/// What the wait for a head ended with.
enum Outcome {
    Head(Response<RecvStream>),
    Stream(h2::Error),
    Refused(OriginError),
    Late(Late),
}

/// Sends `outgoing` over a stream of the connection that `lease` has room on, and waits for the final head.
pub(crate) async fn exchange(
    lease: Lease,
    outgoing: Outgoing,
    interims: Option<&InterimSink>,
    settings: &OriginSettings,
    total: Option<Instant>,
) -> Result<Answered, Failed> {
    let Some(slot) = lease.slot() else {
        return Err(Failed::new(OriginError::Closed, Some(outgoing)));
    };
    let connection = slot.connection.clone();
    let is_plain_read = is_plain_read(&outgoing);
    let (parts, mut upload) = outgoing.into_request().into_parts();
    upload.send_unannounced(true);
    let head = match head::translate(&parts, connection.scheme) {
        Ok(head) => head,
        Err(error) => {
            slot.end();
            return Err(Failed::new(error, None));
        }
    };
    let may_have_content = |status| {
        parts.method != Method::HEAD && status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
    };
    let progress = upload.progress();
    let replay = upload.replay();
    let mark = connection.trace.mark();
    let (mut answer, stream) = match connection.sender.clone().send_request(head, upload.is_nothing()) {
        Ok(sent) => sent,
        Err(error) => {
            slot.end();
            connection.retire();
            return Err(not_sent(&error, parts, upload));
        }
    };
    let stream_id = answer.stream_id().as_u32();
    if stream_id >= LAST_STREAM_ID {
        connection.retire();
    }
    let mut sending = Sending::new(stream, upload);
    let mut is_sending = !sending.is_complete();
    let interims = Interims::new(interims.cloned());
    let limit = first_byte_limit(&parts.headers, settings);
    let mut timer = pin!(sleep_until(Late::at(sending.last_write(), limit, total)));
    let outcome = poll_fn(|cx| {
        if let Poll::Ready(outcome) = poll_head(cx, &mut answer, &interims, settings) {
            return Poll::Ready(outcome);
        }
        if is_sending && sending.poll(cx).is_ready() {
            is_sending = false;
            if let Some(error) = progress.error() {
                return Poll::Ready(Outcome::Refused(OriginError::ClientBody(error)));
            }
        }
        poll_late(cx, timer.as_mut(), || Late::at(sending.last_write(), limit, total), total)
    })
    .await;
    match outcome {
        Outcome::Head(response) => {
            let is_upload_complete = sending.is_complete();
            let (head, receive) = response.into_parts();
            let may_have_content = may_have_content(head.status);
            // Both directions may go on side by side, as they do in gRPC. A failure, or an answer that has ended, needs no
            // more of the request.
            let goes_on =
                is_sending && may_have_content && head.status.is_success() && !receive.is_end_stream();
            let uploading = if goes_on {
                Some(Uploading::start(sending, progress))
            } else {
                if !is_upload_complete {
                    progress.stop();
                    sending.stop();
                    lease.counters().upload_stopped();
                }
                None
            };
            if (!is_upload_complete && uploading.is_none()) || (!may_have_content && !receive.is_end_stream())
            {
                slot.leave();
            }
            let content = Content::new(receive, &head.headers, may_have_content);
            let response = Response::from_parts(head, Incoming::Http2(content));
            Ok(Answered { lease, response, is_upload_complete, uploading })
        }
        Outcome::Refused(error) => Err(Failed::new(error, None)),
        Outcome::Late(late) => {
            let error = late.error(&progress);
            if matches!(error, OriginError::FirstByteTimeout) && !connection.trace.has_read_since(mark) {
                // Not one byte for anybody in all that time. A peer that is gone is found by PING, but only after
                // twenty seconds; where the limit is shorter, nobody else should wait on it for as long.
                connection.retire();
            }
            Err(Failed::new(error, None))
        }
        Outcome::Stream(error) => {
            let was_processed = !is_unprocessed(&error);
            if !was_processed || !error.is_reset() {
                connection.retire();
            }
            // Where the connection itself was broken it need not have been by this stream, unless there was no other.
            let is_broken = error.is_library() && (error.is_reset() || stream_id == FIRST_STREAM_ID);
            match is_broken {
                true => slot.blame(),
                false => slot.end(),
            }
            let needs_http1 = error.is_remote() && error.reason() == Some(Reason::HTTP_1_1_REQUIRED);
            let untouched = sending.into_untouched().or(replay);
            let is_repeatable = match error.is_reset() {
                true => needs_http1,
                false => lease.is_reused,
            };
            let may_repeat = !was_processed || (is_repeatable && is_plain_read && !interims.is_any());
            let error = match progress.error() {
                Some(error) => OriginError::ClientBody(error),
                None if is_broken => OriginError::BadResponse("malformed http/2 message"),
                None => larder_tls::alert_within(&error).map_or(OriginError::Closed, OriginError::tls),
            };
            let again = match error {
                OriginError::Closed if may_repeat => untouched,
                _ => None,
            };
            let again = again.map(|upload| Outgoing::from_request(Request::from_parts(parts, upload)));
            Err(Failed { error, again, needs_http1 })
        }
    }
}

/// `h2` took no request: the connection has ended, or the head is none.
fn not_sent(error: &h2::Error, parts: Parts, upload: Upload) -> Failed {
    if !error.is_go_away() && !error.is_io() && !error.is_reset() {
        return Failed::new(OriginError::BadRequest("head, over http/2,"), None);
    }
    let again = Outgoing::from_request(Request::from_parts(parts, upload));
    Failed::new(OriginError::Closed, Some(again))
}

/// Whether the peer promises that it did nothing with the request.
fn is_unprocessed(error: &h2::Error) -> bool {
    // `h2` gives GOAWAY as the reason only to streams above the last one that the peer named.
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (is_refused || error.is_go_away())
}

/// Interim responses as they come, then the final head.
fn poll_head(
    cx: &mut Context<'_>,
    answer: &mut ResponseFuture,
    interims: &Interims,
    settings: &OriginSettings,
) -> Poll<Outcome> {
    loop {
        match answer.poll_informational(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Outcome::Stream(error)),
            Poll::Ready(Some(Ok(interim))) => {
                // RFC 9113 8.6 has no 101.
                if interim.status() == StatusCode::SWITCHING_PROTOCOLS {
                    return Poll::Ready(Outcome::Refused(OriginError::UnexpectedUpgrade));
                }
                if is_too_large(interim.headers(), settings) {
                    return Poll::Ready(Outcome::Refused(OriginError::HeadTooLarge));
                }
                if !interims.pass(interim.status(), interim.headers()) {
                    return Poll::Ready(Outcome::Refused(OriginError::BadResponse(TOO_MANY_INTERIMS)));
                }
            }
            Poll::Ready(None) => break,
        }
    }
    Pin::new(answer).poll(cx).map(|outcome| match outcome {
        Ok(response) if is_too_large(response.headers(), settings) => {
            Outcome::Refused(OriginError::HeadTooLarge)
        }
        Ok(response) => Outcome::Head(response),
        Err(error) => Outcome::Stream(error),
    })
}

/// Whether a head is larger than it may be, counted as HTTP/1.1 would write its fields.
fn is_too_large(fields: &HeaderMap, settings: &OriginSettings) -> bool {
    let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    bytes > settings.head.bytes_max || fields.len() > settings.head.fields_max
}

/// Ready when the time is up that `deadline` gives at that moment.
fn poll_late(
    cx: &mut Context<'_>,
    mut timer: Pin<&mut Sleep>,
    deadline: impl Fn() -> Instant,
    total: Option<Instant>,
) -> Poll<Outcome> {
    while timer.as_mut().poll(cx).is_ready() {
        let now = Instant::now();
        if deadline() <= now {
            return Poll::Ready(Outcome::Late(Late::which(now, total)));
        }
        timer.as_mut().reset(deadline());
    }
    Poll::Pending
}
