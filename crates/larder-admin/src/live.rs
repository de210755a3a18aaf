//! Requests as they happen, and those that are remembered.
//!
//! In: a filter, as text, and how much is wanted. Out: JSON of remembered requests and events, or a stream of them and of figures
//! (`text/event-stream`) for as long as the client reads. A stream has a comment every [`BEAT`], so that both ends notice one that is lost.
//! How many streams there may be, and what waits for a slow one, is the watch's affair. To drop a stream is to end its subscription.
//! Deliberately absent: an `id` for each event. A client that comes back asks for what is remembered.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Frame;
use larder_http::body::{Body, BodyError};
use larder_http::message::Response;
use larder_observe::filter::{Filter, FilterError};
use larder_observe::watch::{Interest, Live, Sample, Subscription, Watch};

use crate::answer::{JSON, Refused, content, refusal, with_body};
use crate::query::named;

/// The media type of a stream.
const EVENT_STREAM: &str = "text/event-stream";
/// Between two comments.
const BEAT: Duration = Duration::from_secs(15);
/// Requests of an answer where the question does not say.
const LIMIT_DEFAULT: usize = 100;
/// The most of them.
const LIMIT_MAX: usize = larder_observe::watch::REQUESTS_MAX;
/// A frame of a stream ends when it has so many bytes.
const FRAME_BYTES: usize = 64 * 1024;

/// A filter that was asked for: `None` where it is empty.
pub(crate) fn filter(text: Option<String>) -> Result<Option<Filter>, Box<Response>> {
    let text = text.unwrap_or_default();
    if text.trim().is_empty() {
        return Ok(None);
    }
    Filter::parse(&text).map(Some).map_err(|error| Box::new(unread(&error)))
}

/// The answer to a filter that cannot be read.
fn unread(error: &FilterError) -> Response {
    let json = serde_json::json!({ "error": "filter", "message": error.to_string(), "column": error.column });
    content(StatusCode::BAD_REQUEST, JSON, json.to_string())
}

fn number(text: Option<String>, default: usize) -> Option<usize> {
    text.map_or(Some(default), |text| text.parse().ok()).filter(|number| *number <= LIMIT_MAX)
}

/// A parameter with two values, the first of which is false.
fn either(text: Option<String>, [no, yes]: [&str; 2], default: bool) -> Option<bool> {
    match text.as_deref() {
        None => Some(default),
        Some(text) if text == no => Some(false),
        Some(text) if text == yes => Some(true),
        Some(_) => None,
    }
}

/// Appends a list of objects, comma between them.
fn list<T>(out: &mut Vec<u8>, all: &[T], json: impl Fn(&T, &mut Vec<u8>)) {
    for (place, one) in all.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        json(one, out);
    }
}

/// Remembered requests, newest first.
pub(crate) fn requests(watch: &Watch, query: &str) -> Response {
    let Some([wanted, limit]) = named(query, ["where", "limit"]) else { return refusal(Refused::LiveQuery) };
    let filter = match filter(wanted) {
        Ok(filter) => filter,
        Err(response) => return *response,
    };
    let Some(limit) = number(limit, LIMIT_DEFAULT) else { return refusal(Refused::LiveQuery) };
    let mut out = b"{\"requests\":[".to_vec();
    list(&mut out, &watch.requests(filter.as_ref(), limit), |sample, out| sample.json(out));
    out.extend_from_slice(b"]}");
    content(StatusCode::OK, JSON, out)
}

/// Remembered events, newest first.
pub(crate) fn events(watch: &Watch) -> Response {
    let mut out = b"{\"events\":[".to_vec();
    list(&mut out, &watch.events(), |event, out| event.json(out));
    out.extend_from_slice(b"]}");
    content(StatusCode::OK, JSON, out)
}

/// What happens from now on, behind what is remembered.
pub(crate) fn live(watch: &Watch, query: &str) -> Response {
    let names = ["requests", "all", "recent", "tick", "samples"];
    let Some([wanted, all, recent, ticks, samples]) = named(query, names) else {
        return refusal(Refused::LiveQuery);
    };
    let all = either(all, ["false", "true"], false);
    let (ticks, samples) = (either(ticks, ["0", "1"], false), either(samples, ["0", "1"], true));
    let (Some(all), Some(ticks), Some(samples)) = (all, ticks, samples) else {
        return refusal(Refused::LiveQuery);
    };
    let Some(recent) = number(recent, 0) else { return refusal(Refused::LiveQuery) };
    let filter = match filter(wanted) {
        Ok(filter) => filter,
        Err(response) => return *response,
    };
    // After the subscription: what comes in between is told twice rather than never.
    let wanted = Interest { samples, filter: filter.clone(), all, ticks };
    let Ok(subscription) = watch.subscribe(wanted) else {
        return refusal(Refused::Streams);
    };
    let remembered = if recent > 0 { watch.requests(filter.as_ref(), recent) } else { Vec::new() };
    let beat = Box::pin(tokio::time::sleep(BEAT));
    let stream = LiveBody { remembered: remembered.into(), subscription, beat, is_over: false };
    with_body(StatusCode::OK, EVENT_STREAM, Body::Stream { length: None, stream: Box::pin(stream) })
}

/// The body of a stream.
struct LiveBody {
    /// Newest first.
    remembered: VecDeque<Arc<Sample>>,
    subscription: Subscription,
    beat: Pin<Box<tokio::time::Sleep>>,
    is_over: bool,
}

impl LiveBody {
    /// Writes what has come; false where nothing more is coming.
    fn fill(&mut self, context: &mut Context<'_>, out: &mut Vec<u8>) -> bool {
        while out.len() < FRAME_BYTES {
            if let Some(sample) = self.remembered.pop_back() {
                block(out, "request", |out| sample.json(out));
                continue;
            }
            match self.subscription.poll_next(context) {
                Poll::Ready(Some(live)) => write(out, &live),
                Poll::Ready(None) => return false,
                Poll::Pending => break,
            }
        }
        true
    }
}

impl http_body::Body for LiveBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        self.is_over = !self.fill(context, &mut out);
        if out.is_empty() && self.is_over {
            return Poll::Ready(None);
        }
        if out.is_empty() {
            if self.beat.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            out.extend_from_slice(b":\n\n");
        }
        let next = tokio::time::Instant::now() + BEAT;
        self.beat.as_mut().reset(next);
        // It is polled again at once where the client has room, and asks to be woken then.
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}

fn write(out: &mut Vec<u8>, live: &Live) {
    match live {
        Live::Sample(sample) => block(out, "request", |out| sample.json(out)),
        Live::Event(event) => block(out, "event", |out| event.json(out)),
        Live::Tick(tick) => block(out, "tick", |out| out.extend_from_slice(tick.json())),
        Live::Skipped(count) => {
            block(out, "skipped", |out| out.extend_from_slice(format!("{{\"skipped\":{count}}}").as_bytes()));
        }
        Live::TooSlow => block(out, "too-slow", |out| out.extend_from_slice(b"{}")),
    }
}

/// One event of the stream. Its JSON is one line: controls are escaped.
fn block(out: &mut Vec<u8>, name: &str, json: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    json(out);
    out.extend_from_slice(b"\n\n");
}
