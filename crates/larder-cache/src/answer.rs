//! What a client is sent of the representation that its request selects (RFC 9110 13.2.2 and 14.2).
//!
//! In: the request as the client sent it, and a complete response, stored or just arriving. Out: the whole, a 304, one
//! range of it or several, or a 416, and the fields that each of them carries. If-None-Match beats If-Modified-Since,
//! both beat Range; If-Range switches Range off when the client's part is of something else.
//! Ranges that overlap or nearly touch become one (15.3.7.2), and several that would cost as much as the whole are the
//! whole: no list of ranges, however hostile, makes an answer larger than what it is cut from.
//! QUERY has conditions like GET, on the result of the query (RFC 10008); its ranges, which a server may ignore, are.
//! Deliberately absent: If-Match and If-Unmodified-Since, which a cache may ignore (13.1.1, 13.1.4), and the body of an
//! answer of several ranges.

use std::ops::Range;
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
    /// 206 with several ranges: `multipart/byteranges`.
    Multiple {
        /// The bytes to send; at least two, in the order in which the client first asked for any of each; apart from
        /// each other, and together with their part heads and delimiters less than `complete`.
        ranges: Vec<Range<u64>>,
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
    if !is_get && request.method != Method::HEAD && request.method.as_str() != "QUERY" {
        return Answer::Whole;
    }
    // Neither a condition nor a range: five look-ups less.
    if request.fields.is_empty() {
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

/// Whether the conditions of `request` say that the client has the response with `fields`.
pub(crate) fn is_not_modified(request: &HeaderMap, fields: &HeaderMap, now: WallTime) -> bool {
    // Most requests have no condition, and most tags are never looked at.
    let asked = match request.contains_key(header::IF_NONE_MATCH) {
        true => none_match(request, EntityTag::of(fields)),
        false => NoneMatch::Absent,
    };
    match asked {
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
    let mut ranges = coalesced(specs.iter().filter_map(|spec| spec.within(complete)));
    let in_each = fields.get(header::CONTENT_TYPE).map_or(0, |value| TYPE_BYTES + value.len() as u64);
    match ranges.len() {
        0 => Answer::Unsatisfiable { complete },
        1 => ranges.pop().map_or(Answer::Whole, |range| Answer::Partial { range, complete }),
        _ => {
            let part = |range: &Range<u64>| (range.end - range.start).saturating_add(PART_BYTES + in_each);
            match ranges.iter().map(part).fold(END_BYTES, u64::saturating_add) < complete {
                true => Answer::Multiple { ranges, complete },
                false => Answer::Whole,
            }
        }
    }
}

/// What a part of a multipart answer costs besides its bytes, at most: a delimiter of 36 bytes, a Content-Range with three
/// numbers of 20 digits, and the empty line. Its Content-Type comes on top.
const PART_BYTES: u64 = 128;
/// The name of that field, and what is around it.
const TYPE_BYTES: u64 = 16;
/// The final delimiter.
const END_BYTES: u64 = 40;

/// Joins ranges that overlap, touch, or lie closer together than a further part would cost without its Content-Type. Each range stands where the
/// first of those that it is made of stood.
pub(crate) fn coalesced(asked: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted: Vec<(usize, Range<u64>)> = asked.enumerate().collect();
    sorted.sort_unstable_by_key(|(place, range)| (range.start, *place));
    let mut joined: Vec<(usize, Range<u64>)> = Vec::with_capacity(sorted.len());
    for (place, range) in sorted {
        match joined.last_mut() {
            Some((first, before)) if range.start < before.end.saturating_add(PART_BYTES) => {
                before.end = before.end.max(range.end);
                *first = place.min(*first);
            }
            _ => joined.push((place, range)),
        }
    }
    joined.sort_unstable_by_key(|(place, _)| *place);
    joined.into_iter().map(|(_, range)| range).collect()
}

/// Evaluates If-Range (RFC 9110 13.1.5): true where it is absent, or the client's part is of this representation.
pub(crate) fn has_the_rest(request: &HeaderMap, fields: &HeaderMap, now: WallTime) -> bool {
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

/// The fields of a 206 made from a complete response: whether the stored ones are sent as they are, and what comes beside
/// them. Where the origin put a Content-Range on its whole response, nothing can be shared and all fields come in the map.
pub fn partial_fields(stored: &PreparedFields, range: &Range<u64>, complete: u64) -> (bool, HeaderMap) {
    let said = ContentRange::Bytes { range: range.clone(), complete: Some(complete) }.format();
    if !stored.map.contains_key(header::CONTENT_RANGE) {
        return (true, HeaderMap::from_iter([(header::CONTENT_RANGE, said)]));
    }
    let mut fields = stored.map.clone();
    fields.insert(header::CONTENT_RANGE, said);
    (false, fields)
}

/// The fields of a 416: how long the representation is. Nothing of the response itself.
pub fn unsatisfiable_fields(complete: u64) -> HeaderMap {
    HeaderMap::from_iter([(header::CONTENT_RANGE, ContentRange::Unsatisfied { complete }.format())])
}

#[cfg(test)]
mod tests;
