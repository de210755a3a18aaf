//! Rules to matchers: one automaton for all paths of a site, then the cheap conditions of the rules it leaves.

use http::{HeaderName, Method};
use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use regex::bytes::{Regex, RegexSet, RegexSetBuilder};

use crate::settings::{RuleMatch, ValueMatch};

/// The largest automaton that a site's patterns may compile to.
const AUTOMATON_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) struct RuleTable {
    paths: RegexSet,
    rules: Vec<Rule>,
}

struct Rule {
    /// Which patterns of the set are this rule's; empty where it takes every path.
    patterns: std::ops::Range<usize>,
    methods: Vec<Method>,
    fields: Vec<(HeaderName, Wanted)>,
    cookies: Vec<(String, Wanted)>,
    query: Vec<(String, Wanted)>,
}

enum Wanted {
    Present(bool),
    Pattern(Regex),
}

impl Wanted {
    fn new(value: &ValueMatch) -> Result<Self, regex::Error> {
        Ok(match value {
            ValueMatch::Present(present) => Self::Present(*present),
            ValueMatch::Pattern(pattern) => Self::Pattern(Regex::new(pattern)?),
        })
    }

    fn is_met_by<'a>(&self, mut values: impl Iterator<Item = &'a [u8]>) -> bool {
        match self {
            Self::Present(present) => values.next().is_some() == *present,
            Self::Pattern(pattern) => values.any(|value| pattern.is_match(value)),
        }
    }
}

fn compile<N: Clone>(wanted: &[(N, ValueMatch)]) -> Result<Vec<(N, Wanted)>, regex::Error> {
    wanted.iter().map(|(name, value)| Ok((name.clone(), Wanted::new(value)?))).collect()
}

impl RuleTable {
    pub(super) fn new<'a>(matches: impl Iterator<Item = &'a RuleMatch>) -> Result<Self, regex::Error> {
        let mut patterns = Vec::new();
        let mut rules = Vec::new();
        for rule in matches {
            let first = patterns.len();
            patterns.extend(rule.paths.iter().cloned());
            rules.push(Rule {
                patterns: first..patterns.len(),
                methods: rule.methods.clone(),
                fields: compile(&rule.fields)?,
                cookies: compile(&rule.cookies)?,
                query: compile(&rule.query)?,
            });
        }
        let paths = RegexSetBuilder::new(patterns).size_limit(AUTOMATON_BYTES_MAX).build()?;
        Ok(Self { paths, rules })
    }

    /// The index of the first rule that a request matches.
    pub(super) fn first_match(&self, path: &str, head: &RequestHead) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let matched = self.paths.matches(path.as_bytes());
        self.rules.iter().position(|rule| {
            let on_path =
                rule.patterns.is_empty() || rule.patterns.clone().any(|index| matched.matched(index));
            on_path && rule.is_met_by(head)
        })
    }
}

impl Rule {
    fn is_met_by(&self, head: &RequestHead) -> bool {
        let query = head.target.query().unwrap_or_default();
        (self.methods.is_empty() || self.methods.contains(&head.method))
            && self.fields.iter().all(|(name, wanted)| {
                wanted.is_met_by(head.fields.get_all(name).iter().map(|value| value.as_bytes()))
            })
            && self.cookies.iter().all(|(name, wanted)| {
                let of_name = cookie::pairs(&head.fields).filter(|(other, _)| *other == name.as_bytes());
                wanted.is_met_by(of_name.map(|(_, value)| value))
            })
            && self.query.iter().all(|(name, wanted)| {
                let of_name = query.split('&').filter_map(|pair| {
                    let (other, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (other == name && !pair.is_empty()).then_some(value.as_bytes())
                });
                wanted.is_met_by(of_name)
            })
    }
}
