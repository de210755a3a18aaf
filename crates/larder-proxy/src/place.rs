//! Which store a response goes to by what it is.
//!
//! In: the head of a response that is to be stored, and an entry of a rule. Out: whether everything that the entry asks
//! for matches. Decided once, when the head is there, because room
//! is reserved then: what is not known by then, such as the length of a body without Content-Length, matches nothing
//! that asks for it. Deliberately absent: look-ups, which may find a response in any of the rule's stores.

use std::ops::RangeInclusive;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use larder_observe::{CacheId, RuleId};
use larder_store::Store;

/// An entry of a rule's `place`.
#[derive(Clone)]
pub struct StoreRule {
    /// Which responses it is for.
    pub what: PlaceMatch,
    /// Where they are kept.
    pub store: Arc<Store>,
    /// That store's number in the metrics.
    pub store_id: CacheId,
    /// The number of the rule there, with that store.
    pub rule_id: RuleId,
}

/// Which responses an entry is for. What is empty matches every one.
#[derive(Clone, Debug, Default)]
pub struct PlaceMatch {
    /// One of these types; a response without Content-Type has none.
    pub types: Vec<TypePattern>,
    /// A body that is announced to be at least so long; 0 is any.
    pub size_bytes_min: u64,
    /// One of these statuses.
    pub statuses: Vec<RangeInclusive<u16>>,
}

impl PlaceMatch {
    /// Whether it is for a response with this head. `announced_bytes` is the length of its body, where that is known.
    pub fn matches(&self, status: StatusCode, fields: &HeaderMap, announced_bytes: Option<u64>) -> bool {
        let has_status = self.statuses.is_empty()
            || self.statuses.iter().any(|statuses| statuses.contains(&status.as_u16()));
        let has_size = self.size_bytes_min == 0 || announced_bytes >= Some(self.size_bytes_min);
        let has_type = || {
            let media_type = fields.get(CONTENT_TYPE).map(|value| media_type(value.as_bytes()));
            media_type.is_some_and(|found| self.types.iter().any(|pattern| pattern.matches(&found)))
        };
        has_status && has_size && (self.types.is_empty() || has_type())
    }
}

impl PlaceMatch {
    /// What an entry asks for, each condition in a few words.
    pub(crate) fn told(&self) -> Vec<String> {
        let types: Vec<String> = self.types.iter().map(TypePattern::told).collect();
        let status = |range: &RangeInclusive<u16>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}-{}", range.start(), range.end()),
        };
        let statuses: Vec<String> = self.statuses.iter().map(status).collect();
        [
            (!types.is_empty()).then(|| format!("type {}", types.join(" or "))),
            (self.size_bytes_min > 0).then(|| match self.size_bytes_min {
                1 => "at least 1 byte".to_owned(),
                bytes => format!("at least {bytes} bytes"),
            }),
            (!statuses.is_empty()).then(|| format!("status {}", statuses.join(" or "))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A pattern for a type and subtype; `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern {
    /// What stands between the stars, in lower case. Never empty.
    literals: Box<[Box<[u8]>]>,
}

impl TypePattern {
    /// As it is written in the config, in lower case.
    fn told(&self) -> String {
        let literals: Vec<_> = self.literals.iter().map(|literal| String::from_utf8_lossy(literal)).collect();
        literals.join("*")
    }

    /// A pattern as it is written in the config.
    pub fn new(pattern: &str) -> Self {
        let literals = pattern.split('*').map(|literal| literal.to_ascii_lowercase().into_bytes().into());
        Self { literals: literals.collect() }
    }

    /// Whether the whole of `media_type` matches, which is in lower case.
    fn matches(&self, media_type: &[u8]) -> bool {
        let Some((first, rest)) = self.literals.split_first() else {
            return false;
        };
        let Some((last, between)) = rest.split_last() else {
            return media_type == &**first;
        };
        let Some(mut media_type) = media_type.strip_prefix(&**first) else {
            return false;
        };
        // The first place where each literal fits leaves the most for those behind it.
        for literal in between.iter().filter(|literal| !literal.is_empty()) {
            let Some(at) = media_type.windows(literal.len()).position(|window| window == &**literal) else {
                return false;
            };
            media_type = media_type.get(at + literal.len()..).unwrap_or_default();
        }
        media_type.ends_with(last)
    }
}

/// Type and subtype of a Content-Type, in lower case, without parameters and the whitespace before them.
fn media_type(value: &[u8]) -> Vec<u8> {
    let without_parameters = value.split(|byte| *byte == b';').next().unwrap_or_default();
    without_parameters.trim_ascii().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use larder_store::MemoryStoreSettings;

    use super::*;
    use crate::settings::RuleSettings;

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
    fn an_entry_is_told_by_what_it_asks_for() {
        let all = PlaceMatch {
            types: vec![TypePattern::new("Audio/*"), TypePattern::new("*/*+xml")],
            size_bytes_min: 1024,
            statuses: vec![200..=200, 400..=599],
        };
        assert_eq!(all.told(), ["type audio/* or */*+xml", "at least 1024 bytes", "status 200 or 400-599"]);
        assert_eq!(PlaceMatch::default().told(), Vec::<String>::new());
    }

    #[test]
    fn what_an_entry_does_not_name_does_not_matter() {
        assert!(PlaceMatch::default().matches(StatusCode::NOT_FOUND, &HeaderMap::new(), None));
        let errors = PlaceMatch { statuses: vec![400..=599], ..PlaceMatch::default() };
        assert!(errors.matches(StatusCode::NOT_FOUND, &HeaderMap::new(), None));
        let large = PlaceMatch { size_bytes_min: 1, ..PlaceMatch::default() };
        assert!(
            large.matches(OK, &HeaderMap::new(), Some(1)) && !large.matches(OK, &HeaderMap::new(), Some(0))
        );
    }

    fn store() -> Arc<Store> {
        Store::in_memory(&MemoryStoreSettings { memory: 1 << 20, max_object: 1 << 20 })
    }

    fn rule(store: &Arc<Store>, places: &[(&str, &Arc<Store>)]) -> RuleSettings {
        let place = |(pattern, store): &(&str, &Arc<Store>)| StoreRule {
            what: PlaceMatch { types: vec![TypePattern::new(pattern)], ..PlaceMatch::default() },
            store: Arc::clone(store),
            store_id: CacheId::default(),
            rule_id: RuleId::default(),
        };
        RuleSettings { places: places.iter().map(place).collect(), ..crate::testing::rule(store) }
    }

    #[test]
    fn the_first_entry_that_matches_decides() {
        let (own, video, images) = (store(), store(), store());
        let rule = rule(&own, &[("video/*", &video), ("image/*", &images), ("*/*", &video)]);
        for (content_type, expected) in
            [(Some("video/mp4"), &video), (Some("image/png"), &images), (Some("a/b"), &video), (None, &own)]
        {
            let found = rule.place_for(OK, &fields(content_type), None).store;
            assert!(Arc::ptr_eq(found, expected), "{content_type:?}");
        }
    }

    #[test]
    fn each_store_of_a_rule_is_looked_into_once() {
        let (own, video) = (store(), store());
        let found =
            |rule: &RuleSettings| rule.stores().map(|(store, _)| Arc::clone(store)).collect::<Vec<_>>();
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
}
