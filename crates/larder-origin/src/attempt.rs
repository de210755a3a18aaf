//! One request over one connection, up to its final head, and whether a failure may be repeated.
//!
//! In: a lease on a connection and a request ready to be written. Out: hyper's response with the lease that its body
//! needs, or why there is none, together with the request where sending it again cannot repeat an effect (RFC 9110
//! 9.2.2): nothing of it was written, or it was a GET or HEAD without a body on a used connection that closed before
//! one byte of answer. A client's broken upload is told apart from an origin's failure here.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use larder_http::body::BodyError;
use larder_http::message::Interim;
use tokio::time::Instant;

use crate::answer::{self, InterimSink};
use crate::error::OriginError;
use crate::pool::Lease;
use crate::request::Outgoing;
use crate::settings::OriginSettings;
use crate::wire::Trace;

/// Interim responses handed on per exchange.
const INTERIMS_PASSED_MAX: usize = 16;

/// Interim responses after which an origin is taken to be broken.
const INTERIMS_MAX: usize = 64;

const TOO_MANY_INTERIMS: &str = "too many interim responses";

/// An attempt that failed.
pub(crate) struct Failed {
    pub(crate) error: OriginError,
    /// The request, where sending it again cannot repeat an effect.
    pub(crate) again: Option<Outgoing>,
}

/// What came of an attempt that did not fail.
pub(crate) struct Answered {
    pub(crate) lease: Lease,
    pub(crate) response: Response<Incoming>,
    pub(crate) is_upload_complete: bool,
}

/// Sends `outgoing` over `lease` and waits for the final head.
pub(crate) async fn attempt(
    mut lease: Lease,
    outgoing: Outgoing,
    interims: Option<&InterimSink>,
    settings: &OriginSettings,
) -> Result<Answered, Failed> {
    let trace = lease.connection.trace.clone();
    let mark = trace.begin();
    // A new connection cannot have gone stale, so only a kept one needs what a second attempt would send.
    let replay = if lease.is_reused { outgoing.replay() } else { None };
    let is_plain_read =
        outgoing.body.is_nothing() && matches!(*outgoing.head.method(), Method::GET | Method::HEAD);
    let progress = outgoing.body.progress();
    let mut request = outgoing.into_request();
    relay_interims(&mut request, interims.cloned(), trace.clone());

    let mut answer = pin!(lease.connection.sender.try_send_request(request));
    let limit = settings.timeouts.first_byte;
    let mut timer = pin!(tokio::time::sleep_until(trace.last_write() + limit));
    let outcome = std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = answer.as_mut().poll(cx) {
            return Poll::Ready(Ok(outcome));
        }
        while timer.as_mut().poll(cx).is_ready() {
            let deadline = trace.last_write() + limit;
            if deadline <= Instant::now() {
                return Poll::Ready(Err(()));
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    });
    match outcome.await {
        Ok(Ok(_)) if trace.are_reads_refused() => {
            Err(Failed { error: OriginError::BadResponse(TOO_MANY_INTERIMS), again: None })
        }
        Ok(Ok(response)) => {
            let is_upload_complete = progress.is_complete();
            if !is_upload_complete {
                progress.stop();
                lease.shared().metrics.upload_stopped();
            }
            Ok(Answered { lease, response, is_upload_complete })
        }
        Ok(Err(_)) | Err(()) if progress.error().is_some() => {
            let error = progress.error().unwrap_or(BodyError::Cut);
            Err(Failed { error: OriginError::ClientBody(error), again: None })
        }
        // The client is what we are waiting for; its own limit should have ended this before.
        Err(()) if progress.is_waiting() => {
            Err(Failed { error: OriginError::ClientBody(BodyError::Stalled), again: None })
        }
        Err(()) => Err(Failed { error: OriginError::FirstByteTimeout, again: None }),
        Ok(Err(mut unsent)) => {
            let message = unsent.take_message();
            let error = head_error(&unsent.into_error(), &trace);
            let may_repeat = !trace.has_written_since(mark)
                || (lease.is_reused && is_plain_read && !trace.has_read_since(mark));
            let again = match message {
                Some(request) => Some(Outgoing::from_request(request)),
                None if may_repeat && matches!(error, OriginError::Closed) => replay,
                None => None,
            };
            if again.is_some() && lease.is_reused {
                lease.shared().metrics.retried();
            }
            Err(Failed { error, again })
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
    } else {
        OriginError::Closed
    }
}

/// Hands interim responses on, and counts them also where nobody wants them: hyper reads any number.
fn relay_interims<B>(request: &mut http::Request<B>, sink: Option<InterimSink>, trace: Arc<Trace>) {
    let seen = AtomicUsize::new(0);
    let passed = AtomicUsize::new(0);
    hyper::ext::on_informational(request, move |interim| {
        if seen.fetch_add(1, Ordering::Relaxed) >= INTERIMS_MAX {
            return trace.refuse_reads();
        }
        // 100 belongs to this connection: the listener has answered the client's Expect itself.
        let Some(sink) = sink.as_ref().filter(|_| interim.status() != StatusCode::CONTINUE) else {
            return;
        };
        if passed.fetch_add(1, Ordering::Relaxed) < INTERIMS_PASSED_MAX {
            let mut fields = interim.headers().clone();
            answer::strip(&mut fields);
            sink(Interim { status: interim.status(), fields });
        }
    });
}
