//! What is kept of a response, and what is not.

use proptest::prelude::*;

use super::*;
use crate::example::{DATE, at_ms, fields, request, stored};
use crate::policy::{Controls, Ignored};
use crate::purge::tags::TagFields;

fn withheld(fields: &HeaderMap, policy: &CachePolicy) -> HeaderMap {
    Said::of(fields, policy).kept_back(fields, policy)
}

fn lines(said: &[(&str, &str)]) -> String {
    lines_under(&CachePolicy::default(), said)
}

fn lines_under(policy: &CachePolicy, said: &[(&str, &str)]) -> String {
    let head = stored(&[], said, policy);
    let mut again = Vec::new();
    larder_http::message::write_http1_fields(&head.fields.map, &mut again);
    assert_eq!(head.fields.http1, again, "the map and the lines say the same");
    String::from_utf8_lossy(&again).into_owned()
}

#[test]
fn fields_are_kept_as_they_came_less_what_is_made_anew() {
    let said = [
        ("cache-control", "max-age=60"),
        ("date", DATE),
        ("x-a", "1"),
        ("age", "3"),
        ("content-length", "9"),
        ("cache-status", "other; hit"),
        ("x-a", "2"),
        ("content-range", "odd"),
    ];
    let kept = format!(
        "cache-control: max-age=60\r\ndate: {DATE}\r\nx-a: 1\r\nx-a: 2\r\ncache-status: other; hit\r\n\
         content-range: odd\r\n"
    );
    assert_eq!(lines(&said), kept);
}

#[test]
fn a_missing_date_is_added() {
    let said = [("cache-control", "max-age=60")];
    assert_eq!(lines(&said), format!("cache-control: max-age=60\r\ndate: {DATE}\r\n"));
}

#[test]
fn fields_named_by_a_qualified_directive_are_not_kept() {
    let cc = "max-age=60, private=\"x-p\", no-cache=\"set-cookie\"";
    let said = [("cache-control", cc), ("date", DATE), ("x-p", "1"), ("set-cookie", "sid=1")];
    assert_eq!(lines(&said), format!("cache-control: {cc}\r\ndate: {DATE}\r\n"));
}

#[test]
fn cookies_are_stripped_where_the_rule_says_so() {
    let said = [("cache-control", "max-age=60"), ("date", DATE), ("set-cookie", "sid=1")];
    let strip = CachePolicy { set_cookie: SetCookiePolicy::Strip, ..CachePolicy::default() };
    assert_eq!(lines_under(&strip, &said), format!("cache-control: max-age=60\r\ndate: {DATE}\r\n"));
    let keep = CachePolicy { set_cookie: SetCookiePolicy::Store, ..CachePolicy::default() };
    assert!(lines_under(&keep, &said).contains("set-cookie: sid=1\r\n"));
}

#[test]
fn cookies_that_may_be_somebodys_are_not_kept_and_are_for_the_client_that_caused_it() {
    let cc = "public, max-age=60";
    let said = [
        ("cache-control", cc),
        ("date", DATE),
        ("set-cookie", "sid=1; HttpOnly"),
        ("set-cookie", "lang=de"),
        ("set-cookie", "seen=a1"),
    ];
    let policy = CachePolicy::default();
    assert_eq!(lines(&said), format!("cache-control: {cc}\r\ndate: {DATE}\r\nset-cookie: lang=de\r\n"));
    assert_eq!(stored(&[], &said, &policy).relieved.names().collect::<Vec<_>>(), ["sid", "seen"]);
    let own = fields(&[("set-cookie", "sid=1; HttpOnly"), ("set-cookie", "seen=a1")]);
    assert_eq!(withheld(&fields(&said), &policy), own);
    let keep = CachePolicy { set_cookie: SetCookiePolicy::Store, ..CachePolicy::default() };
    let kept = stored(&[], &said, &keep);
    assert!(kept.caution.own_cookies && kept.relieved.is_empty());
    assert!(withheld(&fields(&said), &keep).is_empty());
    assert!(!stored(&[], &said[..2], &keep).caution.own_cookies);
}

#[test]
fn private_fields_lie_apart_and_targeted_ones_do_not() {
    let said = [
        ("cdn-cache-control", "max-age=60"),
        ("surrogate-control", "max-age=9"),
        ("x-accel-expires", "9"),
        ("date", DATE),
    ];
    assert_eq!(lines(&said), format!("cdn-cache-control: max-age=60\r\ndate: {DATE}\r\n"));
    let head = stored(&[], &said, &CachePolicy::default());
    let all = head.all_fields();
    for (name, value) in said {
        assert_eq!(all.get(name).map(HeaderValue::as_bytes), Some(value.as_bytes()), "{name}");
    }
    assert_eq!(all.len(), said.len());
    let controls = Controls { surrogate_control: false, ..Controls::default() };
    let deaf = CachePolicy { controls, ..CachePolicy::default() };
    assert!(lines_under(&deaf, &said).contains("surrogate-control: max-age=9\r\n"));
    assert!(stored(&[], &said[..1], &deaf).controls.is_none());
}

#[test]
fn tags_lie_apart_unless_they_are_passed_on() {
    let said = [("cache-control", "max-age=60"), ("date", DATE), ("xkey", "a b"), ("x-tags", "c")];
    let head = stored(&[], &said, &CachePolicy::default());
    let hashes = |head: &StoredHead| head.tags.as_ref().map(|tags| tags.hashes().len());
    assert_eq!(hashes(&head), Some(2));
    assert!(!head.fields.map.contains_key("xkey") && head.fields.map.contains_key("x-tags"));
    assert_eq!(head.all_fields(), fields(&said));
    assert_eq!(head.tag_text(), TagText::Joined(b"a,b".to_vec().into()));

    let under = |tags| {
        let controls = Controls { tags, ..Controls::default() };
        CachePolicy { controls, ..CachePolicy::default() }
    };
    let pass = under(TagFields::new(TagFields::default().names().to_vec(), true));
    let head = stored(&[], &said, &pass);
    assert_eq!((hashes(&head), head.controls.is_none()), (Some(2), true));
    assert!(head.fields.map.contains_key("xkey"));
    let left_out = stored(&[], &[said[2], ("cache-control", "max-age=60, private=\"xkey\"")], &pass);
    assert_eq!(hashes(&left_out), Some(2));
    assert!(!left_out.fields.map.contains_key("xkey"));
    assert_eq!(left_out.tag_text(), TagText::Joined(b"a,b".to_vec().into()));

    let others = under(TagFields::new(vec![HeaderName::from_static("x-tags")], false));
    let head = stored(&[], &said, &others);
    assert_eq!(head.tag_text(), TagText::Joined(b"c".to_vec().into()));
    assert!(head.fields.map.contains_key("xkey"));
}

#[test]
fn a_response_without_tags_has_an_empty_text_and_one_with_too_many_has_every() {
    let cc = ("cache-control", "max-age=60");
    let bare = stored(&[], &[cc], &CachePolicy::default());
    assert!(bare.tags.is_none() && bare.controls.is_none());
    assert_eq!(bare.tag_text(), TagText::Joined(Cow::Borrowed(b"")));
    let many = "a ".repeat(crate::purge::tags::TAGS_MAX + 1);
    let head = stored(&[], &[cc, ("xkey", &many)], &CachePolicy::default());
    assert_eq!(head.tag_text(), TagText::Every);
    let few = stored(&[], &[cc, ("xkey", "a")], &CachePolicy::default());
    let tags = few.tags.as_ref().map_or(0, |tags| tags.memory_bytes());
    let without = StoredHead { tags: None, ..few.clone() };
    assert_eq!(few.memory_bytes(), without.memory_bytes() + tags);
    assert!(tags > 0);
}

#[test]
fn parts_and_groups_are_read_once() {
    let cc = ("cache-control", "max-age=60");
    let range = ("content-range", "bytes 4-9/10");
    assert_eq!(stored(&[], &[cc, range], &CachePolicy::default()).part, None, "a 200 is whole");
    let said = fields(&[cc, range, ("cache-groups", "\"a\", \"b\"")]);
    let freshness = stored(&[], &[cc], &CachePolicy::default()).freshness;
    let request = request("GET", &[("range", "bytes=4-")]);
    let status = StatusCode::PARTIAL_CONTENT;
    let head = StoredHead::new(&request, status, said, freshness, &CachePolicy::default());
    assert_eq!(head.part, Some(Part { range: 4..10, complete: Some(10), holes: Vec::new() }));
    assert_eq!(head.groups.iter().count(), 2);
    assert!(head.fields.map.contains_key(header::CONTENT_RANGE));
}

#[test]
fn a_language_selects_only_where_the_rule_says_so() {
    let said = [("cache-control", "max-age=60"), ("vary", "accept-language"), ("content-language", "de")];
    let selects = |language_selection| {
        let policy = CachePolicy { language_selection, ..CachePolicy::default() };
        stored(&[("accept-language", "en, de")], &said, &policy)
            .vary
            .selects(&fields(&[("accept-language", "fr;q=0.5, de;q=1.0")]))
    };
    assert_eq!((selects(false), selects(true)), (false, true));
}

#[test]
fn a_text_in_two_languages_is_selected_by_none() {
    let policy = CachePolicy { language_selection: true, ..CachePolicy::default() };
    let selects = |languages: &[&str]| {
        let mut said = vec![("cache-control", "max-age=60"), ("vary", "accept-language")];
        said.extend(languages.iter().map(|language| ("content-language", *language)));
        let likes_german = fields(&[("accept-language", "fr;q=0.5, de;q=1.0")]);
        stored(&[("accept-language", "en, de")], &said, &policy).vary.selects(&likes_german)
    };
    assert!(selects(&["de"]));
    assert!(!selects(&[]) && !selects(&["de", "en"]) && !selects(&["de, en"]));
}

#[test]
fn names_beside_an_ignored_star_still_select() {
    let ignore = Ignored { vary: true, ..Ignored::default() };
    let policy = CachePolicy { ignore, ..CachePolicy::default() };
    let said = [("cache-control", "max-age=60"), ("vary", "foo, *")];
    let head = stored(&[("foo", "1")], &said, &policy);
    assert!(head.vary.selects(&fields(&[("foo", "1"), ("bar", "2")])));
    assert!(!head.vary.selects(&fields(&[("foo", "2")])));
    assert!(head.freshness.is_fresh(at_ms(0)));
}

#[test]
fn what_is_not_stored_is_for_the_client_that_caused_it() {
    let cc = "max-age=60, private=\"x-p\", no-cache=\"set-cookie, x-p\"";
    let said = [("cache-control", cc), ("x-p", "1"), ("x-p", "2"), ("set-cookie", "a=1"), ("x-q", "3")];
    let kept_back = |policy: &CachePolicy| withheld(&fields(&said), policy);
    let both = fields(&[("x-p", "1"), ("x-p", "2"), ("set-cookie", "a=1")]);
    assert_eq!(kept_back(&CachePolicy::default()), both);
    let strip = CachePolicy { set_cookie: SetCookiePolicy::Strip, ..CachePolicy::default() };
    assert_eq!(kept_back(&strip), fields(&[("x-p", "1"), ("x-p", "2")]));
    assert!(withheld(&fields(&[("cache-control", "max-age=60")]), &CachePolicy::default()).is_empty());
    let told = [("cache-control", "no-cache=\"x-accel-expires\""), ("x-accel-expires", "9")];
    assert!(withheld(&fields(&told), &CachePolicy::default()).is_empty(), "this cache alone is told");
}

proptest! {
    #[test]
    fn nothing_keeps_a_read_buffer_alive(values in proptest::collection::vec("[!-~]{1,30}", 1..20)) {
        let buffer = Bytes::from(values.concat());
        let mut said = fields(&[("cache-control", "max-age=60")]);
        let mut at = 0;
        for value in &values {
            let slice = buffer.slice(at..at + value.len());
            at += value.len();
            if let Ok(value) = HeaderValue::from_maybe_shared(slice) {
                said.append("x-a", value.clone());
                said.append("x-accel-expires", value);
            }
        }
        let request = crate::example::request("GET", &[]);
        let freshness = stored(&[], &[("cache-control", "max-age=60")], &CachePolicy::default()).freshness;
        let policy = CachePolicy::default();
        let head = StoredHead::new(&request, StatusCode::OK, said, freshness, &policy);
        prop_assert!(buffer.is_unique());
        prop_assert!(head.memory_bytes() >= head.fields.http1.len() + size_of::<StoredHead>());
    }
}
