//! No tag that was named is missed, and none is found that was not named.

use http::HeaderValue;
use proptest::prelude::*;

use super::*;
use crate::example::fields;

fn of(said: &[(&str, &str)], names: &[&'static str]) -> Option<Box<Tags>> {
    let names: Vec<_> = names.iter().map(|name| HeaderName::from_static(name)).collect();
    Tags::of(&fields(said), &TagFields::new(names, false))
}

/// A response with these fields has exactly these tags, under these names.
fn check(said: &[(&str, &str)], names: &[&'static str], expected: &[&str]) {
    let found = of(said, names);
    let mut hashes: Vec<u64> = expected.iter().map(|tag| Tags::hash_of(tag.as_bytes())).collect();
    hashes.sort_unstable();
    assert_eq!(found.as_ref().map_or(&[][..], |tags| tags.hashes()), hashes, "{said:?}");
    let text = found.map(|tags| tags.text(&fields(said))).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&text), expected.join(","), "{said:?}");
}

#[test]
fn tags_stand_between_blanks_and_commas_and_are_kept_byte_for_byte() {
    check(&[("xkey", "a b,c ,, d\te")], &["xkey"], &["a", "b", "c", "d", "e"]);
    check(&[("xkey", "A a"), ("xkey", "node:1|x;y")], &["xkey"], &["A", "a", "node:1|x;y"]);
    check(&[("xkey", "a"), ("cache-tag", "b"), ("x-tags", "c")], &["cache-tag", "xkey"], &["b", "a"]);
}

#[test]
fn a_response_without_a_tag_has_none() {
    assert_eq!(size_of::<Option<Box<Tags>>>(), 8);
    for said in [&[][..], &[("xkey", " , ")], &[("xkey", "")], &[("x-tags", "a")]] {
        assert_eq!(of(said, &["xkey"]), None, "{said:?}");
    }
    assert_eq!(of(&[("xkey", "a")], &[]), None);
}

#[test]
fn a_tag_that_comes_twice_counts_once() {
    let tags = of(&[("xkey", "a a"), ("cache-tag", "a")], &["xkey", "cache-tag"]);
    assert_eq!(tags.map(|tags| tags.hashes().to_vec()), Some(vec![Tags::hash_of(b"a")]));
}

#[test]
fn page_and_site_of_typo3_are_tags_together_where_both_are_named() {
    let said = [("typo3-pid", "7"), ("typo3-sitename", "main")];
    check(&said, &["typo3-pid", "typo3-sitename"], &["pid-7", "site-main", "site-main/pid-7"]);
    check(&said, &["typo3-pid"], &["pid-7"]);
    check(&said, &["typo3-sitename"], &["site-main"]);
    assert_eq!(Tags::of(&fields(&said), TagFields::known()), None);
}

#[test]
fn the_names_are_those_of_fields_that_are_there() {
    let tags = of(&[("cache-tag", "a"), ("x-b", "b")], &["xkey", "cache-tag"]);
    assert_eq!(tags.map(|tags| tags.names().to_vec()), Some(vec![HeaderName::from_static("cache-tag")]));
    let twice = of(&[("xkey", "a")], &["xkey", "xkey"]);
    assert_eq!(twice, of(&[("xkey", "a")], &["xkey"]));
}

#[test]
fn beyond_a_bound_a_response_carries_every_tag() {
    let many = |count: usize| (0..count).map(|tag| tag.to_string()).collect::<Vec<_>>().join(" ");
    let long = |bytes: usize| "a".repeat(bytes);
    let together = |count: usize| vec![long(TAG_BYTES_MAX); count].join(" ");
    let counts = TAGS_BYTES_MAX / TAG_BYTES_MAX;
    for (value, carries_every) in [
        (many(TAGS_MAX), false),
        (many(TAGS_MAX + 1), true),
        (long(TAG_BYTES_MAX), false),
        (long(TAG_BYTES_MAX + 1), true),
        (together(counts), false),
        (together(counts) + " b", true),
    ] {
        let tags = of(&[("xkey", &value)], &["xkey"]).expect("it has tags");
        assert_eq!(tags.carries_every(), carries_every, "{} bytes", value.len());
        assert_eq!(tags.hashes().is_empty(), carries_every, "{} bytes", value.len());
        assert!(tags.text(&fields(&[("xkey", &value)])).len() < TAGS_BYTES_MAX + TAGS_MAX);
    }
    let crossed = [("typo3-pid", &*many(TAGS_MAX / 2)), ("typo3-sitename", &many(TAGS_MAX / 2))];
    let tags = of(&crossed, &["typo3-pid", "typo3-sitename"]);
    assert!(tags.is_some_and(|tags| tags.carries_every()));
}

#[test]
fn what_tags_take_is_counted() {
    let tags = of(&[("xkey", "a b c")], &["xkey"]).expect("it has tags");
    assert_eq!(tags.memory_bytes(), size_of::<Tags>() + 3 * 8 + size_of::<HeaderName>());
}

proptest! {
    #[test]
    fn a_field_carries_tags_exactly_where_its_name_is_among_the_names(
        names in proptest::collection::vec("[a-c-]{1,3}|date|etag|[a-z-]{1,40}", 0..12),
        other in "[a-c-]{1,3}|date|etag|[a-z-]{1,40}",
    ) {
        let named = |name: &String| HeaderName::from_bytes(name.as_bytes()).expect("a name");
        let (all, other) = (names.iter().map(named).collect::<Vec<_>>(), named(&other));
        let carriers = TagFields::new(all.clone(), false);
        prop_assert!(all.iter().all(|name| carriers.has(name)));
        prop_assert_eq!(carriers.has(&other), all.contains(&other));
        let said = HeaderMap::from_iter([(other.clone(), HeaderValue::from_static("a"))]);
        prop_assert_eq!(Tags::of(&said, &carriers).is_some(), all.contains(&other));
    }

    #[test]
    fn no_tag_that_was_named_is_missed(
        lines in proptest::collection::vec((0..DEFAULT.len(), "[a-z0-9:,é \t-]{0,60}"), 0..8),
        repeated in prop_oneof![Just(1_usize), 400..2000_usize],
    ) {
        let mut said = HeaderMap::new();
        for (name, value) in &lines {
            let value = [value.as_str(), " "].concat().repeat(repeated);
            said.append(&DEFAULT[*name], HeaderValue::from_bytes(value.trim().as_bytes()).expect("a value"));
        }
        let tags = Tags::of(&said, &TagFields::default());
        for (_, value) in &lines {
            for tag in value.split([' ', '\t', ',']).filter(|tag| !tag.is_empty()) {
                let tags = tags.as_ref().expect("there is a tag");
                let is_found = tags.hashes().binary_search(&Tags::hash_of(tag.as_bytes())).is_ok();
                prop_assert!(is_found || tags.carries_every(), "{:?}", tag);
            }
        }
    }
}
