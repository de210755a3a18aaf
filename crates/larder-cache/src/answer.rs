//! What a client is sent of the representation that its request selects (RFC 9110 13.2.2 and 14.2).
//!
//! In: the request as the client sent it, and a complete response, stored or just arriving. Out: the whole, a 304, one
//! range of it, or a 416, and the fields that each of them carries. If-None-Match beats If-Modified-Since, both beat
//! Range; If-Range switches Range off when the client's part is of something else.
//! Deliberately absent: If-Match and If-Unmodified-Since, which a cache may ignore (13.1.1, 13.1.4), and answers of
//! several ranges, which are the whole instead.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::date::DateField;
use larder_http::fields::etag::{EntityTag, NoneMatch, none_match};
use larder_http::fields::range::{RangeField, RangeSpec};
use larder_http::message::{PreparedFields, RequestHead};
use larder_http::time::WallTime;

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response as it is.
    Whole,
    /// 304: the client has it.
    NotModified,
    /// 206 with one range.
    Partial {
        /// The bytes to send; never empty, within `complete`.
        range: Range<u64>,
        /// The length of the whole.
        complete: u64,
    },
    /// 416: no byte of what is asked exists.
    Unsatisfiable {
        /// The length of the whole.
        complete: u64,
    },
}

/// Decides what `request` is sent of the response with `status` and `fields`. `complete` is the length of its content
/// where that is known; without it there are no ranges. `now` serves to read two-digit years only.
pub fn answer(
    request: &RequestHead,
    status: StatusCode,
    fields: &HeaderMap,
    complete: Option<u64>,
    now: WallTime,
) -> Answer {
    let is_get = request.method == Method::GET;
    if !is_get && request.method != Method::HEAD {
        return Answer::Whole;
    }
    if status.is_success() && is_not_modified(&request.fields, fields, now) {
        return Answer::NotModified;
    }
    match complete {
        Some(complete) if is_get && status == StatusCode::OK => {
            ranged(&request.fields, fields, complete, now)
        }
        _ => Answer::Whole,
    }
}

fn is_not_modified(request: &HeaderMap, fields: &HeaderMap, now: WallTime) -> bool {
    match none_match(request, EntityTag::of(fields)) {
        NoneMatch::Listed => true,
        NoneMatch::Unlisted => false,
        NoneMatch::Absent => {
            let Some(since) = DateField::read(request, &header::IF_MODIFIED_SINCE, now).at() else {
                return false;
            };
            // Without Last-Modified, Date says when the response was new (RFC 9111 4.3.2).
            let modified = match DateField::read(fields, &header::LAST_MODIFIED, now) {
                DateField::At(modified) => Some(modified),
                DateField::Absent => DateField::read(fields, &header::DATE, now).at(),
                DateField::Invalid => None,
            };
            modified.is_some_and(|modified| modified <= since)
        }
    }
}

fn ranged(request: &HeaderMap, fields: &HeaderMap, complete: u64, now: WallTime) -> Answer {
    let RangeField::Bytes(specs) = RangeField::read(request) else {
        return Answer::Whole;
    };
    if !has_the_rest(request, fields, now) {
        return Answer::Whole;
    }
    // A suffix of nothing is satisfiable, but no Content-Range can say so.
    if complete == 0 && specs.iter().any(|spec| matches!(spec, RangeSpec::Suffix(length) if *length > 0)) {
        return Answer::Whole;
    }
    let mut ranges = specs.iter().filter_map(|spec| spec.within(complete));
    match (ranges.next(), ranges.next()) {
        (None, _) => Answer::Unsatisfiable { complete },
        (Some(range), None) => Answer::Partial { range, complete },
        (Some(_), Some(_)) => Answer::Whole,
    }
}

/// Evaluates If-Range (RFC 9110 13.1.5): true where it is absent, or the client's part is of this representation.
fn has_the_rest(request: &HeaderMap, fields: &HeaderMap, now: WallTime) -> bool {
    let mut lines = request.get_all(header::IF_RANGE).iter();
    let value = match (lines.next(), lines.next()) {
        (None, _) => return true,
        (Some(value), None) => value.as_bytes(),
        (Some(_), Some(_)) => return false,
    };
    if let Some(tag) = EntityTag::new(value).filter(|tag| tag.is_strong() || tag.is_weak()) {
        return EntityTag::of(fields).is_some_and(|own| own.equals_strongly(&tag));
    }
    let asked = DateField::read(request, &header::IF_RANGE, now);
    let modified = DateField::read(fields, &header::LAST_MODIFIED, now);
    let dated = DateField::read(fields, &header::DATE, now);
    // A date is a strong validator only where the second it names was over when the response was made (8.8.2.2).
    match (asked, modified, dated) {
        (DateField::At(asked), DateField::At(modified), DateField::At(dated)) => {
            asked == modified && dated.since(modified) >= Duration::from_secs(1)
        }
        _ => false,
    }
}

/// What a 304 carries (RFC 9110 15.4.5): what a client's cache needs to know, and nothing that describes content.
const IN_304: [HeaderName; 6] = [
    header::CACHE_CONTROL,
    header::CONTENT_LOCATION,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::VARY,
];

/// The fields of a 304 made from a response with `fields`; Last-Modified is among them where there is no ETag.
pub fn not_modified_fields(fields: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(IN_304.len());
    let instead = (!fields.contains_key(header::ETAG)).then_some(header::LAST_MODIFIED);
    for name in IN_304.into_iter().chain(instead) {
        for value in fields.get_all(&name) {
            out.append(name.clone(), value.clone());
        }
    }
    out
}

/// The fields of a 206 made from a complete response: the shared ones as they are, and Content-Range. Where the
/// origin put a Content-Range on its whole response, nothing can be shared and all fields come in the map.
pub fn partial_fields(
    stored: &Arc<PreparedFields>,
    range: &Range<u64>,
    complete: u64,
) -> (Option<Arc<PreparedFields>>, HeaderMap) {
    let said = ContentRange::Bytes { range: range.clone(), complete: Some(complete) }.format();
    if !stored.map.contains_key(header::CONTENT_RANGE) {
        return (Some(Arc::clone(stored)), HeaderMap::from_iter([(header::CONTENT_RANGE, said)]));
    }
    let mut fields = stored.map.clone();
    fields.insert(header::CONTENT_RANGE, said);
    (None, fields)
}

/// The fields of a 416: how long the representation is. Nothing of the response itself.
pub fn unsatisfiable_fields(complete: u64) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_RANGE, ContentRange::Unsatisfied { complete }.format())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{DATE, at_ms, fields, request};

    type Lines<'a> = &'a [(&'a str, &'a str)];

    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAID: Lines<'_> = &[("etag", "\"a\""), ("last-modified", BEFORE), ("date", DATE)];

    fn check(asked: Lines<'_>, said: Lines<'_>, expected: Answer) {
        let found = answer(&request("GET", asked), StatusCode::OK, &fields(said), Some(10), at_ms(0).wall);
        assert_eq!(found, expected, "{asked:?} {said:?}");
    }

    fn partial(range: Range<u64>) -> Answer {
        Answer::Partial { range, complete: 10 }
    }

    #[test]
    fn conditions_are_answered_in_the_rfcs_order() {
        use Answer::{NotModified, Whole};
        check(&[], SAID, Whole);
        check(&[("if-none-match", "\"b\", W/\"a\"")], SAID, NotModified);
        check(&[("if-none-match", "\"b\"")], SAID, Whole);
        check(&[("if-none-match", "\"b\""), ("if-modified-since", DATE)], SAID, Whole);
        check(&[("if-none-match", "\"a\""), ("range", "bytes=0-1")], SAID, NotModified);
        check(&[("if-modified-since", BEFORE)], SAID, NotModified);
        check(&[("if-modified-since", "Sunday, 06-Nov-94 08:49:36 GMT")], SAID, NotModified);
        check(&[("if-modified-since", DATE)], SAID, NotModified);
        check(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:35 GMT")], SAID, Whole);
        check(&[("if-modified-since", "yesterday")], SAID, Whole);
        check(&[("if-modified-since", DATE)], &[("date", DATE)], NotModified);
        check(&[("if-modified-since", BEFORE)], &[("date", DATE)], Whole);
        check(&[("if-modified-since", BEFORE)], &[], Whole);
        check(
            &[("if-match", "\"b\""), ("if-unmodified-since", "Sun, 06 Nov 1984 08:49:35 GMT")],
            SAID,
            Whole,
        );
    }

    #[test]
    fn one_range_is_answered_and_several_are_the_whole() {
        let range = |value, expected| check(&[("range", value)], SAID, expected);
        range("bytes=0-1", partial(0..2));
        range("bytes=1-", partial(1..10));
        range("bytes=-1", partial(9..10));
        range("bytes=0-", partial(0..10));
        range("bytes=8-99", partial(8..10));
        range("bytes=10-", Answer::Unsatisfiable { complete: 10 });
        range("bytes=-0", Answer::Unsatisfiable { complete: 10 });
        range("bytes=20-, 30-", Answer::Unsatisfiable { complete: 10 });
        range("bytes=20-, 3-4", partial(3..5));
        range("bytes=0-1, 3-4", Answer::Whole);
        range("lines=0-1", Answer::Whole);
    }

    #[test]
    fn if_range_needs_the_same_representation() {
        let check = |value, said, ranged| {
            let expected = if ranged { partial(5..10) } else { Answer::Whole };
            check(&[("range", "bytes=5-"), ("if-range", value)], said, expected);
        };
        check("\"a\"", SAID, true);
        check("\"b\"", SAID, false);
        check("W/\"a\"", SAID, false);
        check("\"a\"", &[("etag", "W/\"a\"")], false);
        check(BEFORE, SAID, true);
        check(DATE, SAID, false);
        check(DATE, &[("last-modified", DATE), ("date", DATE)], false);
        check("", SAID, false);
    }

    #[test]
    fn only_what_can_be_conditional_is() {
        let asked: Lines<'_> = &[("if-none-match", "*"), ("range", "bytes=0-1")];
        let found = |method, status: u16, complete| {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            answer(&request(method, asked), status, &fields(SAID), complete, at_ms(0).wall)
        };
        assert_eq!(found("HEAD", 200, Some(10)), Answer::NotModified);
        assert_eq!(found("POST", 200, Some(10)), Answer::Whole);
        assert_eq!(found("GET", 404, Some(10)), Answer::Whole);
        let ranged = |method, status: u16, complete| {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            let asked = request(method, &[("range", "bytes=-1")]);
            answer(&asked, status, &fields(SAID), complete, at_ms(0).wall)
        };
        assert_eq!(ranged("GET", 200, None), Answer::Whole);
        assert_eq!(ranged("GET", 203, Some(10)), Answer::Whole);
        assert_eq!(ranged("HEAD", 200, Some(10)), Answer::Whole);
        assert_eq!(ranged("GET", 200, Some(0)), Answer::Whole);
    }

    #[test]
    fn a_304_carries_what_guides_caches() {
        let said = fields(&[
            ("content-type", "text/plain"),
            ("etag", "\"a\""),
            ("last-modified", BEFORE),
            ("vary", "a"),
            ("vary", "b"),
            ("set-cookie", "a=b"),
            ("date", DATE),
        ]);
        let expected = fields(&[("etag", "\"a\""), ("vary", "a"), ("vary", "b"), ("date", DATE)]);
        assert_eq!(not_modified_fields(&said), expected);
        let dated = fields(&[("last-modified", BEFORE), ("x", "1")]);
        assert_eq!(not_modified_fields(&dated), fields(&[("last-modified", BEFORE)]));
    }

    #[test]
    fn a_206_shares_the_stored_fields_unless_content_range_is_among_them() {
        let plain = Arc::new(PreparedFields::new(fields(&[("x", "1")])));
        let (shared, own) = partial_fields(&plain, &(2..5), 10);
        assert!(shared.is_some_and(|shared| Arc::ptr_eq(&shared, &plain)));
        assert_eq!(own, fields(&[("content-range", "bytes 2-4/10")]));
        let odd = Arc::new(PreparedFields::new(fields(&[("x", "1"), ("content-range", "odd")])));
        let (shared, own) = partial_fields(&odd, &(2..5), 10);
        assert!(shared.is_none());
        assert_eq!(own, fields(&[("x", "1"), ("content-range", "bytes 2-4/10")]));
        assert_eq!(unsatisfiable_fields(10), fields(&[("content-range", "bytes */10")]));
    }
}
