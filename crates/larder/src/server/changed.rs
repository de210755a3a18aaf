//! What is another in a new config, by name, for those who look on.
//!
//! In: two configs. Out: a sentence: which sites, rules, origins, stores and tables were added, removed or changed; at most ten by name.
//! A rule that only stands on another line has not changed.

use std::collections::{BTreeSet, HashMap};

use larder_config::{Config, Name, Rule, Site};

/// So many changes are named.
const NAMED_MAX: usize = 10;

/// How the second config differs from the first.
pub(super) fn sentence(before: &Config, after: &Config) -> String {
    let changes = changes(before, after);
    let named = changes.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match (changes.len(), changes.len().saturating_sub(NAMED_MAX)) {
        (0, _) => "nothing is another than before".to_owned(),
        (_, 0) => named,
        (_, more) => format!("{named}, and {more} more"),
    }
}

fn changes(before: &Config, after: &Config) -> Vec<String> {
    let mut out = Vec::new();
    compare("site", &sites(before), &sites(after), &mut out);
    compare("rule", &rules(before), &rules(after), &mut out);
    compare("origin", &entries(&before.origins), &entries(&after.origins), &mut out);
    compare("store", &entries(&before.stores), &entries(&after.stores), &mut out);
    let tables = [
        ("listen", before.listen != after.listen),
        ("admin", before.admin != after.admin),
        ("workers", before.workers != after.workers),
        ("trusted", before.trusted != after.trusted),
        ("drain", before.drain != after.drain),
        ("log", before.log != after.log),
        ("live", before.live != after.live),
        ("tls", before.tls != after.tls),
        ("limits", before.limits != after.limits),
        ("fleet", before.fleet != after.fleet),
        ("defaults", before.defaults != after.defaults),
    ];
    out.extend(
        tables.iter().filter(|(_, is_another)| *is_another).map(|(name, _)| format!("{name} changed")),
    );
    out
}

/// Each site, without its rules.
fn sites(config: &Config) -> HashMap<String, Site> {
    let alone = |site: &Site| Site { rules: Vec::new(), ..site.clone() };
    config.sites.iter().map(|site| (site.label().to_owned(), alone(site))).collect()
}

/// The rules of all sites, wherever they stand, each with its position: the first that matches decides.
fn rules(config: &Config) -> HashMap<String, (usize, Rule)> {
    let mut rules = HashMap::new();
    for site in &config.sites {
        for (position, (label, rule)) in site.labels().into_iter().zip(&site.rules).enumerate() {
            let rule = Rule { line: None, ..rule.clone() };
            rules.insert(format!("{label} of {}", site.label()), (position, rule));
        }
    }
    rules
}

fn entries<T: Clone>(all: &[(Name, T)]) -> HashMap<String, T> {
    all.iter().map(|(name, of)| (name.to_string(), of.clone())).collect()
}

/// Says of each name whether it is new, gone or another; in the order of names.
fn compare<T: PartialEq>(
    what: &str,
    before: &HashMap<String, T>,
    after: &HashMap<String, T>,
    out: &mut Vec<String>,
) {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for name in names {
        let became = match (before.get(name), after.get(name)) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(old), Some(new)) if old != new => "changed",
            _ => continue,
        };
        out.push(format!("{what} {name} {became}"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    fn check(before: &str, after: &str, expected: &str) {
        let config = |text: &str| {
            let origin = "[origins.app]\nservers = \"http://127.0.0.1:1\"\n";
            larder_config::parse(&format!("{text}{origin}"), "f", Path::new("")).unwrap().config
        };
        assert_eq!(sentence(&config(before), &config(after)), expected);
    }

    const SITE: &str = "[[site]]\nhosts = \"a.example\"\norigin = \"app\"\n";

    #[test]
    fn what_is_another_is_named() {
        check(SITE, &format!("\n\n{SITE}"), "nothing is another than before");
        let rule = format!("{SITE}[[site.rule]]\nname = \"x\"\n");
        check(SITE, &rule, "rule x of a.example added");
        check(&rule, &format!("# moved\n{rule}"), "nothing is another than before");
        check(&rule, &format!("{rule}ttl = \"1s\"\n"), "rule x of a.example changed");
        let other = SITE.replace("a.example", "b.example");
        check(
            &format!("[stores.s]\nmemory = \"1MiB\"\n{SITE}"),
            &format!("drain = \"1s\"\n[stores.s]\nmemory = \"2MiB\"\n[stores.t]\n{other}"),
            "site a.example removed, site b.example added, store s changed, store t added, drain changed",
        );
    }

    #[test]
    fn ten_changes_are_named() {
        let rules: String = (0..13)
            .map(|number| format!("[[site.rule]]\nname = \"r{number:02}\"\npath = \"/{number}\"\n"))
            .collect();
        let names: Vec<_> = (0..10).map(|number| format!("rule r{number:02} of a.example added")).collect();
        check(SITE, &format!("{SITE}{rules}"), &format!("{}, and 3 more", names.join(", ")));
    }
}
