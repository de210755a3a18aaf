//! The hosts whose responses a purge may concern.
//!
//! In: host patterns of sites, and whether each site lets the purge in. Out: whether a host is among them. As with sites, an exact
//! name decides before the longest wildcard, and that before the site that has all other hosts. So a tenant who has
//! `*.example.com` never reaches `www.example.com` of another tenant. A scope is written into the predicate when the purge is
//! made: a site that is renamed or removed later changes nothing.

use std::fmt::Write;

/// Host patterns, each in or out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Exact names and `*.` wildcards in lower case, sorted, each once.
    hosts: Vec<(Box<str>, bool)>,
    /// What holds for all other hosts.
    otherwise: bool,
}

impl Scope {
    /// Every host.
    pub const fn any() -> Self {
        Self { hosts: Vec::new(), otherwise: true }
    }

    /// The hosts of the sites that are let in. Each pattern stands with whether its site is; `otherwise` is that of the site
    /// that has all other hosts, or false where there is none. Of a pattern that comes twice the first counts.
    pub fn of_sites<'a>(hosts: impl IntoIterator<Item = (&'a str, bool)>, otherwise: bool) -> Self {
        let mut all: Vec<(Box<str>, bool)> = Vec::new();
        for (host, is_in) in hosts {
            let host = host.to_ascii_lowercase();
            if all.iter().all(|(other, _)| **other != *host) {
                all.push((host.into(), is_in));
            }
        }
        all.sort();
        let mut scope = Self { hosts: all, otherwise };
        scope.prune();
        scope
    }

    /// One host alone, where it is in this scope.
    pub fn narrowed_to(&self, host: &str) -> Option<Self> {
        let host = host.to_ascii_lowercase();
        self.holds(&host).then(|| Self { hosts: vec![(host.into(), true)], otherwise: false })
    }

    /// Whether no host is in it.
    pub fn is_empty(&self) -> bool {
        !self.otherwise && self.hosts.iter().all(|(_, is_in)| !is_in)
    }

    /// Whether every host is in it.
    pub fn is_any(&self) -> bool {
        self.otherwise && self.hosts.iter().all(|(_, is_in)| *is_in)
    }

    /// Whether a host, in lower case and without port, is in it. Walks up the labels, so the longest wildcard decides; bounded
    /// by the length of a host.
    pub fn holds(&self, host: &str) -> bool {
        let decides = |pattern: &str| {
            let found = self.hosts.binary_search_by(|(other, _)| (**other).cmp(pattern)).ok()?;
            self.hosts.get(found).map(|(_, is_in)| *is_in)
        };
        if self.hosts.is_empty() {
            return self.otherwise;
        }
        if let Some(is_in) = decides(host) {
            return is_in;
        }
        let (mut rest, mut pattern) = (host, String::new());
        while let Some((_, parent)) = rest.split_once('.') {
            pattern.clear();
            pattern.push_str("*.");
            pattern.push_str(parent);
            if let Some(is_in) = decides(&pattern) {
                return is_in;
            }
            rest = parent;
        }
        self.otherwise
    }

    /// Takes out patterns that change nothing: what is out where nothing above it is in.
    fn prune(&mut self) {
        let kept: Vec<_> = self
            .hosts
            .iter()
            .filter(|(host, is_in)| {
                let without = Self {
                    hosts: self.hosts.iter().filter(|(other, _)| other != host).cloned().collect(),
                    otherwise: self.otherwise,
                };
                // A host below it that no pattern names: no host has this character.
                let below = host.strip_prefix("*.").map(|parent| format!("?.{parent}"));
                without.holds(below.as_deref().unwrap_or(host)) != *is_in
            })
            .cloned()
            .collect();
        self.hosts = kept;
    }

    /// As text: `+host` and `-host`, one behind the other with blanks between, and `*` for all other hosts.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (host, is_in) in &self.hosts {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{host} ", if *is_in { '+' } else { '-' });
        }
        text.push_str(if self.otherwise { "+*" } else { "-*" });
        text
    }

    /// Reads that again; `None` where it is none.
    pub fn from_text(text: &str) -> Option<Self> {
        let (hosts, otherwise) = match text.rsplit_once(' ') {
            Some((hosts, otherwise)) => (hosts, otherwise),
            None => ("", text),
        };
        let otherwise = match otherwise {
            "+*" => true,
            "-*" => false,
            _ => return None,
        };
        let host = |part: &str| match part.split_at_checked(1)? {
            (_, "") => None,
            ("+", host) => Some((Box::from(host), true)),
            ("-", host) => Some((Box::from(host), false)),
            _ => None,
        };
        let mut hosts =
            hosts.split(' ').filter(|part| !part.is_empty()).map(host).collect::<Option<Vec<_>>>()?;
        hosts.sort();
        hosts.dedup_by(|one, other| one.0 == other.0);
        Some(Self { hosts, otherwise })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wildcard_never_reaches_what_another_site_has() {
        let hosts = [("*.example.com", true), ("www.example.com", false), ("*.b.example.com", false)];
        let scope = Scope::of_sites(hosts, false);
        for (host, holds) in [
            ("a.example.com", true),
            ("x.a.example.com", true),
            ("www.example.com", false),
            ("x.b.example.com", false),
            ("example.com", false),
            ("example.org", false),
        ] {
            assert_eq!(scope.holds(host), holds, "{host}");
        }
    }

    #[test]
    fn the_site_of_all_other_hosts_has_not_those_of_the_others() {
        let scope = Scope::of_sites([("a.org", false), ("*.b.org", false)], true);
        for (host, holds) in [("a.org", false), ("x.b.org", false), ("b.org", true), ("192.0.2.1", true)] {
            assert_eq!(scope.holds(host), holds, "{host}");
        }
        assert!(!scope.is_any() && !scope.is_empty());
        assert!(Scope::any().is_any() && Scope::of_sites([("a.org", false)], false).is_empty());
    }

    #[test]
    fn what_changes_nothing_is_left_out() {
        let scope = Scope::of_sites([("a.org", true), ("b.org", false), ("*.c.org", false)], false);
        assert_eq!(scope.to_text(), "+a.org -*");
    }

    #[test]
    fn a_wildcard_beside_any_host_below_it_is_kept() {
        for is_in in [true, false] {
            let scope = Scope::of_sites([("*.a.org", is_in), ("x.a.org", is_in)], !is_in);
            for host in ["x.a.org", "y.a.org"] {
                assert_eq!(scope.holds(host), is_in, "{host} in {}", scope.to_text());
            }
        }
    }

    #[test]
    fn one_host_of_it_is_a_scope_as_well() {
        let scope = Scope::of_sites([("*.a.org", true)], false);
        let one = scope.narrowed_to("X.a.org");
        assert_eq!(one.map(|one| [one.holds("x.a.org"), one.holds("y.a.org")]), Some([true, false]));
        assert_eq!(scope.narrowed_to("a.org"), None);
    }

    #[test]
    fn text_that_is_no_scope_is_none() {
        for text in ["", "a.org", "+a.org", "a.org +*", "+ -*", "+a.org*"] {
            assert_eq!(Scope::from_text(text), None, "{text}");
        }
    }

    /// As sites are chosen: an exact name, then the longest wildcard, then the site of all other hosts.
    fn is_let_in(hosts: &[(String, bool)], otherwise: bool, asked: &str) -> bool {
        let first = |is_it: &dyn Fn(&str) -> bool| hosts.iter().find(|(host, _)| is_it(host));
        let exact = first(&|host| host == asked);
        let wildcard = || {
            let parents = asked.match_indices('.').map(|(at, _)| &asked[at..]);
            parents.filter_map(|parent| first(&|host| host.strip_prefix('*') == Some(parent))).next()
        };
        exact.or_else(wildcard).map_or(otherwise, |(_, is_in)| *is_in)
    }

    proptest! {
        #[test]
        fn a_scope_holds_the_hosts_of_the_sites_that_are_let_in_and_no_others(
            hosts in proptest::collection::vec(("(\\*\\.)?([xy]\\.)?([xy]\\.)?[xy]", any::<bool>()), 0..8),
            otherwise: bool,
            asked in "([xyz]\\.){0,3}[xyz]",
        ) {
            let scope = Scope::of_sites(hosts.iter().map(|(host, is_in)| (&**host, *is_in)), otherwise);
            prop_assert_eq!(scope.holds(&asked), is_let_in(&hosts, otherwise, &asked), "{}", scope.to_text());
        }

        #[test]
        fn a_scope_is_the_same_again_from_its_text(
            hosts in proptest::collection::vec(("(\\*\\.)?[ab]\\.[ab]", any::<bool>()), 0..8),
            otherwise: bool,
            asked in "[ab]\\.[ab](\\.[ab])?",
        ) {
            let scope = Scope::of_sites(hosts.iter().map(|(host, is_in)| (&**host, *is_in)), otherwise);
            let again = Scope::from_text(&scope.to_text());
            prop_assert_eq!(again.as_ref(), Some(&scope));
            prop_assert_eq!(again.map(|again| again.holds(&asked)), Some(scope.holds(&asked)));
        }
    }
}
