//! From a representation, or a stored part of one, to what a request asks for of it.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use larder_cache::completion::{PartAnswer, answer_part};
use larder_cache::part::Part;
use larder_cache::{Answer, StoredHead};
use larder_http::body::{Body, BodyError};
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead, SharedFields};
use larder_http::time::WallTime;
use larder_store::{Held, StoredResponse, StreamingBody};

use super::multipart::multipart;

/// A representation to answer from, or a part of one.
pub(crate) enum Represented<'a> {
    /// In memory, whole.
    Stored(Held),
    /// Its body is arriving.
    Arriving(&'a StoredHead, &'a Arc<StreamingBody>),
}

impl Represented<'_> {
    fn head(&self) -> &StoredHead {
        match self {
            Self::Stored(stored) => &stored.head,
            Self::Arriving(head, _) => head,
        }
    }

    fn length(&self) -> Option<u64> {
        match self {
            Self::Stored(stored) => Some(stored.body.length()),
            Self::Arriving(_, body) => body.complete_length(),
        }
    }

    fn fields(&self) -> Arc<dyn SharedFields> {
        match self {
            Self::Stored(stored) => stored.fields(),
            Self::Arriving(head, _) => Arc::clone(&head.fields) as Arc<dyn SharedFields>,
        }
    }

    /// `range` of its content, or all; `None` where an arriving body takes no new readers.
    fn into_body(self, range: Option<Range<u64>>, is_head: bool) -> Option<Body> {
        let length = range.as_ref().map(|range| range.end - range.start).or_else(|| self.length());
        if is_head {
            return Some(unsent(length));
        }
        Some(match self {
            Self::Stored(stored) => {
                let range = range.unwrap_or(0..stored.body.length());
                stored.into_body(range)?
            }
            Self::Arriving(_, body) => Body::Stream { length, stream: Box::pin(body.reader(range)?) },
        })
    }
}

/// Answers a request from a representation. `None` where its body takes no new readers.
pub(crate) fn represent(request: &RequestHead, of: Represented<'_>, now: WallTime) -> Option<Response> {
    let is_head = request.method == Method::HEAD;
    let head = of.head();
    if let (Some(part), Represented::Stored(stored)) = (&head.part, &of) {
        return part_of(request, stored, part, now);
    }
    let (status, map) = (head.status, &head.fields.map);
    match (larder_cache::answer(request, status, map, of.length(), now), &of) {
        // Of an arriving body several readers at once could keep each other waiting.
        (Answer::Whole, _) | (Answer::Multiple { .. }, Represented::Arriving(..)) => {
            let head = ResponseHead::from_stored(status, Some(of.fields()), HeaderMap::new());
            Some(Response::new(head, of.into_body(None, is_head)?))
        }
        (Answer::NotModified, _) => Some(not_modified(map)),
        (Answer::Partial { range, complete }, _) => {
            let head = partial_head(of.fields(), &range, complete);
            Some(Response::new(head, of.into_body(Some(range), is_head)?))
        }
        (Answer::Multiple { ranges, complete }, Represented::Stored(stored)) => {
            let bodies = ranges.iter().map(|range| stored.clone().into_body(range.clone()));
            Some(several(map.clone(), &ranges, complete, bodies.collect::<Option<_>>()?))
        }
        (Answer::Unsatisfiable { complete }, _) => Some(unsatisfiable(complete)),
    }
}

/// The head of a 206 of one range, from the fields of the whole.
fn partial_head(fields: Arc<dyn SharedFields>, range: &Range<u64>, complete: u64) -> ResponseHead {
    let (keeps, own) = larder_cache::partial_fields(fields.prepared(), range, complete);
    ResponseHead::from_stored(StatusCode::PARTIAL_CONTENT, keeps.then_some(fields), own)
}

/// Whether a stored response is enough for a request: a whole one always is, a part where it has all that is asked for.
pub(crate) fn has_what_is_asked(request: &RequestHead, stored: &StoredResponse, now: WallTime) -> bool {
    let answer = |part| answer_part(request, &stored.head, part, stored.body.length(), now);
    stored.head.part.as_ref().is_none_or(|part| answer(part).is_some())
}

/// Answers a request from a part, which the look-up has found to be enough.
fn part_of(request: &RequestHead, stored: &Held, part: &Part, now: WallTime) -> Option<Response> {
    let head = &stored.head;
    Some(match answer_part(request, head, part, stored.body.length(), now)? {
        PartAnswer::NotModified => not_modified(&head.fields.map),
        PartAnswer::Partial { body: range, content_range } => {
            let mut fields = head.fields.map.clone();
            fields.insert(http::header::CONTENT_RANGE, content_range);
            let head = ResponseHead::new(StatusCode::PARTIAL_CONTENT, fields);
            Response::new(head, stored.clone().into_body(range)?)
        }
    })
}

fn not_modified(fields: &HeaderMap) -> Response {
    let fields = larder_cache::not_modified_fields(fields);
    Response::new(ResponseHead::new(StatusCode::NOT_MODIFIED, fields), Body::Empty)
}

fn unsatisfiable(complete: u64) -> Response {
    let fields = larder_cache::unsatisfiable_fields(complete);
    Response::new(ResponseHead::new(StatusCode::RANGE_NOT_SATISFIABLE, fields), Body::Empty)
}

fn several(fields: HeaderMap, ranges: &[Range<u64>], complete: u64, bodies: Vec<Body>) -> Response {
    let (fields, body) = multipart(fields, ranges, complete, bodies);
    Response::new(ResponseHead::new(StatusCode::PARTIAL_CONTENT, fields), body)
}

/// Answers a request from a file of `size` bytes, which `body` opens at a range.
pub(crate) fn file(
    request: &RequestHead,
    fields: HeaderMap,
    size: u64,
    now: WallTime,
    body: impl Fn(Range<u64>) -> Body,
) -> Response {
    sized(request, (StatusCode::OK, fields), size, now, body)
}

/// The same of anything that has so many bytes.
pub(crate) fn sized(
    request: &RequestHead,
    (status, fields): (StatusCode, HeaderMap),
    size: u64,
    now: WallTime,
    body: impl Fn(Range<u64>) -> Body,
) -> Response {
    let is_head = request.method == Method::HEAD;
    let sent = |range: Range<u64>| {
        if is_head { unsent(Some(range.end - range.start)) } else { body(range) }
    };
    match larder_cache::answer(request, status, &fields, Some(size), now) {
        Answer::Whole => Response::new(ResponseHead::new(status, fields), sent(0..size)),
        Answer::NotModified => not_modified(&fields),
        Answer::Partial { range, complete } => {
            let head = partial_head(Arc::new(PreparedFields::new(fields)), &range, complete);
            Response::new(head, sent(range))
        }
        Answer::Multiple { ranges, complete } => {
            let bodies = ranges.iter().cloned().map(sent).collect();
            several(fields, &ranges, complete, bodies)
        }
        Answer::Unsatisfiable { complete } => unsatisfiable(complete),
    }
}

/// Content that is not sent, as in an answer to HEAD: only its length is told.
pub(crate) fn unsent(length: Option<u64>) -> Body {
    Body::Stream { length, stream: Box::pin(Nothing) }
}

struct Nothing;

impl http_body::Body for Nothing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        Poll::Ready(None)
    }
}
