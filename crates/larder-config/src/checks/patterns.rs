//! Whether a site's path patterns are small enough together: requests are compared with all of them at once.
//!
//! In: the rules of a site. Out: an error at the first pattern with which it is too much. Each pattern alone was judged when it
//! was read.

use regex::bytes::RegexSetBuilder;

use crate::document::{Node, Table, Value};
use crate::reading::{At, Reading, tables};
use crate::sections::rule::Rule;
use crate::value::glob::glob_to_regex;

/// What all patterns of a site may take when they are compiled, in bytes: what the proxy allows, which compiles the same.
const COMPILED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Refuses the first pattern that is too much. `rules` are all rules of the site.
pub(crate) fn check(rules: &[Rule], site: &Table, at: &At<'_>, reading: &mut Reading<'_>) {
    // In the order of the proxy.
    let mut all: Vec<(usize, &str, usize, String)> = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let globs = rule.path.iter().enumerate();
        all.extend(globs.map(|(item, glob)| (index, "path", item, glob_to_regex(glob.as_str()))));
        let texts = rule.path_regex.iter().enumerate();
        all.extend(texts.map(|(item, text)| (index, "path_regex", item, text.as_str().to_owned())));
    }
    let fits = |count: usize| {
        let texts = all.iter().take(count).map(|(.., text)| text);
        RegexSetBuilder::new(texts).size_limit(COMPILED_BYTES_MAX).build().is_ok()
    };
    if fits(all.len()) {
        return;
    }
    // One more pattern never makes it smaller.
    let (mut good, mut bad) = (0, all.len());
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fits(middle) { good = middle } else { bad = middle }
    }
    let Some((index, key, item, _)) = all.get(good) else { return };
    let tables = tables(site, "rule");
    let Some(node) = tables.get(*index).and_then(|rule| rule.get(key)) else { return };
    let list = At::Key(at, "rule");
    let rule = At::Item(&list, *index);
    let at = At::Key(&rule, key);
    let expected = "path patterns that compile to less than 16 MiB together, over all rules of the site";
    let hint = Some("with this one it is more: repeat less, or use globs".to_owned());
    match &node.value {
        Value::List(items) => {
            let node: &Node = items.get(*item).unwrap_or(node);
            reading.refuse_value(node, &At::Item(&at, *item), expected, hint);
        }
        _ => reading.refuse_value(node, &at, expected, hint),
    }
}
