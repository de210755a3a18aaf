//! Which requests a rule is for, and which responses a store takes.
//!
//! In: the patterns of the config. Out: the same as the proxy matches them.

use larder_config::PathRegex;
use larder_proxy::settings::{PlaceMatch, RuleMatch, TypePattern, ValueMatch};

pub(super) fn place_match(place: &larder_config::StoreRule) -> PlaceMatch {
    PlaceMatch {
        types: place.types.iter().map(|pattern| TypePattern::new(pattern.as_str())).collect(),
        size_bytes_min: place.min_size.map_or(0, |size| size.0),
        statuses: place.statuses.iter().map(larder_config::StatusRange::range).collect(),
    }
}

pub(super) fn rule_match(rule: &larder_config::Rule) -> RuleMatch {
    let globs = rule.path.iter().map(|glob| larder_config::glob_to_regex(glob.as_str()));
    let value = |value: &larder_config::ValueMatch| match value {
        larder_config::ValueMatch::Present(present) => ValueMatch::Present(*present),
        larder_config::ValueMatch::Glob(glob) => ValueMatch::Pattern(larder_config::glob_to_regex(glob)),
    };
    RuleMatch {
        paths: globs.chain(rule.path_regex.iter().map(PathRegex::as_str).map(str::to_owned)).collect(),
        methods: rule.methods.clone(),
        fields: rule.header.iter().map(|(name, wanted)| (name.clone(), value(wanted))).collect(),
        cookies: rule.cookie.iter().map(|(name, wanted)| (name.as_str().to_owned(), value(wanted))).collect(),
        query: rule.query.iter().map(|(name, wanted)| (name.as_str().to_owned(), value(wanted))).collect(),
    }
}
