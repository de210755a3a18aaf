//! What a client is sent, one table per rule.

// A list of one range is meant.
#![allow(clippy::single_range_in_vec_init)]

use proptest::prelude::*;

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
    check(&[("if-match", "\"b\""), ("if-unmodified-since", "Sun, 06 Nov 1984 08:49:35 GMT")], SAID, Whole);
}

#[test]
fn one_range_is_answered_or_none() {
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
    range("bytes=0-1, 3-4", partial(0..5));
    range("bytes=-1, 0-1", partial(0..10));
    range("lines=0-1", Answer::Whole);
}

#[test]
fn several_ranges_are_several_parts_unless_they_cost_as_much_as_the_whole() {
    let check = |value, expected: &[Range<u64>]| {
        let request = request("GET", &[("range", value)]);
        let found = answer(&request, StatusCode::OK, &fields(SAID), Some(1_000), at_ms(0).wall);
        let complete = 1_000;
        let expected = match expected {
            [] => Answer::Whole,
            [range] => Answer::Partial { range: range.clone(), complete },
            ranges => Answer::Multiple { ranges: ranges.to_vec(), complete },
        };
        assert_eq!(found, expected, "{value}");
    };
    check("bytes=0-9, 500-509", &[0..10, 500..510]);
    check("bytes=500-509, 0-9", &[500..510, 0..10]);
    check("bytes=-10, 0-9, 2000-", &[990..1_000, 0..10]);
    // The gap is as long as a part head, and one byte shorter.
    check("bytes=0-9, 138-140", &[0..10, 138..141]);
    check("bytes=0-9, 137-140", &[0..141]);
    check("bytes=0-9, 0-9, 5-20", &[0..21]);
    check("bytes=500-509, 0-9, 510-519", &[500..520, 0..10]);
    check("bytes=400-409, 0-9, 350-", &[350..1_000, 0..10]);
    check("bytes=0-351, 648-", &[]);
    check("bytes=0-351, 649-", &[0..352, 649..1_000]);
    check("bytes=0-0, 200-200, 400-400, 600-600, 800-800", &[0..1, 200..201, 400..401, 600..601, 800..801]);
    check("bytes=0-0, 129-129, 258-258, 387-387, 516-516, 645-645, 774-774, 903-903", &[]);
    check("bytes=0-, 0-, 0-, 0-", &[0..1_000]);
}

#[test]
fn each_part_costs_its_content_type() {
    let found = |length: usize| {
        let said = fields(&[("content-type", &"x".repeat(length))]);
        let asked = request("GET", &[("range", "bytes=0-9, 500-509")]);
        answer(&asked, StatusCode::OK, &said, Some(1_000), at_ms(0).wall)
    };
    // 10 + 10 bytes, two part heads, the end: 316 without the type.
    let several = Answer::Multiple { ranges: vec![0..10, 500..510], complete: 1_000 };
    assert_eq!(found(325), several);
    assert_eq!(found(326), Answer::Whole);
    assert_eq!(found(8_192), Answer::Whole);
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
    assert_eq!(found("QUERY", 200, Some(10)), Answer::NotModified);
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
    assert_eq!(ranged("QUERY", 200, Some(10)), Answer::Whole);
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
    let plain = PreparedFields::new(fields(&[("x", "1")]));
    let (shares, own) = partial_fields(&plain, &(2..5), 10);
    assert!(shares);
    assert_eq!(own, fields(&[("content-range", "bytes 2-4/10")]));
    let odd = PreparedFields::new(fields(&[("x", "1"), ("content-range", "odd")]));
    let (shares, own) = partial_fields(&odd, &(2..5), 10);
    assert!(!shares);
    assert_eq!(own, fields(&[("x", "1"), ("content-range", "bytes 2-4/10")]));
    assert_eq!(unsatisfiable_fields(10), fields(&[("content-range", "bytes */10")]));
}

fn any_ranges(below: u64) -> impl Strategy<Value = Vec<Range<u64>>> {
    let range = (0..below, 1..below).prop_map(move |(start, length)| start..(start + length).min(below));
    proptest::collection::vec(range, 1..=16)
}

proptest! {
    #[test]
    fn coalesced_ranges_cover_what_was_asked_and_short_gaps(asked in any_ranges(2_000)) {
        let found = coalesced(asked.iter().cloned());
        for range in &asked {
            let covers = |found: &&Range<u64>| found.start <= range.start && range.end <= found.end;
            prop_assert_eq!(found.iter().filter(covers).count(), 1, "{:?}", range);
        }
        let is_asked = |position: u64| asked.iter().any(|range| range.contains(&position));
        for range in &found {
            prop_assert!(is_asked(range.start) && is_asked(range.end - 1));
            let mut unasked = 0;
            for position in range.clone() {
                unasked = if is_asked(position) { 0 } else { unasked + 1 };
                prop_assert!(unasked < PART_BYTES);
            }
        }
        for (at, a) in found.iter().enumerate() {
            for b in &found[at + 1..] {
                prop_assert!(a.end + PART_BYTES <= b.start || b.end + PART_BYTES <= a.start);
            }
        }
    }

    #[test]
    fn no_list_of_ranges_costs_more_than_the_whole(
        asked in proptest::collection::vec((0..3_000_u64, 0..3_000_u64), 1..=16), complete in 1..3_000_u64,
        content_type in proptest::option::of("[a-z/]{1,120}"),
    ) {
        let text: Vec<String> =
            asked.iter().map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))).collect();
        let request = request("GET", &[("range", &format!("bytes={}", text.join(",")))]);
        let said: Vec<_> = content_type.iter().map(|value| ("content-type", value.as_str())).collect();
        let delimiter = "\r\n--0123456789abcdef0123456789abcdef";
        let sent = match answer(&request, StatusCode::OK, &fields(&said), Some(complete), at_ms(0).wall) {
            Answer::Whole => complete,
            Answer::Partial { range, .. } => range.end - range.start,
            Answer::Multiple { ranges, .. } => {
                prop_assert!(ranges.len() > 1 && ranges.iter().all(|range| range.end <= complete));
                let parts = ranges.iter().map(|range| {
                    let typed = said.iter().map(|(_, value)| format!("\r\nContent-Type: {value}"));
                    let place = format!("{}-{}/{complete}", range.start, range.end - 1);
                    let lines = format!("{}\r\nContent-Range: bytes {place}\r\n\r\n", typed.collect::<String>());
                    range.end - range.start + (delimiter.len() + lines.len()) as u64
                });
                parts.sum::<u64>() - 2 + (delimiter.len() + 4) as u64
            }
            Answer::NotModified | Answer::Unsatisfiable { .. } => 0,
        };
        prop_assert!(sent <= complete);
    }
}
