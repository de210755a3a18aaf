//! Parts of representations beside what is stored and what comes (RFC 9110 14.2, 15.3.7; RFC 9111 3.3, 3.4).
//!
//! In: a stored response, a gap in it, and an answer or a request. Out: whether they are of one representation, the fields of the
//! whole that they make, and what a client is sent of a part. Parts are put together by a strong entity tag alone; dates and
//! weak tags promise no equal bytes.

use std::ops::Range;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use larder_http::fields::cache_groups::CACHE_GROUPS;
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::etag::EntityTag;
use larder_http::fields::range::RangeField;
use larder_http::message::RequestHead;
use larder_http::time::WallTime;

use crate::answer::{has_the_rest, is_not_modified};
use crate::coding::Codings;
use crate::head::StoredHead;
use crate::part::{Gap, Part, Slice};
use crate::update::merged;

impl Gap {
    /// Asks for one of the missing ranges: Range, and If-Range with the strong entity tag of what is stored. Where there is none,
    /// the answer can be used only if it is the whole, which an origin may well prefer to send. Nothing is changed where there is
    /// no such range.
    pub fn request_fields(&self, number: usize, head: &StoredHead, out: &mut HeaderMap) {
        let Some(missing) = self.missing.get(number) else { return };
        let range = match missing.end == self.complete {
            true => format!("bytes={}-", missing.start),
            false => format!("bytes={}-{}", missing.start, missing.end.saturating_sub(1)),
        };
        out.insert(
            header::RANGE,
            HeaderValue::try_from(range).expect("digits and punctuation are a field value"),
        );
        match (strong_tag(head), &head.validators.etag) {
            (Some(_), Some(etag)) => out.insert(header::IF_RANGE, etag.clone()),
            _ => out.remove(header::IF_RANGE),
        };
    }

    /// Whether the 206 with `fields` is exactly that range, of the same representation as what is stored (RFC 9110
    /// 15.3.7.3).
    pub fn filled_by(&self, number: usize, head: &StoredHead, fields: &HeaderMap) -> bool {
        let fits = Part::of(fields).is_some_and(|part| {
            Some(&part.range) == self.missing.get(number) && part.complete == Some(self.complete)
        });
        fits && is_of(head, fields)
    }
}

/// Whether an answer with these fields is of the same representation as what is stored, byte for byte: their strong entity
/// tags and the codings of their content are equal.
pub fn is_of(head: &StoredHead, fields: &HeaderMap) -> bool {
    let (own, other) = (strong_tag(head), EntityTag::of(fields));
    let same_tag = own.zip(other).is_some_and(|(own, other)| own.equals_strongly(&other));
    same_tag && Codings::of(fields) == head.vary.codings()
}

/// Whether a part of this response may be put together with the rest of it later: it is whole, and has a strong entity tag.
pub fn may_be_completed(head: &StoredHead) -> bool {
    head.status == StatusCode::OK && strong_tag(head).is_some()
}

fn strong_tag(head: &StoredHead) -> Option<EntityTag<'_>> {
    let value = head.validators.etag.as_ref()?;
    EntityTag::new(value.as_bytes()).filter(EntityTag::is_strong)
}

/// Whether two stored responses are of one representation, byte for byte: their strong entity tags are equal, and so are
/// the codings of their content, since some origins have one tag for all of them.
pub fn same_representation(a: &StoredHead, b: &StoredHead) -> bool {
    let same_tag = strong_tag(a).zip(strong_tag(b)).is_some_and(|(a, b)| a.equals_strongly(&b));
    same_tag && a.vary.codings() == b.vary.codings()
}

/// Whether two strong tags say that two responses are of different states of one representation. Without such tags nobody
/// knows; and of two codings the tags may differ at any time.
pub fn different_states(a: &StoredHead, b: &StoredHead) -> bool {
    let different_tags = strong_tag(a).zip(strong_tag(b)).is_some_and(|(a, b)| !a.equals_strongly(&b));
    different_tags && a.vary.codings() == b.vary.codings()
}

/// The fields of the 200 that a completed part makes: those of the answer that completed it, and what only the part has.
/// What describes a part or the moment of the older answer is gone. Where both together are more than a response may
/// have, the newer ones stand alone.
pub fn whole_fields(stored: &HeaderMap, newer: &HeaderMap) -> HeaderMap {
    let mut fields = merged(stored, newer, |_| true).unwrap_or_else(|| newer.clone());
    fields.remove(header::CONTENT_RANGE);
    fields.remove(header::CONTENT_LENGTH);
    if !newer.contains_key(header::DATE) {
        fields.remove(header::DATE);
    }
    fields
}

/// Adds to `fields` the tags and cache groups that only the stored response names: what is made of it and of something newer goes with
/// the names of both. Otherwise a purge that came in between, by a name that the newer one has not, would miss it.
pub fn keep_names(stored: &StoredHead, fields: &mut HeaderMap) {
    let of_tags = stored.tags.iter().flat_map(|tags| tags.names());
    let named = stored.all_fields();
    for name in of_tags.chain([&CACHE_GROUPS]) {
        for value in named.get_all(name) {
            if fields.get_all(name).iter().all(|other| other != value) {
                fields.append(name, value.clone());
            }
        }
    }
}

/// What a client is sent from a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartAnswer {
    /// 304: the client has it.
    NotModified,
    /// 206
    Partial {
        /// Where the bytes lie in those that are held; never empty.
        body: Range<u64>,
        /// Which bytes they are.
        content_range: HeaderValue,
    },
}

/// Decides what `request` is sent of a stored part of which `held` bytes are there. `None` where the part is not enough:
/// another method, no Range, something beyond the part, an If-Range that names something else. Conditions come before
/// Range, as in [`answer`](fn@crate::answer). `now` serves to read two-digit years only.
pub fn answer_part(
    request: &RequestHead,
    head: &StoredHead,
    part: &Part,
    held: u64,
    now: WallTime,
) -> Option<PartAnswer> {
    if request.method != Method::GET {
        return None;
    }
    let fields = &head.fields.map;
    if is_not_modified(&request.fields, fields, now) {
        return Some(PartAnswer::NotModified);
    }
    let RangeField::Bytes(specs) = RangeField::read(&request.fields) else {
        return None;
    };
    if !has_the_rest(&request.fields, fields, now) {
        return None;
    }
    let Slice { body, said } = part.slice_of_all(&specs, held)?;
    let content_range = ContentRange::Bytes { range: said, complete: part.complete }.format();
    Some(PartAnswer::Partial { body, content_range })
}
