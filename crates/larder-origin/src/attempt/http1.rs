//! One request and its final head on an HTTP/1.1 connection.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use larder_http::body::BodyError;
use tokio::time::Instant;

use super::interims::{Interims, TOO_MANY_INTERIMS};
use super::late::{Late, first_byte_limit};
use super::outcome::{Answered, Failed, is_plain_read};
use crate::answer::InterimSink;
use crate::download::Incoming;
use crate::error::OriginError;
use crate::lease::Lease;
use crate::request::Outgoing;
use crate::settings::OriginSettings;
use crate::wire::Trace;

/// Sends `outgoing` over the connection of `lease`, and waits for the final head.
pub(super) async fn exchange(
    mut lease: Lease,
    mut outgoing: Outgoing,
    interims: Option<&InterimSink>,
    settings: &OriginSettings,
    total: Option<Instant>,
) -> Result<Answered, Failed> {
    outgoing.body.send_unannounced(false);
    // A new connection cannot have gone stale, so only a kept one needs what a second attempt would send.
    let is_reused = lease.is_reused;
    let Some(connection) = lease.http1() else {
        return Err(Failed::new(OriginError::Closed, Some(outgoing)));
    };
    let trace = connection.trace.clone();
    let mark = trace.begin();
    let replay = if is_reused { outgoing.replay() } else { None };
    let is_plain_read = is_plain_read(&outgoing);
    let progress = outgoing.body.progress();
    let mut request = outgoing.into_request();
    relay_interims(&mut request, interims.cloned(), trace.clone());
    let limit = first_byte_limit(request.headers(), settings);

    let mut answer = pin!(connection.sender.try_send_request(request));
    let mut timer = pin!(tokio::time::sleep_until(Late::at(trace.last_write(), limit, total)));
    let outcome = std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = answer.as_mut().poll(cx) {
            return Poll::Ready(Ok(outcome));
        }
        while timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let deadline = Late::at(trace.last_write(), limit, total);
            if deadline <= now {
                return Poll::Ready(Err(Late::which(now, total)));
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    });
    match outcome.await {
        Ok(Ok(_)) if trace.are_reads_refused() => {
            Err(Failed::new(OriginError::BadResponse(TOO_MANY_INTERIMS), None))
        }
        Ok(Ok(response)) => {
            let is_upload_complete = progress.is_complete();
            if !is_upload_complete {
                progress.stop();
                lease.counters().upload_stopped();
            }
            Ok(Answered {
                lease,
                response: response.map(Incoming::Http1),
                is_upload_complete,
                uploading: None,
            })
        }
        Err(late) => Err(Failed::new(late.error(&progress), None)),
        Ok(Err(_)) if progress.error().is_some() => {
            let error = progress.error().unwrap_or(BodyError::Cut);
            Err(Failed::new(OriginError::ClientBody(error), None))
        }
        Ok(Err(mut unsent)) => {
            let message = unsent.take_message();
            let error = head_error(&unsent.into_error(), &trace);
            let may_repeat =
                !trace.has_written_since(mark) || (is_reused && is_plain_read && !trace.has_read_since(mark));
            let again = match message {
                Some(request) => Some(Outgoing::from_request(request)),
                None if may_repeat && matches!(error, OriginError::Closed) => replay,
                None => None,
            };
            Err(Failed::new(error, again))
        }
    }
}

/// Why hyper has no head for us.
fn head_error(error: &hyper::Error, trace: &Trace) -> OriginError {
    if trace.are_reads_refused() {
        OriginError::BadResponse(TOO_MANY_INTERIMS)
    } else if error.is_parse_too_large() {
        OriginError::HeadTooLarge
    } else if error.is_parse() || error.is_parse_status() {
        OriginError::BadResponse("malformed head")
    } else if let Some(alert) = larder_tls::alert_within(error) {
        OriginError::tls(alert)
    } else {
        OriginError::Closed
    }
}

/// hyper reads any number of interim responses; its only way out is through the wire.
fn relay_interims<B>(request: &mut http::Request<B>, sink: Option<InterimSink>, trace: Arc<Trace>) {
    let interims = Interims::new(sink);
    hyper::ext::on_informational(request, move |interim| {
        if !interims.pass(interim.status(), interim.headers()) {
            trace.refuse_reads();
        }
    });
}
