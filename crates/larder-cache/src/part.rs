//! Parts of representations: what a 206 holds, and what it can answer (RFC 9110 15.3.7, RFC 9111 3.3, 3.4).
//!
//! In: the Content-Range of a 206, how many bytes of it are held, a range. Out: the slice of them that the range asks for, or
//! the gaps that are left to ask the origin for.
//! A part may have holes: what a disk did not take of a body while it arrived. The bytes held are then those of its runs, one
//! behind the other.
//! A part that is shorter than it says is kept, for itself only (see [`Part::is_sound`]): explicit ranges count from
//! its first position and end with the bytes that are there, suffixes count from the end of those bytes. On a sound part
//! the two agree.
//! Deliberately absent: several ranges that stay several. The origin answers those.

use std::ops::Range;

use http::{HeaderMap, HeaderValue, header};
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::range::RangeSpec;

use crate::answer::coalesced;

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
    pub(crate) fn slice_of_all(&self, specs: &[RangeSpec], held: u64) -> Option<Slice> {
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
    /// the same representation is asked of [`same_representation`](crate::completion::same_representation).
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
}

#[cfg(test)]
mod tests;
