//! One request over one connection, up to its final head, and whether a failure may be repeated.
//!
//! In: a lease on a connection and a request ready to be written. Out: the response with the lease that its body
//! needs, or why there is none, together with the request where sending it again cannot repeat an effect (RFC 9110
//! 9.2.2): nothing of it was written, or it was a GET or HEAD without a body on a used connection that closed before
//! one byte of answer. A client's broken upload is told apart from an origin's failure here.
//! This file has what both versions of HTTP share and HTTP/1.1 itself; HTTP/2 is in `http2`.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, Method, Response, StatusCode};
use larder_http::body::BodyError;
use larder_http::fields::content_type;
use larder_http::message::Interim;
use tokio::time::Instant;

use crate::answer::{self, InterimSink};
use crate::download::Incoming;
use crate::error::OriginError;
use crate::http2::{self, Uploading};
use crate::lease::{Held, Lease};
use crate::request::Outgoing;
use crate::settings::{OriginSettings, Timeouts};
use crate::tls;
use crate::upload::UploadProgress;
use crate::wire::Trace;

/// Interim responses handed on per exchange.
const INTERIMS_PASSED_MAX: usize = 16;

/// Interim responses after which an origin is taken to be broken.
const INTERIMS_MAX: usize = 64;

pub(crate) const TOO_MANY_INTERIMS: &str = "too many interim responses";

/// An attempt that failed.
pub(crate) struct Failed {
    pub(crate) error: OriginError,
    /// The request, where sending it again cannot repeat an effect.
    pub(crate) again: Option<Outgoing>,
    /// Whether the server wants it over HTTP/1.1 (RFC 9113 7).
    pub(crate) needs_http1: bool,
}

impl Failed {
    pub(crate) fn new(error: OriginError, again: Option<Outgoing>) -> Self {
        Self { error, again, needs_http1: false }
    }
}

/// What came of an attempt that did not fail.
pub(crate) struct Answered {
    pub(crate) lease: Lease,
    pub(crate) response: Response<Incoming>,
    pub(crate) is_upload_complete: bool,
    /// The rest of the upload, where it goes on beside the response.
    pub(crate) uploading: Option<Uploading>,
}

/// Sends `outgoing` over `lease` and waits for the final head, until `total` at most.
///
/// # Cancel safety
/// May be dropped at any time; the connection is closed, or the stream reset.
pub(crate) async fn attempt(
    lease: Lease,
    outgoing: Outgoing,
    interims: Option<&InterimSink>,
    settings: &OriginSettings,
    total: Option<Instant>,
) -> Result<Answered, Failed> {
    match lease.held {
        Held::Http1(_) => over_http1(lease, outgoing, interims, settings, total).await,
        Held::Http2(_) => http2::exchange(lease, outgoing, interims, settings, total).await,
    }
}

async fn over_http1(
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
                lease.shared().metrics.upload_stopped();
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

/// Whether sending a request once more cannot do more than asking twice.
pub(crate) fn is_plain_read(outgoing: &Outgoing) -> bool {
    outgoing.body.is_nothing() && matches!(*outgoing.head.method(), Method::GET | Method::HEAD)
}

/// How long the head may take: the servers of gRPC send it with the first message, which may be long in coming.
pub(crate) fn first_byte_limit(request: &HeaderMap, settings: &OriginSettings) -> Duration {
    let Timeouts { first_byte, event_stream, .. } = settings.timeouts;
    if content_type::is_grpc(request) { first_byte.max(event_stream) } else { first_byte }
}

/// Which limit of time passed before the head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Late {
    FirstByte,
    Total,
}

impl Late {
    /// When the first of both passes.
    pub(crate) fn at(last_write: Instant, first_byte: Duration, total: Option<Instant>) -> Instant {
        let deadline = last_write + first_byte;
        total.map_or(deadline, |total| total.min(deadline))
    }

    /// Which has passed at `now`, where one has.
    pub(crate) fn which(now: Instant, total: Option<Instant>) -> Self {
        if total.is_some_and(|total| total <= now) { Self::Total } else { Self::FirstByte }
    }

    /// Whose fault it was.
    pub(crate) fn error(self, progress: &UploadProgress) -> OriginError {
        match (progress.error(), self) {
            (Some(error), _) => OriginError::ClientBody(error),
            (None, Self::Total) => OriginError::TotalTimeout,
            // The client is what we are waiting for; its own limit should have ended this before.
            (None, Self::FirstByte) if progress.is_waiting() => OriginError::ClientBody(BodyError::Stalled),
            (None, Self::FirstByte) => OriginError::FirstByteTimeout,
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
    } else if let Some(alert) = tls::alert_within(error) {
        OriginError::tls(alert)
    } else {
        OriginError::Closed
    }
}

/// A sink for all attempts of an exchange together, which hands on only the first that come.
pub(crate) fn first_few(sink: InterimSink) -> InterimSink {
    let passed = AtomicUsize::new(0);
    Arc::new(move |interim| {
        if passed.fetch_add(1, Ordering::Relaxed) < INTERIMS_PASSED_MAX {
            sink(interim);
        }
    })
}

/// Interim responses of one attempt.
pub(crate) struct Interims {
    sink: Option<InterimSink>,
    seen: AtomicUsize,
}

impl Interims {
    pub(crate) fn new(sink: Option<InterimSink>) -> Self {
        Self { sink, seen: AtomicUsize::new(0) }
    }

    /// Hands one on, and counts it also where nobody wants it. False where it was one too many.
    pub(crate) fn pass(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        if self.seen.fetch_add(1, Ordering::Relaxed) >= INTERIMS_MAX {
            return false;
        }
        // 100 belongs to this connection: the listener has answered the client's Expect itself.
        if let Some(sink) = self.sink.as_ref().filter(|_| status != StatusCode::CONTINUE) {
            let mut fields = fields.clone();
            answer::strip(&mut fields);
            sink(Interim { status, fields });
        }
        true
    }

    /// Whether there was one.
    pub(crate) fn is_any(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > 0
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
