//! A whole representation to the part of it that a request asks for.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use larder_cache::Answer;
use larder_http::body::{Body, BodyError};
use larder_http::message::{PreparedFields, RequestHead, Response, ResponseHead};
use larder_http::time::WallTime;
use larder_store::{Growing, StoredBody};

/// Where the content of a representation is.
pub(crate) enum Content {
    /// In memory, whole.
    Stored(Arc<StoredBody>),
    /// Arriving.
    Growing(Arc<Growing>),
}

/// A representation to answer from.
pub(crate) struct Represented<'a> {
    pub(crate) status: StatusCode,
    pub(crate) fields: &'a Arc<PreparedFields>,
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
    let fields = &of.fields.map;
    let whole = || {
        let body = of.content.body(None, is_head)?;
        let head = ResponseHead {
            status: of.status,
            stored: Some(Arc::clone(of.fields)),
            fields: HeaderMap::with_capacity(4),
        };
        Some(Response::new(head, body))
    };
    match larder_cache::answer(request, of.status, fields, of.content.length(), now) {
        Answer::Whole => whole(),
        Answer::NotModified => {
            let fields = larder_cache::not_modified_fields(fields);
            Some(Response::new(ResponseHead::new(StatusCode::NOT_MODIFIED, fields), Body::Empty))
        }
        Answer::Partial { range, complete } => {
            let body = of.content.body(Some(range.clone()), is_head)?;
            let (stored, fields) = larder_cache::partial_fields(of.fields, &range, complete);
            let head = ResponseHead { status: StatusCode::PARTIAL_CONTENT, stored, fields };
            Some(Response::new(head, body))
        }
        Answer::Unsatisfiable { complete } => {
            let fields = larder_cache::unsatisfiable_fields(complete);
            let head = ResponseHead::new(StatusCode::RANGE_NOT_SATISFIABLE, fields);
            Some(Response::new(head, Body::Empty))
        }
    }
}

/// Answers a request from a file of `size` bytes, which `body` opens at a range.
pub(crate) fn file(
    request: &RequestHead,
    fields: HeaderMap,
    size: u64,
    now: WallTime,
    body: impl FnOnce(Range<u64>) -> Body,
) -> Response {
    let is_head = request.method == Method::HEAD;
    let sent = |range: Range<u64>| {
        if is_head { unsent(Some(range.end - range.start)) } else { body(range) }
    };
    match larder_cache::answer(request, StatusCode::OK, &fields, Some(size), now) {
        Answer::Whole => Response::new(ResponseHead::new(StatusCode::OK, fields), sent(0..size)),
        Answer::NotModified => {
            let fields = larder_cache::not_modified_fields(&fields);
            Response::new(ResponseHead::new(StatusCode::NOT_MODIFIED, fields), Body::Empty)
        }
        Answer::Partial { range, complete } => {
            let shared = Arc::new(PreparedFields::new(fields));
            let (stored, fields) = larder_cache::partial_fields(&shared, &range, complete);
            let head = ResponseHead { status: StatusCode::PARTIAL_CONTENT, stored, fields };
            Response::new(head, sent(range))
        }
        Answer::Unsatisfiable { complete } => {
            let fields = larder_cache::unsatisfiable_fields(complete);
            Response::new(ResponseHead::new(StatusCode::RANGE_NOT_SATISFIABLE, fields), Body::Empty)
        }
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
