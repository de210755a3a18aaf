//! Several ranges in one answer: `multipart/byteranges` (RFC 9110 14.6).
//!
//! In: the fields of the whole, the ranges, and where the bytes are. Out: fields and body of the 206. Its length is known
//! before the first byte goes out. Which ranges are worth sending was decided before.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use larder_http::body::{Body, BodyError, Pieces};
use larder_http::fields::content_range::ContentRange;

/// A delimiter that cannot be known before it is sent, so that no content can be made to contain it.
fn boundary() -> String {
    let part = || foldhash::quality::RandomState::default().hash_one("boundary");
    format!("{:016x}{:016x}", part(), part())
}

/// The answer to a request for `ranges` of a representation of `complete` bytes, each with its body.
pub(super) fn multipart(
    mut fields: HeaderMap,
    ranges: &[Range<u64>],
    complete: u64,
    bodies: Vec<Body>,
) -> (HeaderMap, Body) {
    let boundary = boundary();
    let content_type = fields.get(CONTENT_TYPE).cloned();
    let mut segments = VecDeque::with_capacity(2 * ranges.len() + 1);
    let mut length = 0;
    for (index, (range, body)) in ranges.iter().zip(bodies).enumerate() {
        let delimiter = part_head(&boundary, index == 0, content_type.as_ref(), range, complete);
        length += delimiter.len() as u64 + (range.end - range.start);
        segments.push_back(Body::Full(delimiter));
        segments.push_back(body);
    }
    let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
    length += end.len() as u64;
    segments.push_back(Body::Full(end));
    let said = format!("multipart/byteranges; boundary={boundary}");
    if let Ok(said) = HeaderValue::from_maybe_shared(Bytes::from(said)) {
        fields.insert(CONTENT_TYPE, said);
    }
    fields.remove(CONTENT_RANGE);
    let stream = Segments { segments, cursor: None };
    (fields, Body::Stream { length: Some(length), stream: Box::pin(stream) })
}

fn part_head(
    boundary: &str,
    is_first: bool,
    content_type: Option<&HeaderValue>,
    range: &Range<u64>,
    complete: u64,
) -> Bytes {
    let mut head = Vec::with_capacity(160);
    head.extend_from_slice(if is_first { b"--" } else { b"\r\n--" });
    head.extend_from_slice(boundary.as_bytes());
    if let Some(content_type) = content_type {
        head.extend_from_slice(b"\r\nContent-Type: ");
        head.extend_from_slice(content_type.as_bytes());
    }
    let said = ContentRange::Bytes { range: range.clone(), complete: Some(complete) }.format();
    head.extend_from_slice(b"\r\nContent-Range: ");
    head.extend_from_slice(said.as_bytes());
    head.extend_from_slice(b"\r\n\r\n");
    head.into()
}

/// Bodies, one after the other.
struct Segments {
    segments: VecDeque<Body>,
    /// The piece that the first segment goes on in, and where that begins; looked for once per segment.
    cursor: Option<(usize, u64)>,
}

impl Segments {
    /// The next bytes of the first segment, where that lies in memory.
    fn next_in_memory(&mut self) -> Option<Bytes> {
        let Some(Body::Pieces { owner, range }) = self.segments.front_mut() else { return None };
        let left = usize::try_from(range.end.checked_sub(range.start)?).ok().filter(|left| *left > 0)?;
        let (index, start) = self.cursor.or_else(|| place_of(&**owner, range.start))?;
        let piece = owner.pieces().get(index)?;
        let mut bytes = piece.slice(usize::try_from(range.start.checked_sub(start)?).ok()?..);
        bytes.truncate(left);
        range.start += bytes.len() as u64;
        self.cursor = Some((index + 1, start + piece.len() as u64));
        Some(bytes)
    }
}

/// The piece that `position` lies in, and where it begins.
fn place_of(owner: &dyn Pieces, position: u64) -> Option<(usize, u64)> {
    let mut start = 0;
    owner.pieces().iter().enumerate().find_map(|(index, piece)| {
        let begins = start;
        start += piece.len() as u64;
        (position < start).then_some((index, begins))
    })
}

impl http_body::Body for Segments {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            let next = match this.segments.front_mut() {
                None => return Poll::Ready(None),
                Some(Body::Empty) => None,
                Some(Body::Full(bytes)) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
                Some(Body::Pieces { .. }) => this.next_in_memory(),
                Some(Body::Stream { stream, .. }) => match ready!(stream.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(bytes) => Some(bytes),
                        Err(_trailers) => continue,
                    },
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => None,
                },
            };
            match next {
                Some(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => {
                    this.segments.pop_front();
                    this.cursor = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn ranges_come_one_after_the_other_with_a_head_each_and_the_length_is_right() {
        let whole: Arc<dyn Pieces> =
            Arc::new(vec![Bytes::from_static(b"012"), Bytes::from_static(b"3456789")]);
        let fields = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/plain"))]);
        let bytes = |range| Body::Pieces { owner: Arc::clone(&whole), range };
        let (fields, body) = multipart(fields, &[0..2, 2..5], 10, vec![bytes(0..2), bytes(2..5)]);
        let content_type = fields[CONTENT_TYPE].to_str().unwrap_or_default().to_owned();
        let Some(boundary) = content_type.strip_prefix("multipart/byteranges; boundary=") else {
            panic!("{content_type}");
        };
        let expected = format!(
            "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
             \r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 2-4/10\r\n\r\n234\
             \r\n--{boundary}--\r\n"
        );
        assert_eq!(body.length(), Some(expected.len() as u64));
        let Body::Stream { mut stream, .. } = body else { panic!("not a stream") };
        let mut found = Vec::new();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = stream.as_mut().poll_frame(&mut cx) {
            found.extend(frame.into_data().unwrap_or_default());
        }
        assert_eq!(String::from_utf8_lossy(&found), expected);
    }

    #[test]
    fn no_two_answers_have_the_same_boundary() {
        assert_ne!(boundary(), boundary());
    }
}
