//! What requests have in common, from counters: the answers of a breakdown that do not need samples.
//!
//! In: a question. Out: rates of every request of the span, where what is asked for is counted: results, reasons, fates and reasons not to
//! store, of all or by site and rule. `None` where only samples can tell, such as by path or with a filter.
//! Requests that have no such word are the rest of their site and rule, so that rows add up to all requests.

use std::collections::BTreeMap;

use larder_http::time::WallTime;

use super::History;
use super::name::decoded;
use crate::watch::breakdown::{Breakdown, BreakdownQuestion, BreakdownRow, Dimension};

/// A rate below this is what rounding has left.
const NOTHING: f64 = 1e-4;

/// What is divided: by which words, and whether by site and rule.
struct Divided {
    /// The measure whose words are told; results where only sites or rules are.
    measure: &'static str,
    by_word: bool,
    by_scope: bool,
}

impl Divided {
    fn of(by: &[Dimension]) -> Option<Self> {
        let mut divided = Self { measure: "result", by_word: false, by_scope: false };
        for (place, dimension) in by.iter().enumerate() {
            let measure = match dimension {
                _ if by.iter().take(place).any(|other| other == dimension) => return None,
                Dimension::Site | Dimension::Rule => {
                    divided.by_scope = true;
                    continue;
                }
                Dimension::Result => "result",
                Dimension::Reason => "reason",
                Dimension::Before => "before",
                Dimension::NotStored => "not_stored",
                _ => return None,
            };
            if std::mem::replace(&mut divided.by_word, true) {
                return None;
            }
            divided.measure = measure;
        }
        Some(divided)
    }
}

/// A site with a rule, or all.
type Scope = Option<(String, String)>;

/// Rates of one scope.
#[derive(Debug, Default)]
struct Rates {
    all: f64,
    words: BTreeMap<String, f64>,
}

/// The scope, the measure and the word of a figure's name.
fn parts(name: &str) -> Option<(Scope, &str, &str)> {
    let (scope, figure) = match name.strip_prefix("rule:") {
        Some(rest) => {
            let (site, rest) = rest.split_once(':')?;
            let (rule, figure) = rest.split_once(':')?;
            (Some((decoded(site), decoded(rule))), figure)
        }
        None if name.contains(':') => return None,
        None => (None, name),
    };
    let (measure, word) = figure.split_once('.')?;
    Some((scope, measure, word))
}

impl History {
    /// The answer from counters; `None` where only samples can tell.
    pub(in crate::watch) fn breakdown(&self, question: &BreakdownQuestion) -> Option<Breakdown> {
        let divided = Divided::of(&question.by).filter(|_| question.filter.is_none())?;
        let (_, now) = self.newest.filter(|_| !self.kept.resolutions.is_empty())?;
        let seconds = question.from.as_secs().max(1);
        let mut scopes = BTreeMap::<Scope, Rates>::new();
        let mut total = 0.0;
        for (name, rate) in self.means(seconds) {
            if name == "requests" {
                total = rate;
            }
            let Some((scope, measure, word)) = parts(name) else { continue };
            if scope.is_some() != divided.by_scope {
                continue;
            }
            let rates = scopes.entry(scope).or_default();
            if measure == "result" {
                rates.all += rate;
            }
            if measure == divided.measure && divided.by_word {
                *rates.words.entry(word.to_owned()).or_default() += rate;
            }
        }
        let mut groups = BTreeMap::<Vec<Option<String>>, f64>::new();
        let mut rest = total;
        for (scope, Rates { all, words }) in scopes {
            let mut add = |word: Option<&str>, rate: f64| {
                let value = |dimension: &Dimension| match (dimension, &scope) {
                    (Dimension::Site, Some((site, _))) => Some(site.clone()),
                    (Dimension::Rule, Some((_, rule))) => Some(rule.clone()),
                    _ => word.map(str::to_owned),
                };
                *groups.entry(question.by.iter().map(value).collect()).or_default() += rate;
            };
            words.iter().for_each(|(word, rate)| add(Some(word), *rate));
            add(None, (all - words.values().sum::<f64>()).max(0.0));
            rest -= all;
        }
        *groups.entry(vec![None; question.by.len()]).or_default() += rest.max(0.0);
        Some(answer(groups, question, total, now.wall, self.known(seconds)))
    }
}

fn answer(
    groups: BTreeMap<Vec<Option<String>>, f64>,
    question: &BreakdownQuestion,
    total: f64,
    now: WallTime,
    seconds: u64,
) -> Breakdown {
    let mut rows: Vec<_> = groups
        .into_iter()
        .filter(|(_, rate)| *rate > NOTHING)
        .map(|(key, rate)| BreakdownRow { key, rate, bytes: None, origin_seconds: None })
        .collect();
    // The order of keys remains where rates are the same.
    rows.sort_by(|one, other| other.rate.total_cmp(&one.rate));
    let beyond = rows.split_off(question.limit.min(rows.len()));
    Breakdown {
        from: WallTime(now.0.saturating_sub(seconds * 1000)),
        to: now,
        samples: None,
        total,
        rows,
        // A sum of nothing is -0.
        other: beyond.iter().map(|row| row.rate).sum::<f64>() + 0.0,
    }
}
