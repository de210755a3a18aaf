//! Range, Content-Range and the parts of a representation that a 206 holds: nothing is ever taken from beyond what
//! exists or is held, a part and its gap are the whole, and what is written again is the same.

use crate::{lines, named};
use http::header;
use larder_cache::part::Part;
use larder_http::fields::content_range::ContentRange;
use larder_http::fields::range::{RangeField, RangeSpec, SPECS_MAX};

/// Reads `input`.
///
/// # Panics
/// What has to hold does not.
pub fn check(input: &[u8]) {
    let lines = lines(input);
    let (mut specs, mut parts) = (Vec::new(), Vec::new());
    for line in &lines {
        if let RangeField::Bytes(read) = RangeField::read(&named(&header::RANGE, [line])) {
            assert!((1..=SPECS_MAX).contains(&read.len()));
            specs.extend(read);
        }
        let content_range = named(&header::CONTENT_RANGE, [line]);
        parts.extend(Part::of(&content_range));
        if let Some(range) = ContentRange::read(&content_range) {
            let again = named(&header::CONTENT_RANGE, [&range.format()]);
            assert_eq!(ContentRange::read(&again).as_ref(), Some(&range), "changed by passing it on");
        }
    }
    if lines.len() > 1 {
        assert!(!matches!(RangeField::read(&named(&header::RANGE, &lines)), RangeField::Bytes(_)));
        assert_eq!(ContentRange::read(&named(&header::CONTENT_RANGE, &lines)), None);
    }
    for spec in &specs {
        for complete in [0, 1, 10, 57_000, u64::MAX] {
            stays_within(*spec, complete);
        }
    }
    for part in &parts {
        a_part_and_its_gap_are_the_whole(part);
        for spec in &specs {
            is_cut_out_of(part, *spec);
        }
        for other in &parts {
            together(part, other);
        }
    }
}

fn stays_within(spec: RangeSpec, complete: u64) {
    let Some(within) = spec.within(complete) else { return };
    assert!(within.start < within.end && within.end <= complete, "{within:?} of {complete}");
    let length = within.end - within.start;
    match spec {
        RangeSpec::Between(first, last) => assert!(within.start == first && length - 1 <= last - first),
        RangeSpec::From(first) => assert!(within == (first..complete)),
        RangeSpec::Suffix(asked) => assert!(within.end == complete && length == asked.min(complete)),
    }
}

fn length(part: &Part) -> u64 {
    part.range.end - part.range.start
}

fn a_part_and_its_gap_are_the_whole(part: &Part) {
    assert!(part.range.start < part.range.end);
    assert!(part.complete.is_none_or(|complete| part.range.end <= complete));
    assert!(part.is_sound(length(part)) && !part.is_sound(length(part) - 1));
    assert_eq!(part.gap(length(part) - 1), None, "less is held than was said");
    let Some(gap) = part.gap(length(part)) else { return };
    assert!(!gap.missing.is_empty() && Some(gap.complete) == part.complete);
    let mut whole = part.clone();
    for range in gap.missing {
        assert!(range.start < range.end);
        let filler = Part { range, complete: Some(gap.complete), holes: Vec::new() };
        whole = whole.joins(&filler).expect("what is missing is adjacent");
    }
    assert!(whole.holes.is_empty());
    assert_eq!((whole.range, whole.complete), (0..gap.complete, Some(gap.complete)));
}

fn is_cut_out_of(part: &Part, spec: RangeSpec) {
    let sound = part.slice(spec, length(part));
    for held in [0, 1, length(part) - 1, length(part), u64::MAX] {
        let Some(slice) = part.slice(spec, held) else { continue };
        assert!(slice.body.start < slice.body.end && slice.body.end <= held.min(length(part)), "{slice:?}");
        assert_eq!(slice.body.end - slice.body.start, slice.said.end - slice.said.start, "{slice:?}");
        assert!(part.range.start <= slice.said.start && slice.said.end <= part.range.end, "{slice:?}");
        assert!(part.complete.is_none_or(|complete| slice.said.end <= complete), "{slice:?}");
        assert!(held < length(part) || sound.as_ref() == Some(&slice), "what is said and held is enough");
    }
    let Some(slice) = sound else { return };
    // On a part that holds what it says, positions are positions.
    assert_eq!(slice.said.start - part.range.start, slice.body.start, "{slice:?}");
    if let Some(complete) = part.complete {
        assert_eq!(Some(slice.said), spec.within(complete), "all that was asked for and exists");
    }
}

fn together(one: &Part, other: &Part) {
    let joined = one.joins(other);
    assert_eq!(joined, other.joins(one));
    let Some(joined) = joined else { return };
    assert!(joined.complete == one.complete && one.complete == other.complete);
    assert!(length(&joined) <= length(one).saturating_add(length(other)), "with a hole inside");
    for part in [one, other] {
        assert!(joined.range.start <= part.range.start && part.range.end <= joined.range.end);
    }
}
