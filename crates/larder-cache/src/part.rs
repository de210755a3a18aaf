//! Parts of representations: what a 206 holds, what it can answer, and what makes it whole (RFC 9110 15.3.7, RFC 9111
//! 3.3, 3.4).
//!
//! In: the Content-Range of a 206, how many bytes of it are held, a request. Out: the slice of them that the request
//! asks for, or the one gap that is left to ask the origin for, and whether its answer fits.
//! A part that is shorter than it says is kept, for itself only (see [`Part::is_sound`]): explicit ranges count from
//! its first position and end with the bytes that are there, suffixes count from the end of those bytes. On a sound part
//! the two agree. Parts are put together by a strong entity tag alone; dates and weak tags promise no equal bytes.
//! Deliberately absent: parts with a hole in the middle, and several ranges that stay several. The origin answers those.

use std::ops::Range;

use http::{HeaderMap, HeaderValue, Method, header};
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::etag::EntityTag;
use larder_http::fields::range::{RangeField, RangeSpec};
use larder_http::message::RequestHead;
use larder_http::time::WallTime;

use crate::answer::{coalesced, has_the_rest, is_not_modified};
use crate::head::StoredHead;
use crate::update::merged;

/// Which bytes of a representation a 206 says that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The positions, end exclusive; never empty.
    pub range: Range<u64>,
    /// The length of the whole; never less than the range's end.
    pub complete: Option<u64>,
}

/// What a request is sent of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it lies in the bytes held; never empty.
    pub body: Range<u64>,
    /// Which positions of the representation it is; as many.
    pub said: Range<u64>,
}

impl Part {
    /// Reads the one valid `bytes a-b/c` of a 206. `None` for everything else, `multipart/byteranges` included.
    pub fn of(fields: &HeaderMap) -> Option<Self> {
        const SEVERAL: &[u8] = b"multipart/byteranges";
        let is_several = |value: &HeaderValue| {
            value.as_bytes().get(..SEVERAL.len()).is_some_and(|start| start.eq_ignore_ascii_case(SEVERAL))
        };
        if fields.get_all(header::CONTENT_TYPE).iter().any(is_several) {
            return None;
        }
        match ContentRange::read(fields)? {
            ContentRange::Bytes { range, complete } => Some(Self { range, complete }),
            ContentRange::Unsatisfied { .. } => None,
        }
    }

    fn length(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether `held` bytes are as many as it says. Only then may it be put together with anything.
    pub fn is_sound(&self, held: u64) -> bool {
        held == self.length()
    }

    /// What `spec` asks for, out of `held` bytes; `None` unless the part claims all of that which exists, and has some.
    pub fn slice(&self, spec: RangeSpec, held: u64) -> Option<Slice> {
        let asked = match (self.complete, spec) {
            (Some(complete), spec) => spec.within(complete)?,
            (None, RangeSpec::Between(first, last)) => first..last.checked_add(1)?,
            (None, RangeSpec::From(_) | RangeSpec::Suffix(_)) => return None,
        };
        if asked.start < self.range.start || asked.end > self.range.end {
            return None;
        }
        let held = held.min(self.length());
        if let RangeSpec::Suffix(_) = spec {
            // It ends where the whole ends, and so do the bytes that are here.
            let length = held.min(asked.end - asked.start);
            let slice = Slice { body: held - length..held, said: asked.end - length..asked.end };
            return (length > 0).then_some(slice);
        }
        let said = asked.start..asked.end.min(self.range.start + held);
        let body = said.start - self.range.start..said.end.checked_sub(self.range.start)?;
        (!body.is_empty()).then_some(Slice { body, said })
    }

    /// [`slice`](Self::slice) for several ranges that are one after all.
    fn slice_of_all(&self, specs: &[RangeSpec], held: u64) -> Option<Slice> {
        if let [spec] = specs {
            return self.slice(*spec, held);
        }
        // Of a part that is shorter than it says, ranges of different kinds cannot be compared.
        let complete = self.complete.filter(|_| self.is_sound(held))?;
        match &coalesced(specs.iter().filter_map(|spec| spec.within(complete)))[..] {
            [one] => self.slice(RangeSpec::Between(one.start, one.end.checked_sub(1)?), held),
            _ => None,
        }
    }

    /// What is missing of the whole, where `held` bytes are sound and only one end is missing.
    pub fn gap(&self, held: u64) -> Option<Gap> {
        let complete = self.complete.filter(|_| self.is_sound(held))?;
        let missing = match (self.range.start, self.range.end) {
            (0, end) if end < complete => end..complete,
            (start, end) if start > 0 && end == complete => 0..start,
            _ => return None,
        };
        Some(Gap { open: missing.end == complete, missing, complete })
    }

    /// The part that the two are together: of the same length in whole, and overlapping or adjacent. Whether they are of
    /// the same representation is asked of [`same_representation`].
    pub fn joins(&self, other: &Self) -> Option<Self> {
        let touch = self.range.start <= other.range.end && other.range.start <= self.range.end;
        (touch && self.complete == other.complete).then(|| Self {
            range: self.range.start.min(other.range.start)..self.range.end.max(other.range.end),
            complete: self.complete,
        })
    }
}

/// The one piece that a part lacks of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its positions, end exclusive; never empty.
    pub missing: Range<u64>,
    /// Whether it reaches the end of the whole.
    pub open: bool,
    /// The length of the whole.
    pub complete: u64,
}

impl Gap {
    /// Asks for the gap: Range, and If-Range with the strong entity tag of what is stored. Where there is none, the
    /// answer can be used only if it is the whole, which an origin may well prefer to send.
    pub fn request_fields(&self, head: &StoredHead, out: &mut HeaderMap) {
        let range = match self.open {
            true => format!("bytes={}-", self.missing.start),
            false => format!("bytes={}-{}", self.missing.start, self.missing.end.saturating_sub(1)),
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

    /// Whether the 206 with `fields` is exactly the gap, of the same representation as what is stored (RFC 9110
    /// 15.3.7.3).
    pub fn filled_by(&self, head: &StoredHead, fields: &HeaderMap) -> bool {
        let fits = Part::of(fields)
            .is_some_and(|part| part.range == self.missing && part.complete == Some(self.complete));
        let same = || {
            let (own, other) = (strong_tag(head), EntityTag::of(fields));
            own.zip(other).is_some_and(|(own, other)| own.equals_strongly(&other))
        };
        fits && same()
    }
}

fn strong_tag(head: &StoredHead) -> Option<EntityTag<'_>> {
    let value = head.validators.etag.as_ref()?;
    EntityTag::new(value.as_bytes()).filter(EntityTag::is_strong)
}

/// Whether two stored responses are of one representation, byte for byte: their strong entity tags are equal.
pub fn same_representation(a: &StoredHead, b: &StoredHead) -> bool {
    strong_tag(a).zip(strong_tag(b)).is_some_and(|(a, b)| a.equals_strongly(&b))
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

#[cfg(test)]
mod tests;
