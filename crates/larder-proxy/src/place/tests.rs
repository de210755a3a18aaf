//! Entries against heads, and rules with several stores.

use http::HeaderValue;
use larder_cache::CachePolicy;
use larder_store::MemoryStoreSettings;

use super::*;
use crate::settings::{FieldEdits, KeySettings};

const OK: StatusCode = StatusCode::OK;

fn fields(content_type: Option<&str>) -> HeaderMap {
    let value =
        |text| HeaderValue::from_bytes(str::as_bytes(text)).unwrap_or_else(|error| panic!("{error}"));
    content_type.map(|text| (CONTENT_TYPE, value(text))).into_iter().collect()
}

#[test]
fn a_pattern_is_compared_with_the_whole_type() {
    for (pattern, content_type, matches) in [
        ("video/*", "video/mp4", true),
        ("video/*", "video/", true),
        ("video/*", "audio/mp4", false),
        ("video/mp4", "video/mp4", true),
        ("video/mp4", "video/mp4v", false),
        ("video/mp4", "xvideo/mp4", false),
        ("Video/MP4", "vIDEO/mp4", true),
        ("text/html", "text/html; charset=utf-8", true),
        ("text/html", "text/html ;charset=utf-8", true),
        ("text/html", "text/html;a=\"text/plain\"", true),
        ("text/plain", "text/html;a=\"text/plain\"", false),
        ("*/*", "a/b", true),
        ("*/*", "nonsense", false),
        ("*/*+xml", "image/svg+xml", true),
        ("*/*+xml", "image/svg+xml+x", false),
        ("*/*+xml", "+xml", false),
        ("application/vnd.*.sheet", "application/vnd.a.b.sheet", true),
        ("application/vnd.*.sheet", "application/vnd.sheet", false),
        ("a*a/b", "a/b", false),
        ("a**/b", "aa/b", true),
        ("*/*", "", false),
    ] {
        let found = TypePattern::new(pattern).matches(&media_type(content_type.as_bytes()));
        assert_eq!(found, matches, "{pattern} {content_type}");
    }
}

#[test]
fn everything_that_an_entry_names_has_to_match() {
    let large_video = PlaceMatch {
        types: vec![TypePattern::new("audio/*"), TypePattern::new("video/*")],
        size_bytes_min: 1024,
        statuses: vec![200..=200, 203..=299],
    };
    for (status, content_type, announced_bytes, matches) in [
        (200, Some("video/mp4"), Some(1024), true),
        (206, Some("audio/ogg"), Some(u64::MAX), true),
        (200, Some("video/mp4"), Some(1023), false),
        (200, Some("video/mp4"), None, false),
        (201, Some("video/mp4"), Some(1024), false),
        (200, Some("text/html"), Some(1024), false),
        (200, None, Some(1024), false),
    ] {
        let status = StatusCode::from_u16(status).unwrap_or_default();
        let found = large_video.matches(status, &fields(content_type), announced_bytes);
        assert_eq!(found, matches, "{status} {content_type:?} {announced_bytes:?}");
    }
}

#[test]
fn what_an_entry_does_not_name_does_not_matter() {
    assert!(PlaceMatch::default().matches(StatusCode::NOT_FOUND, &HeaderMap::new(), None));
    let errors = PlaceMatch { statuses: vec![400..=599], ..PlaceMatch::default() };
    assert!(errors.matches(StatusCode::NOT_FOUND, &HeaderMap::new(), None));
    let large = PlaceMatch { size_bytes_min: 1, ..PlaceMatch::default() };
    assert!(large.matches(OK, &HeaderMap::new(), Some(1)) && !large.matches(OK, &HeaderMap::new(), Some(0)));
}

fn store() -> Arc<Store> {
    Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 })
}

fn rule(store: &Arc<Store>, places: &[(&str, &Arc<Store>)]) -> RuleSettings {
    let place = |(pattern, store): &(&str, &Arc<Store>)| Place {
        what: PlaceMatch { types: vec![TypePattern::new(pattern)], ..PlaceMatch::default() },
        store: Arc::clone(store),
        store_id: CacheId::default(),
    };
    RuleSettings {
        cache: true,
        policy: CachePolicy::default(),
        store_id: CacheId::default(),
        store: Arc::clone(store),
        places: places.iter().map(place).collect(),
        refresh_ahead: false,
        collapse_wait: None,
        min_uses: 1,
        key: KeySettings::default(),
        debug: false,
        request: FieldEdits::default(),
        response: FieldEdits::default(),
    }
}

#[test]
fn the_first_entry_that_matches_decides() {
    let (own, video, images) = (store(), store(), store());
    let rule = rule(&own, &[("video/*", &video), ("image/*", &images), ("*/*", &video)]);
    for (content_type, expected) in
        [(Some("video/mp4"), &video), (Some("image/png"), &images), (Some("a/b"), &video), (None, &own)]
    {
        let (found, _) = rule.place_for(OK, &fields(content_type), None);
        assert!(Arc::ptr_eq(found, expected), "{content_type:?}");
    }
}

#[test]
fn each_store_of_a_rule_is_looked_into_once() {
    let (own, video) = (store(), store());
    let found = |rule: &RuleSettings| rule.stores().map(|(store, _)| Arc::clone(store)).collect::<Vec<_>>();
    let same = |found: &[Arc<Store>], expected: &[&Arc<Store>]| {
        let pairs = found.iter().zip(expected);
        found.len() == expected.len() && pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    };
    assert!(same(&found(&rule(&own, &[])), &[&own]));
    let many = rule(&own, &[("a/b", &video), ("b/c", &own), ("c/d", &video)]);
    assert!(same(&found(&many), &[&own, &video]));
}

/// The same pattern, tried at every position.
fn matches_naively(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), None) => matches_naively(rest, text),
        (Some((b'*', rest)), Some((_, tail))) => {
            matches_naively(rest, text) || matches_naively(pattern, tail)
        }
        (Some((one, rest)), Some((other, tail))) => one == other && matches_naively(rest, tail),
        _ => false,
    }
}

proptest::proptest! {
    #[test]
    fn a_pattern_means_what_its_stars_say(pattern in "[ab*]{0,8}", text in "[ab]{0,12}") {
        let expected = matches_naively(pattern.as_bytes(), text.as_bytes());
        proptest::prop_assert_eq!(TypePattern::new(&pattern).matches(text.as_bytes()), expected);
    }
}
