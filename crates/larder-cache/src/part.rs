//! Parts of representations: what a 206 holds, what it can answer, and what makes it whole (RFC 9110 15.3.7, RFC 9111
//! 3.3, 3.4).
//!
//! In: the Content-Range of a 206, how many bytes of it are held, a request. Out: the slice of them that the request
//! asks for, or the gaps that are left to ask the origin for, and whether its answers fit.
//! A part may have holes: what a disk did not take of a body while it arrived. The bytes held are then those of its runs, one
//! behind the other.
//! A part that is shorter than it says is kept, for itself only (see [`Part::is_sound`]): explicit ranges count from
//! its first position and end with the bytes that are there, suffixes count from the end of those bytes. On a sound part
//! the two agree. Parts are put together by a strong entity tag alone; dates and weak tags promise no equal bytes.
//! Deliberately absent: several ranges that stay several. The origin answers those.

use std::ops::Range;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::etag::EntityTag;
use larder_http::fields::range::{RangeField, RangeSpec};
use larder_http::message::RequestHead;
use larder_http::time::WallTime;

use crate::answer::{coalesced, has_the_rest, is_not_modified};
use crate::coding::Codings;
use crate::head::StoredHead;
use crate::update::merged;

/// Which bytes of a representation a 206 says that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The positions, end exclusive; never empty.
    pub range: Range<u64>,
    /// The length of the whole; never less than the range's end.
    pub complete: Option<u64>,
    /// What is missing within the range: in order, apart from each other and from the range's ends. A 206 has none.
    pub holes: Vec<Range<u64>>,
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
            ContentRange::Bytes { range, complete } => Some(Self { range, complete, holes: Vec::new() }),
            ContentRange::Unsatisfied { .. } => None,
        }
    }

    /// What is held of a whole of `complete` bytes: these runs, in order and apart from each other. `None` where there are none,
    /// or they are not that.
    pub fn of_runs(runs: &[Range<u64>], complete: u64) -> Option<Self> {
        let (first, last) = (runs.first()?, runs.last()?);
        let are_in_order = runs.iter().all(|run| run.start < run.end)
            && runs.array_windows().all(|[run, next]| run.end < next.start)
            && last.end <= complete;
        let holes = runs.array_windows().map(|[run, next]| run.end..next.start).collect();
        are_in_order.then_some(Self { range: first.start..last.end, complete: Some(complete), holes })
    }

    /// What is held, in order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = std::iter::once(self.range.start).chain(self.holes.iter().map(|hole| hole.end));
        let ends = self.holes.iter().map(|hole| hole.start).chain([self.range.end]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// Whether it holds all that the other does.
    pub fn contains(&self, other: &Self) -> bool {
        let has = |run: &Range<u64>| self.runs().any(|own| own.start <= run.start && run.end <= own.end);
        other.runs().all(|run| has(&run))
    }

    fn length(&self) -> u64 {
        let holes: u64 = self.holes.iter().map(|hole| hole.end.saturating_sub(hole.start)).sum();
        self.range.end.saturating_sub(self.range.start).saturating_sub(holes)
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
        if !self.holes.is_empty() {
            return self.slice_of_run(asked, held);
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

    /// The same for a part with holes, which has no byte too few.
    fn slice_of_run(&self, asked: Range<u64>, held: u64) -> Option<Slice> {
        let mut before = 0;
        for run in self.runs() {
            if run.start <= asked.start && asked.end <= run.end {
                let start = before + (asked.start - run.start);
                let body = start..start + (asked.end - asked.start);
                return (self.is_sound(held) && !asked.is_empty()).then_some(Slice { body, said: asked });
            }
            before += run.end - run.start;
        }
        None
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

    /// What is missing of the whole, where `held` bytes are sound and some are missing.
    pub fn gap(&self, held: u64) -> Option<Gap> {
        let complete = self.complete.filter(|_| self.is_sound(held))?;
        let ends = [0..self.range.start, self.range.end..complete];
        let [before, behind] = ends.map(|end| (!end.is_empty()).then_some(end));
        let missing: Vec<_> = before.into_iter().chain(self.holes.iter().cloned()).chain(behind).collect();
        (!missing.is_empty()).then_some(Gap { missing, complete })
    }

    /// The part that the two are together: of the same length in whole, and overlapping or adjacent. Whether they are of
    /// the same representation is asked of [`same_representation`].
    pub fn joins(&self, other: &Self) -> Option<Self> {
        let touch = self.range.start <= other.range.end && other.range.start <= self.range.end;
        let are_solid = self.holes.is_empty() && other.holes.is_empty();
        (touch && are_solid && self.complete == other.complete).then(|| Self {
            range: self.range.start.min(other.range.start)..self.range.end.max(other.range.end),
            complete: self.complete,
            holes: Vec::new(),
        })
    }
}

/// What a part lacks of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The positions, end exclusive: in order, apart from each other, never empty.
    pub missing: Vec<Range<u64>>,
    /// The length of the whole.
    pub complete: u64,
}

impl Gap {
    /// The one range that is missing, where that is the beginning of the whole or its end.
    pub fn at_one_end(&self) -> Option<&Range<u64>> {
        match &self.missing[..] {
            [one] if one.start == 0 || one.end == self.complete => Some(one),
            _ => None,
        }
    }

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
