//! Rules to matchers: one automaton for all paths of a site, then the conditions of the rules that it leaves.

use http::{HeaderName, Method};
use larder_http::fields::cookie;
use larder_http::message::RequestHead;
use regex::bytes::Regex;
use smallvec::SmallVec;

use super::paths::PathSet;
use crate::settings::{RuleMatch, ValueMatch};

/// A set of rules: the bit of a rule is its index. Those of most sites fit on the stack.
type Rules = SmallVec<[u64; 2]>;

pub(super) struct RuleTable {
    paths: PathSet,
    /// Whose pattern each is.
    owners: Vec<usize>,
    /// The rules that take every path.
    pathless: Rules,
    rules: Vec<Rule>,
}

struct Rule {
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
    /// Whether some rule asks for fields or cookies.
    pub(super) fn asks_for_fields(&self) -> bool {
        self.rules.iter().any(|rule| !rule.fields.is_empty() || !rule.cookies.is_empty())
    }

    pub(super) fn new<'a>(matches: impl Iterator<Item = &'a RuleMatch>) -> Result<Self, regex::Error> {
        let (mut patterns, mut owners) = (Vec::new(), Vec::new());
        let (mut rules, mut pathless) = (Vec::new(), Rules::new());
        for (index, rule) in matches.enumerate() {
            pathless.resize(index / 64 + 1, 0);
            if rule.paths.is_empty() {
                add(&mut pathless, index);
            }
            patterns.extend(rule.paths.iter().cloned());
            owners.resize(patterns.len(), index);
            rules.push(Rule {
                methods: rule.methods.clone(),
                fields: compile(&rule.fields)?,
                cookies: compile(&rule.cookies)?,
                query: compile(&rule.query)?,
            });
        }
        Ok(Self { paths: PathSet::new(&patterns)?, owners, pathless, rules })
    }

    /// The index of the first rule that a request matches.
    pub(super) fn first_match(&self, path: &str, head: &RequestHead) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let mut on_path = self.pathless.clone();
        if !self.owners.is_empty() {
            self.paths.matching(path.as_bytes(), |pattern| {
                self.owners.get(pattern).into_iter().for_each(|owner| add(&mut on_path, *owner));
            });
        }
        for (place, mut word) in on_path.into_iter().enumerate() {
            while word != 0 {
                let index = place * 64 + word.trailing_zeros() as usize;
                if self.rules.get(index).is_some_and(|rule| rule.is_met_by(head)) {
                    return Some(index);
                }
                word &= word - 1;
            }
        }
        None
    }
}

fn add(rules: &mut Rules, index: usize) {
    if let Some(word) = rules.get_mut(index / 64) {
        *word |= 1 << (index % 64);
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
