//! All path patterns of a site in one automaton: a request pays for the length of its path, a few instructions for each byte,
//! and not for the number of patterns.
//!
//! In: regular expressions. Out: which of them match a path. The automaton is built when the config is loaded, and is one
//! table to walk through: each pattern is made to take the whole path, so that the state at its end says which have
//! matched. What has no such table (a Unicode word boundary), or only a large one, is searched for by a lazy one instead.

use regex::bytes::{RegexSet, RegexSetBuilder};
use regex_automata::dfa::dense::{BuildError, Builder, Config, DFA};
use regex_automata::dfa::{Automaton, StartKind};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

/// The largest table, and the most that is used to build it.
const TABLE_BYTES_MAX: usize = 1024 * 1024;
const BUILD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest automaton that is built as it goes.
const LAZY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The patterns, by their order.
pub(super) enum PathSet {
    Table(Box<DFA<Vec<u32>>>),
    Lazy(RegexSet),
}

impl PathSet {
    /// Compiles.
    ///
    /// # Errors
    /// One that does not compile, or all together are too large.
    pub(super) fn new(patterns: &[String]) -> Result<Self, regex::Error> {
        match table(patterns) {
            Ok(table) => Ok(Self::Table(Box::new(table))),
            Err(_) => Ok(Self::Lazy(RegexSetBuilder::new(patterns).size_limit(LAZY_BYTES_MAX).build()?)),
        }
    }

    /// Calls `found` for each pattern that matches `path`, in no order.
    pub(super) fn matching(&self, path: &[u8], mut found: impl FnMut(usize)) {
        match self {
            Self::Lazy(set) => set.matches(path).iter().for_each(found),
            Self::Table(table) => {
                let begin = start::Config::new().anchored(Anchored::Yes);
                let Ok(mut state) = table.start_state(&begin) else { return };
                for byte in path {
                    state = table.next_state(state, *byte);
                    if table.is_dead_state(state) {
                        return;
                    }
                }
                let end = table.next_eoi_state(state);
                if table.is_match_state(end) {
                    (0..table.match_len(end))
                        .for_each(|index| found(table.match_pattern(end, index).as_usize()));
                }
            }
        }
    }
}

fn table(patterns: &[String]) -> Result<DFA<Vec<u32>>, Box<BuildError>> {
    let whole: Vec<String> =
        patterns.iter().map(|pattern| format!("(?s-u:.)*(?:{pattern})(?s-u:.)*")).collect();
    let config = Config::new()
        .start_kind(StartKind::Anchored)
        .match_kind(MatchKind::All)
        .dfa_size_limit(Some(TABLE_BYTES_MAX))
        .determinize_size_limit(Some(BUILD_BYTES_MAX));
    Builder::new()
        .configure(config)
        .syntax(syntax::Config::new().utf8(false))
        .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(BUILD_BYTES_MAX)))
        .build_many(&whole)
        .map_err(Box::new)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: &[&str] = &[
        "^(?s-u)/static/.*$",
        "^(?s-u).*\\.mp4$",
        "^(?s-u)/$",
        "^(?s-u)/a.*b.*$",
        "^/user/[0-9]+/avatar$",
        "\\.(css|js)$",
        "(?i)static",
        "x|^/a",
    ];

    fn owned(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    fn matching(set: &PathSet, path: &str) -> Vec<usize> {
        let mut all = Vec::new();
        set.matching(path.as_bytes(), |index| all.push(index));
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn the_table_finds_what_the_expressions_find(path in "/(static/|user/|[0-9]{1,3}/|avatar|a|b|x|S|\\.mp4|\\.css|\\.js){0,6}") {
            let set = PathSet::new(&owned(PATTERNS)).unwrap();
            prop_assert!(matches!(set, PathSet::Table(_)));
            let expected: Vec<usize> = RegexSet::new(PATTERNS).unwrap().matches(path.as_bytes()).iter().collect();
            prop_assert_eq!(matching(&set, &path), expected);
        }
    }

    #[test]
    fn what_has_no_table_or_a_large_one_is_searched_for_all_the_same() {
        for pattern in [r"\bfoo\b", "(a|b)*a(a|b){14}$"] {
            let set = PathSet::new(&owned(&[pattern, "^/x"])).unwrap();
            assert!(matches!(set, PathSet::Lazy(_)), "{pattern}");
            assert_eq!(matching(&set, "/x"), [1]);
        }
        assert!(PathSet::new(&owned(&["("])).is_err());
        assert_eq!(matching(&PathSet::new(&[]).unwrap(), "/x"), [0; 0]);
    }
}
