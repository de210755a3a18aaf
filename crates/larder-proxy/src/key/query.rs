//! Which parameters of a query stay, and in which order. Names are compared raw, as they stand in the target.

use crate::settings::{KeySettings, QueryParts};

/// The normal form of `query`, or `None` where it is that already.
pub(super) fn normalise(query: &str, settings: &KeySettings) -> Option<String> {
    if matches!(settings.query, QueryParts::All) && !settings.sort {
        return None;
    }
    let mut pairs: Vec<&str> = query.split('&').filter(|pair| stays(pair, &settings.query)).collect();
    if settings.sort {
        // By name first, so that `a=2&a10=1` does not depend on how `=` compares with a digit. Stable: values of one
        // name keep their order, which means something to many applications.
        pairs.sort_by_key(|pair| name(pair));
    }
    let normal = pairs.join("&");
    (normal != query).then_some(normal)
}

fn name(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

fn stays(pair: &str, parts: &QueryParts) -> bool {
    let named = |pattern: &String| match pattern.strip_suffix('*') {
        Some(prefix) => name(pair).starts_with(prefix),
        None => name(pair) == pattern,
    };
    match parts {
        QueryParts::All => true,
        QueryParts::None => false,
        QueryParts::Only(names) => names.iter().any(named),
        QueryParts::Except(names) => !names.iter().any(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, parts: QueryParts, sort: bool, normal: &str) {
        let settings = KeySettings { query: parts, sort, ..KeySettings::default() };
        assert_eq!(normalise(query, &settings).as_deref().unwrap_or(query), normal, "{query}");
    }

    #[test]
    fn parameters_are_kept_dropped_and_sorted_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        check("b=1&a=2", QueryParts::All, false, "b=1&a=2");
        check("b=1&a=2", QueryParts::All, true, "a=2&b=1");
        check("a10=1&a=2", QueryParts::All, true, "a=2&a10=1");
        check("a=2&a=1", QueryParts::All, true, "a=2&a=1");
        check("a=1&b", QueryParts::None, false, "");
        check("a=1&b=2&c", QueryParts::Only(names(&["b", "c"])), false, "b=2&c");
        check("utm_source=x&a=1&gclid=2", QueryParts::Except(names(&["utm_*", "gclid"])), false, "a=1");
        check("utm_source=x", QueryParts::Except(names(&["utm_*"])), false, "");
        check("a=1&&b", QueryParts::Only(names(&["a", "b"])), false, "a=1&b");
    }

    proptest::proptest! {
        #[test]
        fn normalising_twice_changes_nothing_more(query in "[ab=&*1]{0,20}", sort: bool) {
            let parts = QueryParts::Except(vec!["a*".to_owned()]);
            let settings = KeySettings { query: parts, sort, ..KeySettings::default() };
            let once = normalise(&query, &settings).unwrap_or(query);
            proptest::prop_assert_eq!(normalise(&once, &settings), None);
        }
    }
}
