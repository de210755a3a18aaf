//! Parts: which slice answers what, what is missing, what joins.

#![allow(clippy::unwrap_used)]
#![allow(clippy::single_range_in_vec_init, reason = "gaps are a list of ranges, often of one")]

use proptest::prelude::*;

use super::*;
use crate::completion::{PartAnswer, answer_part, same_representation, whole_fields};
use crate::example::{DATE, at_ms, fields, request, stored};
use crate::head::StoredHead;
use crate::policy::CachePolicy;
use RangeSpec::{Between, From, Suffix};

type Lines<'a> = &'a [(&'a str, &'a str)];

fn part(range: Range<u64>, complete: Option<u64>) -> Part {
    Part { range, complete, holes: Vec::new() }
}

fn head(said: Lines<'_>) -> StoredHead {
    let mut lines = vec![("cache-control", "max-age=60")];
    lines.extend(said);
    stored(&[], &lines, &CachePolicy::default())
}

#[test]
fn a_part_is_what_one_valid_content_range_says() {
    let check = |said: Lines<'_>, expected: Option<Part>| {
        assert_eq!(Part::of(&fields(said)), expected, "{said:?}");
    };
    check(&[("content-range", "bytes 4-9/10")], Some(part(4..10, Some(10))));
    check(&[("content-range", "bytes 4-9/*")], Some(part(4..10, None)));
    check(&[("content-range", "bytes 0-9/10"), ("content-type", "text/plain")], Some(part(0..10, Some(10))));
    check(&[], None);
    check(&[("content-range", "bytes */10")], None);
    check(&[("content-range", "bytes 4-10/10")], None);
    check(&[("content-range", "lines 4-9/10")], None);
    check(&[("content-range", "bytes 4-9/10"), ("content-range", "bytes 4-9/10")], None);
    check(&[("content-range", "bytes 4-9/10"), ("content-type", "Multipart/ByteRanges; boundary=x")], None);
}

fn check(part: &Part, held: u64, spec: RangeSpec, expected: Option<(Range<u64>, Range<u64>)>) {
    let expected = expected.map(|(body, said)| Slice { body, said });
    assert_eq!(part.slice(spec, held), expected, "{part:?} {held} {spec:?}");
}

#[test]
fn a_sound_part_answers_what_lies_within_it() {
    let middle = part(4..8, Some(10));
    check(&middle, 4, Between(4, 7), Some((0..4, 4..8)));
    check(&middle, 4, Between(5, 6), Some((1..3, 5..7)));
    check(&middle, 4, Between(3, 6), None);
    check(&middle, 4, Between(5, 8), None);
    check(&middle, 4, From(4), None);
    check(&middle, 4, Suffix(2), None);
    let end = part(4..10, Some(10));
    check(&end, 6, From(6), Some((2..6, 6..10)));
    check(&end, 6, Between(8, 99), Some((4..6, 8..10)));
    check(&end, 6, Suffix(6), Some((0..6, 4..10)));
    check(&end, 6, Suffix(7), None);
    check(&end, 6, From(10), None);
    check(&end, 6, Suffix(0), None);
    let unknown = part(4..8, None);
    check(&unknown, 4, Between(4, 7), Some((0..4, 4..8)));
    // Whether there is more cannot be known.
    check(&unknown, 4, Between(4, 8), None);
    check(&unknown, 4, From(4), None);
    check(&unknown, 4, Suffix(1), None);
    check(&unknown, 4, Between(4, u64::MAX), None);
}

#[test]
fn of_a_short_part_ranges_count_from_its_first_position_and_suffixes_from_its_last_byte() {
    let short = part(4..10, Some(10));
    check(&short, 5, Between(6, 8), Some((2..5, 6..9)));
    check(&short, 5, From(6), Some((2..5, 6..9)));
    check(&short, 5, Between(4, 9), Some((0..5, 4..9)));
    check(&short, 5, Between(9, 9), None);
    check(&short, 5, Suffix(1), Some((4..5, 9..10)));
    check(&short, 5, Suffix(5), Some((0..5, 5..10)));
    check(&short, 5, Suffix(6), Some((0..5, 5..10)));
    check(&short, 5, Suffix(7), None);
    check(&short, 0, Suffix(6), None);
    check(&short, 0, Between(4, 4), None);
    assert!(short.is_sound(6) && !short.is_sound(5) && !short.is_sound(7));
    // More than it says is as little use as less: only what it says is in reach.
    check(&short, 99, From(4), Some((0..6, 4..10)));
}

#[test]
fn a_request_is_answered_from_a_part_that_is_enough() {
    const SAID: Lines<'_> =
        &[("etag", "\"a\""), ("last-modified", "Sun, 06 Nov 1994 08:49:36 GMT"), ("date", DATE)];
    let end = part(4..1_000, Some(1_000));
    let check = |method: &str, asked: Lines<'_>, expected: Option<PartAnswer>| {
        let found = answer_part(&request(method, asked), &head(SAID), &end, 996, at_ms(0).wall);
        assert_eq!(found, expected, "{method} {asked:?}");
    };
    let partial = |body: Range<u64>, said: &'static str| {
        Some(PartAnswer::Partial { body, content_range: HeaderValue::from_static(said) })
    };
    check("GET", &[("range", "bytes=5-6")], partial(1..3, "bytes 5-6/1000"));
    check("GET", &[("range", "bytes=-1")], partial(995..996, "bytes 999-999/1000"));
    check("HEAD", &[("range", "bytes=5-6")], None);
    check("QUERY", &[("range", "bytes=5-6")], None);
    check("GET", &[], None);
    check("GET", &[("range", "lines=5-6")], None);
    check("GET", &[("range", "bytes=3-6")], None);
    check("GET", &[("range", "bytes=1000-")], None);
    check("GET", &[("range", "bytes=5-6"), ("if-none-match", "\"a\"")], Some(PartAnswer::NotModified));
    check("GET", &[("if-none-match", "\"a\"")], Some(PartAnswer::NotModified));
    check("GET", &[("range", "bytes=5-6"), ("if-none-match", "\"b\"")], partial(1..3, "bytes 5-6/1000"));
    check("GET", &[("range", "bytes=5-6"), ("if-range", "\"a\"")], partial(1..3, "bytes 5-6/1000"));
    check("GET", &[("range", "bytes=5-6"), ("if-range", "\"b\"")], None);
    check("GET", &[("range", "bytes=5-6, 7-8")], partial(1..5, "bytes 5-8/1000"));
    check("GET", &[("range", "bytes=7-8, -10, 800-989")], None);
    check("GET", &[("range", "bytes=-10, 800-989, 2000-")], partial(796..996, "bytes 800-999/1000"));
    check("GET", &[("range", "bytes=3-4, 7-8")], None);
    let unknown = part(0..10, None);
    let several = request("GET", &[("range", "bytes=1-2, 3-4")]);
    assert_eq!(answer_part(&several, &head(SAID), &unknown, 10, at_ms(0).wall), None);
    let short = request("GET", &[("range", "bytes=5-6, 7-8")]);
    assert_eq!(answer_part(&short, &head(SAID), &end, 995, at_ms(0).wall), None);
}

#[test]
fn what_is_missing_is_known_where_what_is_held_is_sound() {
    let gap = |missing: &[Range<u64>]| Some(Gap { missing: missing.to_vec(), complete: 10 });
    let holes = |holes: &[Range<u64>]| Part { holes: holes.to_vec(), ..part(1..9, Some(10)) };
    for (part, held, expected) in [
        (part(0..5, Some(10)), 5, gap(&[5..10])),
        (part(4..10, Some(10)), 6, gap(&[0..4])),
        (part(4..10, Some(10)), 5, None),
        (part(0..10, Some(10)), 10, None),
        (part(2..8, Some(10)), 6, gap(&[0..2, 8..10])),
        (part(0..5, None), 5, None),
        (holes(&[2..3, 5..7]), 5, gap(&[0..1, 2..3, 5..7, 9..10])),
        (holes(&[2..3, 5..7]), 8, None),
    ] {
        assert_eq!(part.gap(held), expected, "{part:?} {held}");
    }
    let ends = |missing: &[Range<u64>]| gap(missing).unwrap().at_one_end().cloned();
    assert_eq!((ends(&[5..10]), ends(&[0..4])), (Some(5..10), Some(0..4)));
    assert_eq!((ends(&[5..9]), ends(&[0..4, 5..10])), (None, None));
}

#[test]
fn of_a_part_with_holes_each_run_answers_what_lies_within_it() {
    let runs = [2..4, 6..7, 8..12];
    let part = Part::of_runs(&runs, 12).unwrap();
    assert_eq!((&part.range, &part.holes[..]), (&(2..12), &[4..6, 7..8][..]));
    assert!(part.runs().eq(runs));
    check(&part, 7, Between(2, 3), Some((0..2, 2..4)));
    check(&part, 7, Between(6, 6), Some((2..3, 6..7)));
    check(&part, 7, Between(9, 10), Some((4..6, 9..11)));
    check(&part, 7, From(8), Some((3..7, 8..12)));
    check(&part, 7, Suffix(2), Some((5..7, 10..12)));
    check(&part, 7, Between(3, 4), None);
    check(&part, 7, Between(4, 5), None);
    check(&part, 7, Between(0, 11), None);
    check(&part, 6, Between(2, 3), None);
    assert_eq!(part.joins(&Part::of_runs(&[4..6], 12).unwrap()), None);
    for (runs, is_held) in [(&[2..3, 9..12][..], true), (&[2..4, 6..7][..], true), (&[3..7][..], false)] {
        assert_eq!(part.contains(&Part::of_runs(runs, 12).unwrap()), is_held, "{runs:?}");
    }
    for odd in [&[][..], &[3..3][..], &[2..4, 4..5][..], &[5..6, 2..3][..], &[2..13][..]] {
        assert_eq!(Part::of_runs(odd, 12), None, "{odd:?}");
    }
}

#[test]
fn a_gap_is_asked_for_under_the_strong_tag() {
    let check = |part: &Part, said: Lines<'_>, expected: Lines<'_>| {
        let mut out = fields(&[("range", "bytes=0-0"), ("if-range", "\"of the client\"")]);
        let gap = part.gap(part.length());
        assert!(gap.is_some_and(|gap| {
            gap.request_fields(0, &head(said), &mut out);
            true
        }));
        assert_eq!(out, fields(expected), "{part:?} {said:?}");
    };
    let (start, end) = (part(0..5, Some(10)), part(4..10, Some(10)));
    check(&start, &[("etag", "\"a\"")], &[("range", "bytes=5-"), ("if-range", "\"a\"")]);
    check(&end, &[("etag", "\"a\"")], &[("range", "bytes=0-3"), ("if-range", "\"a\"")]);
    check(&start, &[("etag", "W/\"a\"")], &[("range", "bytes=5-")]);
    check(&start, &[("etag", "odd")], &[("range", "bytes=5-")]);
    check(&start, &[("last-modified", DATE)], &[("range", "bytes=5-")]);
}

#[test]
fn only_the_very_gap_under_the_same_strong_tag_fills_it() {
    let check = |stored: &str, range: &str, tag: &str, expected: bool| {
        let gap = Gap { missing: vec![5..10], complete: 10 };
        let said = fields(&[("content-range", range), ("etag", tag)]);
        assert_eq!(gap.filled_by(0, &head(&[("etag", stored)]), &said), expected, "{stored} {range} {tag}");
    };
    check("\"a\"", "bytes 5-9/10", "\"a\"", true);
    check("\"a\"", "bytes 5-9/10", "\"b\"", false);
    check("\"a\"", "bytes 5-9/10", "W/\"a\"", false);
    check("W/\"a\"", "bytes 5-9/10", "W/\"a\"", false);
    check("odd", "bytes 5-9/10", "odd", false);
    check("\"a\"", "bytes 5-8/10", "\"a\"", false);
    check("\"a\"", "bytes 5-9/11", "\"a\"", false);
    check("\"a\"", "bytes 5-9/*", "\"a\"", false);
    check("\"a\"", "bytes */10", "\"a\"", false);
    let gap = Gap { missing: vec![5..10], complete: 10 };
    assert!(!gap.filled_by(0, &head(&[]), &fields(&[("content-range", "bytes 5-9/10")])));
    assert!(same_representation(&head(&[("etag", "\"a\"")]), &head(&[("etag", "\"a\"")])));
    assert!(!same_representation(&head(&[("etag", "W/\"a\"")]), &head(&[("etag", "W/\"a\"")])));
    assert!(!same_representation(&head(&[]), &head(&[])));
}

#[test]
fn parts_that_touch_join() {
    let ten = |range| part(range, Some(10));
    for (a, b, expected) in [
        (ten(0..5), ten(5..10), Some(ten(0..10))),
        (ten(0..5), ten(3..7), Some(ten(0..7))),
        (ten(0..9), ten(3..7), Some(ten(0..9))),
        (ten(0..4), ten(5..10), None),
        (ten(0..5), part(5..10, Some(11)), None),
        (ten(0..5), part(5..10, None), None),
        (part(0..5, None), part(5..10, None), Some(part(0..10, None))),
    ] {
        assert_eq!(a.joins(&b), expected, "{a:?} {b:?}");
        assert_eq!(b.joins(&a), expected, "{b:?} {a:?}");
    }
}

#[test]
fn a_completed_part_has_the_newer_fields_and_none_of_a_part() {
    let old = fields(&[
        ("content-type", "text/plain"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("date", DATE),
        ("content-range", "bytes 0-4/10"),
    ]);
    let newer =
        fields(&[("x-a", "3"), ("content-range", "bytes 5-9/10"), ("content-length", "5"), ("age", "1")]);
    let expected = fields(&[("content-type", "text/plain"), ("x-a", "3"), ("age", "1")]);
    assert_eq!(whole_fields(&old, &newer), expected, "an old Date would make it old");
    let dated = fields(&[("date", "Sun, 06 Nov 1994 08:49:39 GMT")]);
    assert_eq!(whole_fields(&old, &dated).get("date"), dated.get("date"));
    let many = (0..300).map(|n| (format!("x-{n}"), "v"));
    let many = many.collect::<Vec<_>>();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(whole_fields(&fields(&many), &dated), dated);
}

fn any_part() -> impl Strategy<Value = Part> {
    (0..20_u64, 1..20_u64, 0..20_u64, any::<bool>()).prop_map(|(start, length, behind, known)| {
        let end = start + length;
        part(start..end, known.then_some(end + behind))
    })
}

fn any_spec() -> impl Strategy<Value = RangeSpec> {
    let position = || prop_oneof![8 => 0..70_u64, 1 => Just(u64::MAX)];
    prop_oneof![
        (position(), position()).prop_map(|(a, b)| Between(a.min(b), a.max(b))),
        position().prop_map(From),
        position().prop_map(Suffix),
    ]
}

proptest! {
    #[test]
    fn a_slice_never_lies_outside_of_what_is_held(part in any_part(), held in 0..50_u64, spec in any_spec()) {
        if let Some(Slice { body, said }) = part.slice(spec, held) {
            prop_assert!(body.start < body.end && body.end <= held);
            prop_assert_eq!(body.end - body.start, said.end - said.start);
            prop_assert!(part.range.start <= said.start && said.end <= part.range.end);
            prop_assert!(part.complete.is_none_or(|complete| said.end <= complete));
        }
    }

    #[test]
    fn a_slice_of_a_sound_part_is_what_the_whole_would_give(part in any_part(), spec in any_spec()) {
        let found = part.slice(spec, part.length());
        if let Some(Slice { body, said }) = &found {
            prop_assert_eq!(body.start + part.range.start..body.end + part.range.start, said.clone());
        }
        if let Some(complete) = part.complete {
            let whole = spec.within(complete);
            let is_here = |asked: &Range<u64>| part.range.start <= asked.start && asked.end <= part.range.end;
            prop_assert_eq!(found.map(|slice| slice.said), whole.filter(is_here));
        }
    }

    #[test]
    fn parts_joined_cover_both_and_no_more(a in any_part(), b in any_part()) {
        let b = Part { complete: a.complete, ..b };
        let covered = |position: &u64| a.range.contains(position) || b.range.contains(position);
        match a.joins(&b) {
            Some(joined) => prop_assert!((0..50).all(|at| joined.range.contains(&at) == covered(&at))),
            None => {
                let (first, last) = (a.range.start.min(b.range.start), a.range.end.max(b.range.end));
                prop_assert!(!(first..last).all(|at| covered(&at)));
            }
        }
    }

    #[test]
    fn a_part_and_its_gap_are_the_whole(part in any_part()) {
        if let Some(gap) = part.gap(part.length()) {
            let mut whole = part.clone();
            for range in &gap.missing {
                let rest = Part { range: range.clone(), complete: Some(gap.complete), holes: Vec::new() };
                prop_assert!(!rest.range.is_empty());
                whole = whole.joins(&rest).unwrap();
            }
            prop_assert_eq!(whole.range, 0..gap.complete);
            let missing: u64 = gap.missing.iter().map(|range| range.end - range.start).sum();
            prop_assert_eq!(part.length() + missing, gap.complete);
        }
    }
}
