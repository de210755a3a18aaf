//! A client that reads a large body so slowly that its store has let go of it: it goes on from a new fetch of the rest.
//!
//! In: a response whose body may be let go of ([`BodyError::SlowReader`]). Out: the same bytes. The rest is asked of the origin
//! by Range and If-Range, and flows at this client's pace, for it alone; nothing of it is stored. Where that cannot be (no strong
//! entity tag, another answer, no answer), the client is cut. Both are counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use http_body::Frame;
use larder_cache::StoredHead;
use larder_cache::completion::{is_of, may_be_completed};
use larder_cache::part::Part;
use larder_http::body::{Body, BodyError, Stream};
use larder_http::message::{RequestHead, Response};
use larder_observe::RuleId;
use larder_origin::Affinity;

use super::context::RequestContext;
use crate::exchange::Exchange;
use crate::fetch::ClientHop;
use crate::worker::Worker;
use crate::worker_plan::WorkerPlan;
use crate::{fetch, forward};

type Asked = Pin<Box<dyn Future<Output = Option<Stream>> + Send>>;

/// Sees to it that the client of `response`, which is made of the stored `head`, gets all of it, as far as that can be.
pub(super) fn make_resumable(
    context: &RequestContext<'_>,
    exchange: &Exchange,
    head: &Arc<StoredHead>,
    response: &mut Response,
) {
    let (length, stream) = match std::mem::take(&mut response.body) {
        Body::Stream { length, stream } => (length, stream),
        other => return response.body = other,
    };
    let part = Part::of(&response.head.fields);
    // Of several ranges nobody knows here where the stream is.
    let is_one = response.head.status != StatusCode::PARTIAL_CONTENT || part.is_some();
    let may_ask = is_one && exchange.asked.head.method == Method::GET && may_be_completed(head);
    let position = part.map_or(0, |part| part.range.start);
    let rest = may_ask.then(|| Rest {
        worker: Arc::clone(context.worker),
        worker_plan: Arc::clone(context.worker_plan),
        asks: (context.origin, exchange.settings().rule_id),
        request: fetch::for_refresh(&exchange.asked.head, None),
        hop: ClientHop {
            assembles: exchange.settings().policy.templates.is_on(),
            ..exchange.asker.hop.clone()
        },
        head: Arc::clone(head),
    });
    let (worker, end) = (Arc::clone(context.worker), length.map(|length| position + length));
    let resuming = Resuming { stream, position, end, rest, asked: None, worker };
    response.body = Body::Stream { length, stream: Box::pin(resuming) };
}

/// How the rest is asked for.
struct Rest {
    worker: Arc<Worker>,
    worker_plan: Arc<WorkerPlan>,
    /// The origin, and the rule that it is asked for.
    asks: (usize, RuleId),
    request: RequestHead,
    hop: ClientHop,
    head: Arc<StoredHead>,
}

impl Rest {
    /// The bytes from `position` to `end`, or to the end of the whole; `None` where they cannot be had.
    async fn ask(self, position: u64, end: Option<u64>) -> Option<Stream> {
        let Self { worker, worker_plan, asks, request, hop, head } = self;
        let mut asked =
            fetch::outgoing(&request, Bytes::new().into(), false, (hop, Affinity::default()), None);
        let last = end.map(|end| end.saturating_sub(1).to_string()).unwrap_or_default();
        asked.fields.insert(header::RANGE, HeaderValue::try_from(format!("bytes={position}-{last}")).ok()?);
        asked.fields.insert(header::IF_RANGE, head.validators.etag.clone()?);
        let (answer, _) = forward::ask(&worker, &worker_plan, asks, asked).await.answer.ok()?;
        let part = Part::of(&answer.fields).filter(|_| answer.status == StatusCode::PARTIAL_CONTENT)?;
        let is_it = part.range.start == position
            && end.or(part.complete) == Some(part.range.end)
            && is_of(&head, &answer.fields);
        match answer.body {
            Body::Stream { stream, .. } if is_it => Some(stream),
            _ => None,
        }
    }
}

struct Resuming {
    stream: Stream,
    /// Of the next byte, in the whole.
    position: u64,
    end: Option<u64>,
    /// Until it has been asked for.
    rest: Option<Rest>,
    asked: Option<Asked>,
    worker: Arc<Worker>,
}

impl http_body::Body for Resuming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if let Some(asked) = &mut this.asked {
                let stream = ready!(asked.as_mut().poll(cx));
                this.asked = None;
                this.worker.metrics.let_go(stream.is_some());
                match stream {
                    Some(stream) => this.stream = stream,
                    None => return Poll::Ready(Some(Err(BodyError::SlowReader))),
                }
            }
            match ready!(this.stream.as_mut().poll_frame(cx)) {
                Some(Err(BodyError::SlowReader)) => match this.rest.take() {
                    Some(rest) => this.asked = Some(Box::pin(rest.ask(this.position, this.end))),
                    None => {
                        this.worker.metrics.let_go(false);
                        return Poll::Ready(Some(Err(BodyError::SlowReader)));
                    }
                },
                Some(Ok(frame)) => {
                    this.position += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
                    return Poll::Ready(Some(Ok(frame)));
                }
                other => return Poll::Ready(other),
            }
        }
    }
}
