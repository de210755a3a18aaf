//! From a representation, or a stored part of one, to what a request asks for of it.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use larder_cache::part::{Part, PartAnswer, answer_part};
use larder_cache::{Answer, StoredHead};
use larder_http::body::{Body, BodyError, Pieces};
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead};
use larder_http::time::WallTime;
use larder_store::{Growing, StoredBody, StoredResponse};

use super::multipart::multipart;

/// Where the content of a representation is.
pub(crate) enum Content {
    /// In memory, whole.
    Stored(Arc<StoredBody>),
    /// Arriving.
    Growing(Arc<Growing>),
}

/// A representation to answer from, or a part of one.
pub(crate) struct Represented<'a> {
    pub(crate) head: &'a StoredHead,
    pub(crate) content: Content,
}

impl Content {
    fn length(&self) -> Option<u64> {
        match self {
            Self::Stored(body) => Some(body.length()),
            Self::Growing(growing) => growing.complete_length(),
        }
    }

    /// `range` of it, or all; `None` where an arriving body takes no new readers.
    fn body(&self, range: Option<Range<u64>>, is_head: bool) -> Option<Body> {
        let length = range.as_ref().map(|range| range.end - range.start).or_else(|| self.length());
        if is_head {
            return Some(unsent(length));
        }
        Some(match self {
            Self::Stored(body) if body.length() == 0 => Body::Empty,
            Self::Stored(body) => {
                let owner = Arc::clone(body);
                Body::Pieces { range: range.unwrap_or(0..owner.length()), owner }
            }
            Self::Growing(growing) => Body::Stream { length, stream: Box::pin(growing.reader(range)?) },
        })
    }
}

/// Answers a request from a representation. `None` where its body takes no new readers.
pub(crate) fn represent(request: &RequestHead, of: &Represented<'_>, now: WallTime) -> Option<Response> {
    let is_head = request.method == Method::HEAD;
    let (head, fields) = (of.head, &of.head.fields);
    if let (Some(part), Content::Stored(body)) = (&head.part, &of.content) {
        return part_of(request, head, part, body, now);
    }
    let whole = || {
        let body = of.content.body(None, is_head)?;
        let stored = Some(Arc::clone(fields));
        let head = ResponseHead::from_stored(head.status, stored, HeaderMap::new());
        Some(Response::new(head, body))
    };
    match larder_cache::answer(request, head.status, &fields.map, of.content.length(), now) {
        Answer::Whole => whole(),
        Answer::NotModified => Some(not_modified(&fields.map)),
        Answer::Partial { range, complete } => {
            let body = of.content.body(Some(range.clone()), is_head)?;
            let (stored, fields) = larder_cache::partial_fields(fields, &range, complete);
            let head = ResponseHead::from_stored(StatusCode::PARTIAL_CONTENT, stored, fields);
            Some(Response::new(head, body))
        }
        Answer::Multiple { ranges, complete } => match &of.content {
            Content::Stored(body) => {
                let bytes = |range| Body::Pieces { owner: Arc::clone(body) as Arc<dyn Pieces>, range };
                Some(several(fields.map.clone(), &ranges, complete, bytes))
            }
            // Of an arriving body several readers at once could keep each other waiting.
            Content::Growing(_) => whole(),
        },
        Answer::Unsatisfiable { complete } => Some(unsatisfiable(complete)),
    }
}

/// Whether a stored response is enough for a request: a whole one always is, a part where it has all that is asked for.
pub(crate) fn has_what_is_asked(request: &RequestHead, stored: &StoredResponse, now: WallTime) -> bool {
    let answer = |part| answer_part(request, &stored.head, part, stored.body.length(), now);
    stored.head.part.as_ref().is_none_or(|part| answer(part).is_some())
}

/// Answers a request from a part, which the look-up has found to be enough.
fn part_of(
    request: &RequestHead,
    head: &StoredHead,
    part: &Part,
    body: &Arc<StoredBody>,
    now: WallTime,
) -> Option<Response> {
    Some(match answer_part(request, head, part, body.length(), now)? {
        PartAnswer::NotModified => not_modified(&head.fields.map),
        PartAnswer::Partial { body: range, content_range } => {
            let mut fields = head.fields.map.clone();
            fields.insert(http::header::CONTENT_RANGE, content_range);
            let head = ResponseHead::new(StatusCode::PARTIAL_CONTENT, fields);
            Response::new(head, Body::Pieces { owner: Arc::clone(body) as Arc<dyn Pieces>, range })
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

fn several(
    fields: HeaderMap,
    ranges: &[Range<u64>],
    complete: u64,
    bytes: impl FnMut(Range<u64>) -> Body,
) -> Response {
    let (fields, body) = multipart(fields, ranges, complete, bytes);
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
    let is_head = request.method == Method::HEAD;
    let sent = |range: Range<u64>| {
        if is_head { unsent(Some(range.end - range.start)) } else { body(range) }
    };
    match larder_cache::answer(request, StatusCode::OK, &fields, Some(size), now) {
        Answer::Whole => Response::new(ResponseHead::new(StatusCode::OK, fields), sent(0..size)),
        Answer::NotModified => not_modified(&fields),
        Answer::Partial { range, complete } => {
            let shared = Arc::new(PreparedFields::new(fields));
            let (stored, fields) = larder_cache::partial_fields(&shared, &range, complete);
            let head = ResponseHead::from_stored(StatusCode::PARTIAL_CONTENT, stored, fields);
            Response::new(head, sent(range))
        }
        Answer::Multiple { ranges, complete } => several(fields, &ranges, complete, sent),
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
