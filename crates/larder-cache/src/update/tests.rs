//! What an update leaves of a stored response, and for whom the rest is.

use std::time::Duration;

use super::*;
use crate::example::{DATE, at_ms, fields, request, stored};
use crate::policy::Lifetimes;

const STORED: [(&str, &str); 7] = [
    ("cache-control", "max-age=2"),
    ("etag", "\"a\""),
    ("x-a", "1"),
    ("x-a", "2"),
    ("content-encoding", "gzip"),
    ("content-type", "text/plain"),
    ("date", DATE),
];

fn updated(asked: &[(&str, &str)], said: &[(&str, &str)]) -> Updated {
    let policy = CachePolicy::default();
    let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_500) };
    update(&stored(&[], &STORED, &policy), &request("GET", asked), &fields(said), times, &policy)
}

fn check(said: &[(&str, &str)], name: &str, expected: &[&str]) {
    match updated(&[], said) {
        Updated::Stored(head) => {
            let found: Vec<_> = head.fields.map.get_all(name).iter().collect();
            assert_eq!(found, expected, "{said:?}");
        }
        other => panic!("{other:?}: {said:?}"),
    }
}

#[test]
fn fields_of_the_304_replace_and_all_others_stay() {
    check(&[], "x-a", &["1", "2"]);
    check(&[("x-a", "3")], "x-a", &["3"]);
    check(&[("x-b", "3"), ("x-b", "4")], "x-b", &["3", "4"]);
    check(&[("content-foo", "3")], "content-foo", &["3"]);
    check(&[("content-digest", "sha-256=:AA==:")], "content-digest", &["sha-256=:AA==:"]);
    check(&[("content-type", "text/html")], "content-type", &["text/html"]);
    check(&[("cache-control", "max-age=9")], "cache-control", &["max-age=9"]);
}

#[test]
fn what_describes_the_stored_bytes_stays() {
    check(&[("content-encoding", "br")], "content-encoding", &["gzip"]);
    check(&[("content-length", "99")], "content-length", &[]);
    check(&[("content-range", "bytes 0-1/2")], "content-range", &[]);
}

#[test]
fn a_tag_keeps_the_strength_that_it_was_stored_with() {
    check(&[("etag", "W/\"a\"")], "etag", &["\"a\""]);
}

#[test]
fn fields_do_not_add_up_without_end() {
    let many: Vec<String> = (0..300).map(|n| format!("x-new-{n}")).collect();
    let said: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
    assert!(matches!(updated(&[], &said), Updated::TooLarge));
    let long = "v".repeat(BYTES_MAX);
    assert!(matches!(updated(&[], &[("x-long", &long)]), Updated::TooLarge));
}

#[test]
fn age_starts_anew() {
    for said in [&[("cache-control", "max-age=9")][..], &[("cache-control", "max-age=9"), ("age", "4")]] {
        let Updated::Stored(head) = updated(&[], said) else { panic!("not stored") };
        let from_304 = if said.len() > 1 { 4_500 } else { 500 };
        assert_eq!(head.freshness.initial_age.as_millis(), from_304);
        assert!(head.freshness.is_fresh(at_ms(11_000)));
        assert!(!head.freshness.is_fresh(at_ms(20_000)));
        assert!(!head.fields.map.contains_key(header::AGE));
    }
    check(&[], "date", &["Sun, 06 Nov 1994 08:49:47 GMT"]);
    check(&[("date", "Sun, 06 Nov 1994 08:49:46 GMT")], "date", &["Sun, 06 Nov 1994 08:49:46 GMT"]);
}

#[test]
fn private_control_fields_are_judged_again_and_never_seen() {
    let policy = CachePolicy::default();
    let was = stored(&[], &[("x-accel-expires", "30"), ("etag", "\"a\"")], &policy);
    let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_000) };
    let updated = |said| update(&was, &request("GET", &[]), &fields(said), times, &policy);
    let Updated::Stored(head) = updated(&[]) else { panic!("not stored") };
    assert!(head.freshness.is_fresh(at_ms(39_000)) && !head.freshness.is_fresh(at_ms(41_000)));
    assert!(!head.fields.map.contains_key("x-accel-expires"));
    assert_eq!(head.all_fields().get("x-accel-expires"), was.all_fields().get("x-accel-expires"));
    let Updated::Stored(head) = updated(&[("x-accel-expires", "5")]) else { panic!("not stored") };
    assert!(!head.freshness.is_fresh(at_ms(16_000)));
    let Updated::NoLongerStorable { fields, .. } = updated(&[("vary", "*")]) else { panic!("stored") };
    assert!(!fields.contains_key("x-accel-expires"));
}

#[test]
fn a_304_that_names_tags_replaces_all_that_are_stored() {
    let times = ExchangeTimes { request: at_ms(1_000), response: at_ms(1_000) };
    let said = [("cache-control", "max-age=60"), ("etag", "\"a\""), ("xkey", "a b"), ("cache-tag", "c")];
    for pass in [false, true] {
        let tags = crate::TagFields::new(crate::TagFields::default().names().to_vec(), pass);
        let controls = crate::Controls { tags, ..crate::Controls::default() };
        let policy = CachePolicy { controls, ..CachePolicy::default() };
        let was = stored(&[], &said, &policy);
        for (newer, expected) in [
            (&[][..], "a,b,c"),
            (&[("x-a", "1")], "a,b,c"),
            (&[("xkey", "d")], "d"),
            (&[("x-cache-tags", "e")], "e"),
            (&[("surrogate-key", "f"), ("cache-tag", "g")], "f,g"),
            (&[("cache-tag", "")], ""),
        ] {
            let asked = request("GET", &[]);
            let Updated::Stored(head) = update(&was, &asked, &fields(newer), times, &policy) else {
                panic!("not stored: {newer:?}")
            };
            let text = crate::purge::pattern::TagText::Joined(expected.as_bytes().into());
            assert_eq!(head.tag_text(), text, "{newer:?}");
            let described = [newer, &[("etag", "\"a\"")]].concat();
            let asked = request("HEAD", &[]);
            match update_by_head(&was, &asked, &fields(&described), times, &policy) {
                HeadUpdate::Updated(head) => assert_eq!(head.tag_text(), text, "{newer:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_part_stays_the_part_that_it_is() {
    let policy = CachePolicy::default();
    let asked = request("GET", &[("range", "bytes=0-4")]);
    let said =
        fields(&[("cache-control", "max-age=2"), ("etag", "\"a\""), ("content-range", "bytes 0-4/10")]);
    let times = ExchangeTimes { request: at_ms(0), response: at_ms(0) };
    let found = crate::storable(&asked, StatusCode::PARTIAL_CONTENT, &said, times, &policy);
    let Storability::Storable(freshness) = found else { panic!("{found:?}") };
    let head = StoredHead::new(&asked, StatusCode::PARTIAL_CONTENT, said, freshness, &policy);
    let not_modified = fields(&[("etag", "\"a\""), ("content-range", "bytes 5-9/10")]);
    match update(&head, &asked, &not_modified, times, &policy) {
        Updated::Stored(updated) => assert_eq!(updated.part, head.part),
        other => panic!("{other:?}"),
    }
    let by_head = update_by_head(&head, &request("HEAD", &[]), &fields(&[]), times, &policy);
    assert!(matches!(by_head, HeadUpdate::Unchanged));
}

/// What of a 304 with `said` is for its client alone.
fn withheld(was: &StoredHead, said: &[(&str, &str)], policy: &CachePolicy) -> HeaderMap {
    let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_000) };
    match update(was, &request("GET", &[]), &fields(said), times, policy) {
        Updated::Stored(renewed) => withheld_by_update(was, &renewed, &fields(said), policy),
        _ => withheld_by_update(was, was, &fields(said), policy),
    }
}

#[test]
fn a_304_or_head_brings_no_cookie_that_may_be_somebodys() {
    let ttl = || Lifetimes { any: Some(Duration::from_secs(9)), by_status: Vec::new() };
    let under_ttl = CachePolicy { ttl: ttl(), ..CachePolicy::default() };
    let (own, plain) = (("set-cookie", "sid=2"), ("set-cookie", "lang=de"));
    let check = |policy: &CachePolicy, cc: &str, said: &[(&str, &str)], expected: &[&str]| {
        let cookie = if cc == "public" { ("x-a", "1") } else { ("set-cookie", "a=b") };
        let was = stored(&[], &[("cache-control", cc), ("etag", "\"a\""), cookie], policy);
        let times = ExchangeTimes { request: at_ms(1_000), response: at_ms(1_000) };
        let Updated::Stored(renewed) = update(&was, &request("GET", &[]), &fields(said), times, policy)
        else {
            panic!("{said:?}");
        };
        let carried: Vec<_> = renewed.fields.map.get_all("set-cookie").iter().collect();
        assert_eq!(carried, expected, "{said:?}");
        match update_by_head(&was, &request("HEAD", &[]), &fields(said), times, policy) {
            HeadUpdate::Updated(renewed) => {
                let carried: Vec<_> = renewed.fields.map.get_all("set-cookie").iter().collect();
                assert_eq!(carried, expected, "HEAD {said:?}");
            }
            other => panic!("{other:?}: {said:?}"),
        }
    };
    let policy = CachePolicy::default();
    check(&policy, "max-age=60", &[], &["a=b"]);
    check(&policy, "max-age=60", &[own], &["a=b"]);
    check(&policy, "max-age=60", &[plain], &["lang=de"]);
    check(&policy, "max-age=60", &[own, plain], &["lang=de"]);
    // What the guard would not store with a cookie stays stored, without it.
    check(&under_ttl, "public", &[own], &[]);
    check(&under_ttl, "public", &[plain], &[]);
}

#[test]
fn what_was_stored_with_cookies_is_confirmed_without_them_under_the_guard() {
    let store = CachePolicy { set_cookie: crate::SetCookiePolicy::Store, ..CachePolicy::default() };
    let said =
        [("cache-control", "max-age=60"), ("etag", "\"a\""), ("set-cookie", "sid=1"), ("set-cookie", "a=b")];
    let was = stored(&[], &said, &store);
    assert!(was.caution.own_cookies);
    let times = ExchangeTimes { request: at_ms(1_000), response: at_ms(1_000) };
    let policy = CachePolicy::default();
    let asked = request("GET", &[]);
    assert_eq!(
        crate::reuse(&was, &asked, at_ms(1_000), &policy),
        crate::Reuse::Validate(crate::ValidateReason::OtherRules)
    );
    assert!(matches!(crate::reuse(&was, &asked, at_ms(1_000), &store), crate::Reuse::Fresh { .. }));
    let Updated::Stored(renewed) = update(&was, &asked, &fields(&[]), times, &policy) else {
        panic!("not stored")
    };
    assert_eq!(renewed.fields.map.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=b"]);
    assert_eq!(renewed.relieved.names().collect::<Vec<_>>(), ["sid"]);
    assert!(matches!(crate::reuse(&renewed, &asked, at_ms(1_000), &policy), crate::Reuse::Fresh { .. }));
    let forbidden = update(
        &was,
        &asked,
        &fields(&[("cache-control", "no-store"), ("set-cookie", "b=2")]),
        times,
        &policy,
    );
    let Updated::NoLongerStorable { fields, .. } = forbidden else { panic!("stored") };
    assert_eq!(fields.get_all("set-cookie").iter().collect::<Vec<_>>(), ["b=2"], "its client has no other's");
}

#[test]
fn lines_of_a_304_that_are_not_stored_are_for_its_client() {
    let policy = CachePolicy::default();
    let check = |was: &str, said: &[(&str, &str)], expected: &[(&str, &str)]| {
        let was = stored(&[], &[("cache-control", was), ("etag", "\"a\""), ("x-a", "0")], &policy);
        assert_eq!(withheld(&was, said, &policy), fields(expected), "{said:?}");
    };
    let (own, a) = (("set-cookie", "sid=2"), ("x-a", "1"));
    check("max-age=2", &[own, a], &[own]);
    check("max-age=2", &[("set-cookie", "lang=de"), a], &[]);
    check(
        "max-age=2",
        &[("set-cookie", "lang=de"), own, ("set-cookie", "x=1; HttpOnly")],
        &[own, ("set-cookie", "x=1; HttpOnly")],
    );
    check("max-age=2, no-cache=\"set-cookie\"", &[own, a], &[own]);
    check("max-age=2, no-cache=\"x-a\", private=\"set-cookie, x-a\"", &[own, a, own], &[a, own, own]);
    check("max-age=2, no-cache=\"x-a\"", &[own], &[own]);
    check("max-age=2, no-cache=\"x-a\"", &[a, ("cache-control", "max-age=9")], &[]);
    check("max-age=2", &[own, a, ("cache-control", "private=x-a")], &[a, own]);
    check("max-age=2, private=\"x-a\"", &[own, a, ("cdn-cache-control", "private=set-cookie")], &[own]);
    let targeted = [("cdn-cache-control", "max-age=2, private=x-a"), ("etag", "\"a\"")];
    let was = stored(&[], &targeted, &policy);
    let found = withheld(&was, &[own, a, ("cache-control", "private=\"set-cookie\"")], &policy);
    assert_eq!(found, fields(&[a, own]));
    let long = "v".repeat(BYTES_MAX);
    check("max-age=2, private=\"x-a\"", &[("x-a", &long)], &[]);
    let strip = CachePolicy { set_cookie: crate::SetCookiePolicy::Strip, ..policy };
    let was = stored(&[], &[("cache-control", "max-age=2, private=\"set-cookie\"")], &strip);
    assert!(withheld(&was, &[own], &strip).is_empty());
}

#[test]
fn all_rules_of_storing_are_asked_again() {
    let check =
        |asked: &[(&str, &str)], said: &[(&str, &str)], expected: NotStorable| match updated(asked, said) {
            Updated::NoLongerStorable { reason, fields } => {
                assert_eq!(reason, expected);
                assert_eq!(fields.get_all("x-a").iter().count(), 2);
            }
            other => panic!("{other:?}: {asked:?} {said:?}"),
        };
    check(&[], &[("cache-control", "no-store")], NotStorable::NoStore);
    check(&[], &[("cache-control", "private")], NotStorable::Private);
    check(&[], &[("vary", "*")], NotStorable::VaryAny);
    check(&[("authorization", "x")], &[], NotStorable::Authorization);
}

#[test]
fn a_head_updates_what_it_describes_and_ends_what_it_does_not() {
    const FOR_LONG: &[(&str, &str)] =
        &[("cache-control", "max-age=9"), ("x-a", "3"), ("content-encoding", "newer")];
    let tagged = [("cache-control", "max-age=2"), ("etag", "\"a\""), ("last-modified", DATE)];
    let plain = [("cache-control", "max-age=2"), ("content-encoding", "older"), ("x-b", "1")];
    let updated = |was: &[(&str, &str)], asked: &[(&str, &str)], said: &[(&str, &str)]| {
        let policy = CachePolicy::default();
        let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_500) };
        let (stored, request) = (stored(&[], was, &policy), request("HEAD", asked));
        update_by_head(&stored, &request, &fields(said), times, &policy)
    };
    let with = |more: &[(&'static str, &'static str)]| [FOR_LONG, more].concat();
    for (was, said) in [
        (&plain[..], with(&[])),
        (&tagged, with(&[])),
        (&tagged, with(&[("etag", "\"a\"")])),
        (&tagged, with(&[("etag", "W/\"a\""), ("last-modified", DATE)])),
        (&tagged, with(&[("last-modified", "Sunday, 06-Nov-94 08:49:37 GMT")])),
    ] {
        let HeadUpdate::Updated(head) = updated(was, &[], &said) else { panic!("{was:?} {said:?}") };
        assert!(head.freshness.is_fresh(at_ms(18_900)) && !head.freshness.is_fresh(at_ms(19_100)));
        let field = |name| head.fields.map.get(name);
        assert_eq!(field("x-a"), fields(&said).get("x-a"));
        for kept in ["x-b", "content-encoding", "etag"] {
            assert_eq!(field(kept), fields(was).get(kept), "{kept}");
        }
    }
    for (was, said) in [
        (&plain[..], with(&[("etag", "\"a\"")])),
        (&plain, with(&[("last-modified", DATE)])),
        (&tagged, with(&[("etag", "\"b\"")])),
        (&tagged, with(&[("etag", "\"a\""), ("last-modified", "Sun, 06 Nov 1994 08:49:36 GMT")])),
        (&tagged, vec![("cache-control", "no-store")]),
        (&tagged, vec![("cache-control", "private")]),
    ] {
        assert!(matches!(updated(was, &[], &said), HeadUpdate::Outdated), "{was:?} {said:?}");
    }
    let own = [("authorization", "x")];
    assert!(matches!(updated(&tagged, &own, FOR_LONG), HeadUpdate::Unchanged));
    let other_tag = [("etag", "\"b\"")];
    for own in [("authorization", "x"), ("cache-control", "no-store")] {
        let found = updated(&tagged, &[own], &other_tag);
        assert!(matches!(found, HeadUpdate::Unchanged), "nobody ends by it what others get: {own:?}");
    }
    let session = [("cookie", "sid=1")];
    assert!(matches!(updated(&tagged, &session, &other_tag), HeadUpdate::Outdated));
    let guessed = [("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("date", DATE)];
    assert!(matches!(updated(&guessed, &session, &other_tag), HeadUpdate::Unchanged));
    assert!(matches!(updated(&guessed, &[], &other_tag), HeadUpdate::Outdated));
    let coded = [tagged.as_slice(), &[("content-encoding", "x-gzip")]].concat();
    for (was, coding) in [(&tagged[..], "br"), (&coded, "br"), (&coded, "gzip, br"), (&coded, "identity")] {
        let found = updated(was, &[], &[("etag", "\"b\""), ("content-encoding", coding)]);
        assert!(matches!(found, HeadUpdate::Unchanged), "it is about another form: {coding}");
    }
    let found = updated(&coded, &[], &[("etag", "\"b\""), ("content-encoding", "gzip")]);
    assert!(matches!(found, HeadUpdate::Outdated));
    let long = "v".repeat(BYTES_MAX);
    assert!(matches!(updated(&tagged, &[], &[("x-long", &long)]), HeadUpdate::Unchanged));
}

#[test]
fn a_head_ends_what_was_stored_with_another_status() {
    let policy = CachePolicy::default();
    let mut gone = stored(&[], &STORED, &policy);
    gone.status = StatusCode::GONE;
    let times = ExchangeTimes { request: at_ms(0), response: at_ms(0) };
    let found = update_by_head(&gone, &request("HEAD", &[]), &fields(&STORED), times, &policy);
    assert!(matches!(found, HeadUpdate::Outdated));
}

#[test]
fn a_304_and_a_head_keep_the_language_whatever_they_say() {
    use crate::policy::{Assemble, TemplatePolicy};
    use larder_http::template::Language::{self, Esi, Ssi};
    let under = |assemble| {
        let templates = TemplatePolicy { assemble, ..TemplatePolicy::default() };
        CachePolicy { templates, ..CachePolicy::default() }
    };
    let tag = ("etag", "\"a\"");
    let says = |content| [("cache-control", "max-age=2"), tag, ("surrogate-control", content)];
    let (esi, ssi) = (says("content=\"ESI/1.0\""), says("content=\"SSI/1.0\""));
    let plain = [("cache-control", "max-age=2"), tag, ("content-type", "text/html")];
    let times = ExchangeTimes { request: at_ms(10_000), response: at_ms(10_500) };
    type Lines<'a> = &'a [(&'a str, &'a str)];
    let rows: [(Lines<'_>, Lines<'_>, Assemble, Option<Language>); 6] = [
        (&esi, &[], Assemble::Auto, Some(Esi)),
        (&esi, &[], Assemble::Off, Some(Esi)),
        (&esi, &ssi[2..], Assemble::Auto, Some(Esi)),
        (&esi, &[], Assemble::Language(Ssi), Some(Esi)),
        (&plain, &ssi[2..], Assemble::Auto, None),
        (&plain, &[], Assemble::Language(Ssi), None),
    ];
    for (was, said, assemble, expected) in rows {
        let (before, policy) = (stored(&[], was, &CachePolicy::default()), under(assemble));
        let said = fields(said);
        let found = match update(&before, &request("GET", &[]), &said, times, &policy) {
            Updated::Stored(head) => head.language(),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{was:?} {said:?} {assemble:?}");
        let found = match update_by_head(&before, &request("HEAD", &[]), &said, times, &policy) {
            HeadUpdate::Updated(head) => head.language(),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{was:?} {said:?} {assemble:?}");
    }
}
