//! Each line of the table that decides what a page says, and its bounds.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use std::time::Duration;

use larder_http::fields::cache_control::ResponseDirectives;
use larder_http::fields::vary::NAMES_MAX;

use super::said::{signed, whole_seconds};
use super::*;
use crate::example::{DATE, at_ms, fields};

type Lines<'a> = &'a [(&'a str, &'a str)];

/// A part with these fields, of this age, which larder has for so long still.
#[derive(Clone, Copy)]
struct Part<'a> {
    said: Lines<'a>,
    age: Option<u64>,
    ttl: Option<i64>,
    has_private_key: bool,
}

/// A part that came a moment ago.
const fn part(said: Lines<'_>) -> Part<'_> {
    Part { said, age: None, ttl: Some(1000), has_private_key: false }
}

const fn aged(said: Lines<'_>, age: u64, ttl: i64) -> Part<'_> {
    Part { said, age: Some(age), ttl: Some(ttl), has_private_key: false }
}

fn said(part: &Part<'_>) -> PartSaid {
    PartSaid::of(&fields(part.said), part.age, part.ttl, part.has_private_key, at_ms(0).wall)
}

/// What a page of these parts says, if all of them were there and nothing of the request was read.
fn whole(parts: &[Part<'_>]) -> PageControl {
    control(parts, |page| page)
}

fn control(parts: &[Part<'_>], change: impl for<'a> FnOnce(PageSaid<'a>) -> PageSaid<'a>) -> PageControl {
    let all: Vec<PartSaid> = parts.iter().map(said).collect();
    let page =
        PageSaid { parts: &all, is_open: false, has_failed: false, used_fields: &[], used_client: false };
    page_control(&change(page), &fields(parts[0].said))
}

fn cache_control(page: &PageControl) -> Option<&str> {
    page.fields.get(header::CACHE_CONTROL).map(|value| value.to_str().unwrap())
}

#[track_caller]
fn check(parts: &[Part<'_>], expected: Option<&str>) {
    assert_eq!(cache_control(&whole(parts)), expected);
}

const MINUTE: Part<'static> = part(&[("cache-control", "max-age=60")]);
const SILENT: Part<'static> = part(&[]);

#[test]
fn a_part_that_no_cache_may_store_makes_a_page_that_none_may_store() {
    const NEVER: Part<'static> = part(&[("cache-control", "no-store")]);
    const OWN: Part<'static> = part(&[("cache-control", "private")]);
    check(&[NEVER], Some("no-store"));
    check(&[MINUTE, NEVER], Some("no-store"));
    check(&[SILENT, OWN, NEVER], Some("no-store"));
    let open = control(&[MINUTE, NEVER], |page| PageSaid { is_open: true, has_failed: true, ..page });
    assert_eq!(cache_control(&open), Some("no-store"));
}

#[test]
fn a_page_for_one_visitor_says_so() {
    const OWN: Option<&str> = Some("private, no-cache");
    for fragment in [
        part(&[("cache-control", "private")]),
        part(&[("cache-control", "max-age=60; private")]),
        part(&[("vary", "Cookie")]),
        part(&[("vary", "X-A, authorization")]),
        part(&[("vary", "*")]),
        Part { has_private_key: true, ..MINUTE },
    ] {
        check(&[MINUTE, fragment], OWN);
        check(&[SILENT, fragment], OWN);
        check(&[fragment, MINUTE], OWN);
        check(&[MINUTE, part(&[("cache-control", "no-cache")]), fragment], OWN);
    }
    check(&[MINUTE, part(&[("cache-control", "private=\"x-a\", max-age=9")])], Some("max-age=9"));
    let two = [SILENT, MINUTE];
    let said = |page: PageControl| cache_control(&page).map(str::to_owned);
    assert_eq!(said(control(&two, |page| PageSaid { is_open: true, ..page })).as_deref(), OWN);
    assert_eq!(said(control(&two, |page| PageSaid { used_client: true, ..page })).as_deref(), OWN);
    for name in [header::COOKIE, header::AUTHORIZATION] {
        let used = [name];
        let all: Vec<PartSaid> = two.iter().map(self::said).collect();
        let page = PageSaid {
            parts: &all,
            is_open: false,
            has_failed: false,
            used_fields: &used,
            used_client: false,
        };
        let control = page_control(&page, &fields(two[0].said));
        assert!(control.vary.is_empty());
        assert_eq!(said(control).as_deref(), OWN);
    }
}

#[test]
fn what_has_to_be_validated_or_stands_in_for_a_failure_is_not_used_unasked() {
    const NO_CACHE: Part<'static> = part(&[("cache-control", "no-cache, max-age=60")]);
    check(&[NO_CACHE], Some("no-cache"));
    check(&[MINUTE, NO_CACHE], Some("no-cache"));
    check(&[SILENT, NO_CACHE], Some("no-cache"));
    check(&[MINUTE, part(&[("cache-control", "no-cache=\"x-a\", max-age=90")])], Some("max-age=60"));
    let failed = control(&[MINUTE, SILENT], |page| PageSaid { has_failed: true, ..page });
    assert_eq!(cache_control(&failed), Some("no-cache"));
}

#[test]
fn a_template_that_says_nothing_makes_a_page_that_says_nothing() {
    check(&[SILENT], None);
    check(&[SILENT, MINUTE], None);
    check(&[part(&[("cache-control", " , ")]), MINUTE], None);
    check(&[part(&[("cdn-cache-control", "max-age=60")]), MINUTE], None);
    check(&[part(&[("expires", "0")]), MINUTE], Some("max-age=0"));
}

#[test]
fn a_page_lives_as_long_as_the_part_that_ends_first() {
    let lines = |line| [("cache-control", line)];
    for (template, fragments, expected) in [
        ("max-age=60", &[][..], "max-age=60"),
        ("max-age=60", &["max-age=9"], "max-age=9"),
        ("max-age=60", &["max-age=90", "max-age=9", "max-age=30"], "max-age=9"),
        ("max-age=60, s-maxage=600", &[], "max-age=60, s-maxage=600"),
        ("max-age=60, s-maxage=600", &["max-age=30"], "max-age=30"),
        // The part that ends first in browsers is not the one that ends first elsewhere.
        ("max-age=60, s-maxage=600", &["max-age=300"], "max-age=60, s-maxage=300"),
        ("max-age=60", &["max-age=0, s-maxage=600"], "max-age=0, s-maxage=60"),
        ("max-age=60", &["s-maxage=9"], "max-age=9, s-maxage=9"),
        ("max-age=60", &["s-maxage=600"], "max-age=60"),
        // To browsers the template says nothing.
        ("s-maxage=600", &[], "s-maxage=600"),
        ("s-maxage=600", &["max-age=60"], "s-maxage=60"),
        ("s-maxage=600", &["max-age=0, s-maxage=700"], "s-maxage=600"),
        ("public", &["max-age=60"], "public, max-age=60"),
        // Of a lifetime in words that are none, nothing is left.
        ("max-age=x", &["max-age=60"], "max-age=0"),
    ] {
        let template = lines(template);
        let fragments: Vec<_> = fragments.iter().map(|line| lines(line)).collect();
        let mut parts = vec![part(&template)];
        parts.extend(fragments.iter().map(|lines| part(lines)));
        check(&parts, Some(expected));
    }
}

#[test]
fn directives_of_the_template_stay_but_for_its_lifetimes() {
    for (said, expected) in [
        ("public, max-age=60", "public, max-age=9"),
        ("Max-Age=60, immutable, Public", "Public, max-age=9"),
        (
            "max-age=60, must-revalidate, stale-while-revalidate=30",
            "must-revalidate, stale-while-revalidate=30, max-age=9",
        ),
        ("max-age=60, no-transform, x=\"a, b\", y=c", "no-transform, x=\"a, b\", y=c, max-age=9"),
        ("max-age=60, private=\"x-a\", ;odd, z=\"", "private=\"x-a\", max-age=9"),
    ] {
        let said = [("cache-control", said)];
        check(&[part(&said), part(&[("cache-control", "max-age=9, must-revalidate")])], Some(expected));
    }
    let lines = [("cache-control", "public"), ("cache-control", "max-age=60")];
    check(&[part(&lines)], Some("public, max-age=60"));
}

#[test]
fn expires_counts_as_a_lifetime_from_date() {
    let late = "Sun, 06 Nov 1994 08:50:07 GMT";
    let expires = [("expires", late), ("date", DATE)];
    check(&[part(&expires)], Some("max-age=30"));
    check(&[MINUTE, part(&expires)], Some("max-age=30"));
    check(&[part(&[("expires", late), ("date", DATE), ("cache-control", "max-age=5")])], Some("max-age=5"));
    check(
        &[part(&[("expires", late), ("date", DATE), ("cache-control", "s-maxage=5")])],
        Some("max-age=30, s-maxage=5"),
    );
    // Where Date is missing, it was made as long ago as it is old.
    check(&[aged(&[("expires", late)], 10, 9)], Some("max-age=40"));
}

#[test]
fn where_a_part_gives_no_lifetime_larders_own_counts() {
    check(&[MINUTE, Part { ttl: Some(7), ..SILENT }], Some("max-age=7"));
    check(&[MINUTE, aged(&[], 20, 7)], Some("max-age=27"));
    check(&[MINUTE, aged(&[("cache-control", "must-revalidate")], 20, 7)], Some("max-age=27"));
    check(&[MINUTE, Part { ttl: None, ..SILENT }], Some("max-age=0"));
    // It is used although it is stale.
    check(&[MINUTE, aged(&[], 20, -5)], Some("max-age=15"));
    check(&[MINUTE, aged(&[("cache-control", "max-age=15")], 20, -5)], Some("max-age=15"));
}

#[test]
fn age_and_date_are_of_the_part_that_ends_first() {
    let then = "Sun, 06 Nov 1994 08:49:07 GMT";
    let template = [("cache-control", "max-age=600"), ("date", then)];
    let fragment = [("cache-control", "max-age=60"), ("date", DATE)];
    let date =
        |page: &PageControl| page.fields.get(header::DATE).map(|date| date.to_str().unwrap().to_owned());

    let page = whole(&[aged(&template, 30, 570), aged(&fragment, 5, 55)]);
    assert_eq!((page.age_seconds, date(&page).as_deref()), (Some(5), Some(DATE)));
    assert_eq!((cache_control(&page), page.ttl_seconds), (Some("max-age=60"), Some(55)));

    // 590 s of the one and 595 s of the other are left.
    let page =
        whole(&[aged(&template, 10, 590), aged(&[fragment[1], ("cache-control", "max-age=600")], 5, 595)]);
    assert_eq!((page.age_seconds, date(&page)), (Some(10), None));
    assert_eq!((cache_control(&page), page.ttl_seconds), (Some("max-age=600"), Some(590)));

    // The other lifetime is counted from the same age.
    let both = [("cache-control", "max-age=100, s-maxage=1000"), ("date", then)];
    let page = whole(&[aged(&both, 30, 970), aged(&[fragment[1], ("cache-control", "max-age=500")], 5, 495)]);
    assert_eq!((page.age_seconds, cache_control(&page)), (Some(30), Some("max-age=100, s-maxage=525")));

    // Without a Date of its own it was made that long ago; and the same Date need not be said.
    let page = whole(&[aged(&template, 30, 570), aged(&fragment[..1], 30, 30)]);
    assert_eq!((page.age_seconds, date(&page)), (Some(30), None));
    let page = whole(&[aged(&template, 30, 570), part(&fragment[..1])]);
    assert_eq!((page.age_seconds, date(&page).as_deref()), (None, Some(DATE)));

    // In all other lines they are the template's.
    let own = [("cache-control", "private"), ("date", DATE)];
    let page = whole(&[aged(&template, 30, 570), aged(&own, 5, -2)]);
    assert_eq!((page.age_seconds, date(&page), page.ttl_seconds), (Some(30), None, Some(-2)));
    let page = whole(&[aged(&[template[1]], 30, 570), aged(&fragment, 5, 55)]);
    assert_eq!((page.age_seconds, page.fields.len()), (Some(30), 0));
}

#[test]
fn a_part_says_the_same_at_another_age() {
    for lines in [&[("cache-control", "max-age=60"), ("date", DATE)][..], &[("date", DATE)]] {
        let (then, now) = (said(&aged(lines, 5, 55)), said(&aged(lines, 25, 35)));
        assert_eq!(format!("{:?}", then.at(25, 35)), format!("{now:?}"));
        assert_ne!(format!("{then:?}"), format!("{now:?}"));
    }
}

#[test]
fn what_a_page_varies_by_is_said_but_for_what_makes_it_private() {
    let all: Vec<PartSaid> = [
        part(&[("vary", "x-a, accept-encoding"), ("cache-control", "max-age=9")]),
        part(&[("vary", "X-B, x-a, Surrogate-Capability")]),
        part(&[("vary", "x-b, cookie")]),
    ]
    .iter()
    .map(said)
    .collect();
    let used = [header::REFERER, header::COOKIE, HeaderName::from_static("x-a")];
    let page =
        PageSaid { parts: &all, is_open: false, has_failed: false, used_fields: &used, used_client: false };
    let control = page_control(&page, &fields(&[("vary", "x-a, accept-encoding")]));
    assert_eq!(control.vary, [HeaderName::from_static("x-b"), header::REFERER]);
}

#[test]
fn a_page_that_varies_by_more_than_a_vary_says_is_private() {
    let names = |count: usize| (0..count).map(|at| format!("x-{at}")).collect::<Vec<_>>().join(", ");
    let (all, one) = (names(NAMES_MAX), names(1));
    let public = ("cache-control", "max-age=60");
    let full = [public, ("vary", all.as_str())];
    let page = whole(&[part(&full), part(&[("vary", one.as_str())])]);
    assert_eq!((cache_control(&page), page.vary.len()), (Some("max-age=60"), 0));
    let page = whole(&[part(&full), part(&[("vary", "y")])]);
    assert_eq!((cache_control(&page), page.vary.len()), (Some("private, no-cache"), 0));
    assert_eq!(whole(&[part(&[public]), part(&full[1..])]).vary.len(), NAMES_MAX);
}

#[test]
fn a_page_of_nothing_says_nothing() {
    let page = PageSaid { parts: &[], is_open: true, has_failed: true, used_fields: &[], used_client: true };
    assert_eq!(page_control(&page, &HeaderMap::new()), PageControl::default());
}

/// Lifetimes in seconds as a part may give them, its age, and what larder adds.
fn any_part() -> impl Strategy<Value = (Option<u32>, Option<u32>, u32, i32)> {
    (proptest::option::of(0..500_u32), proptest::option::of(0..500_u32), 0..500_u32, -100..500_i32)
}

proptest! {
    #[test]
    fn no_part_outlives_its_own_lifetime_in_a_page(parts in proptest::collection::vec(any_part(), 1..6)) {
        let lines: Vec<String> = parts
            .iter()
            .map(|(all, shared, ..)| {
                let all = all.map(|seconds| format!("max-age={seconds}"));
                let shared = shared.map(|seconds| format!("s-maxage={seconds}"));
                [Some("public".to_owned()), all, shared].into_iter().flatten().collect::<Vec<_>>().join(", ")
            })
            .collect();
        let lines: Vec<_> = lines.iter().map(|line| [("cache-control", line.as_str())]).collect();
        let of = lines.iter().zip(&parts);
        let all: Vec<Part<'_>> =
            of.map(|(line, (.., age, ttl))| aged(line, u64::from(*age), i64::from(*ttl))).collect();
        let page = whole(&all);
        let directives = ResponseDirectives::read(&page.fields);
        let left = |lifetime: Duration| whole_seconds(lifetime) - page.age_seconds.map_or(0, signed);
        for (max_age, shared, own_age, ttl) in &parts {
            let own = i64::from(*own_age) + i64::from(*ttl);
            let left_of = |lifetime: Option<u32>| lifetime.map(i64::from).unwrap_or(own).max(0) - i64::from(*own_age);
            if let Some(said) = directives.max_age {
                prop_assert!(left(said) <= left_of(max_age.or(*shared)), "{directives:?} {parts:?}");
            }
            let said = directives.s_maxage.or(directives.max_age);
            prop_assert!(said.is_some_and(|said| left(said) <= left_of(shared.or(*max_age))), "{directives:?} {parts:?}");
        }
    }
}

#[test]
fn the_part_that_decides_is_named() {
    use PageGround::{EndsFirst, Failed, ManyNames, NoCache, NoStore, Open, Personal, Private, Silent};
    const NO_STORE: Part<'static> = part(&[("cache-control", "no-store")]);
    const OWN: Part<'static> = part(&[("cache-control", "private")]);
    const NO_CACHE: Part<'static> = part(&[("cache-control", "no-cache")]);
    const SHORT: Part<'static> = part(&[("cache-control", "max-age=30")]);
    const OLD: Part<'static> = aged(&[("cache-control", "max-age=60")], 50, 10);
    type Change = for<'a> fn(PageSaid<'a>) -> PageSaid<'a>;
    let same: Change = |page| page;
    let cases: [(&[Part<'_>], Change, PageGround); 10] = [
        (&[MINUTE, OWN, NO_STORE], |page| PageSaid { is_open: true, ..page }, NoStore(2)),
        (&[MINUTE, OWN], |page| PageSaid { is_open: true, ..page }, Open),
        (&[MINUTE, NO_CACHE, OWN], same, Private(2)),
        (&[MINUTE, NO_CACHE], |page| PageSaid { used_client: true, ..page }, Personal),
        (&[NO_CACHE, MINUTE], |page| PageSaid { has_failed: true, ..page }, NoCache(0)),
        (&[MINUTE, SILENT], |page| PageSaid { has_failed: true, ..page }, Failed),
        (&[SILENT, MINUTE], same, Silent),
        (&[MINUTE, SHORT], same, EndsFirst(1)),
        (&[MINUTE, SHORT, OLD], same, EndsFirst(2)),
        (&[MINUTE], same, EndsFirst(0)),
    ];
    for (parts, change, expected) in cases {
        let all: Vec<PartSaid> = parts.iter().map(said).collect();
        let page =
            PageSaid { parts: &all, is_open: false, has_failed: false, used_fields: &[], used_client: false };
        let ground = page_ground(&change(page), &fields(parts[0].said));
        assert_eq!(ground, Some(expected));
        assert!(expected.sentence().ends_with('.') && !expected.section().is_empty());
    }
    let names =
        |from: usize| (from..from + NAMES_MAX).map(|n| format!("x-{n}")).collect::<Vec<_>>().join(", ");
    let all = [names(0), names(NAMES_MAX)]
        .map(|vary| said(&part(&[("vary", &vary), ("cache-control", "max-age=9")])));
    let page =
        PageSaid { parts: &all, is_open: false, has_failed: false, used_fields: &[], used_client: false };
    assert_eq!(page_ground(&page, &fields(&[("cache-control", "max-age=9")])), Some(ManyNames));
}
