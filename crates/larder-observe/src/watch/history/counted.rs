//! The counters of all workers, told as figures.
//!
//! In: a [`Snapshot`], and the one of a second ago. Out: what has come since, by rule for the busiest, by store, by origin and for all. Sums
//! are made here from the same numbers, so that no two figures can disagree. Rules without series of their own share those of `other`.

use std::collections::HashMap;

use super::SeriesName;
use super::busiest::{Busiest, RuleKey};
use super::reading::Reading;
use crate::histogram::HistogramSnapshot;
use crate::label::{BytesFrom, CodeClass, Label};
use crate::metrics::Metrics;
use crate::names::OTHER;
use crate::process;
use crate::rules::RuleSnapshot;
use crate::snapshot::Snapshot;
use crate::sums::Count;

const RULE: &str = "rule";
const STORE: &str = "store";
const ORIGIN: &str = "origin";
const LATENCY: &str = "latency";

/// What was counted until the last reading.
#[derive(Debug, Default)]
pub(in crate::watch) struct CountedSince {
    rules: HashMap<RuleKey, RuleSnapshot>,
    latency: HashMap<&'static str, HistogramSnapshot>,
    origins: HashMap<std::sync::Arc<str>, HistogramSnapshot>,
    busiest: Busiest,
    /// Seconds on a core.
    cpu: f64,
}

impl CountedSince {
    pub(in crate::watch) fn read(&mut self, metrics: &Metrics, reading: &mut Reading<'_>) {
        let snapshot = metrics.snapshot();
        self.rules(&snapshot, reading);
        self.latency(&snapshot, reading);
        self.origins(&snapshot, reading);
        stores(&snapshot, reading);
        let of_all = SeriesName::of_all;
        for class in CodeClass::TOKENS {
            let routes = snapshot.routes.iter().flat_map(|route| &route.requests);
            let total = routes.filter(|(_, of, _)| of == class).map(|(_, _, count)| count).sum();
            let more = reading.total(&of_all("status").word(class), total);
            reading.more(&of_all("requests"), more as f64);
        }
        let (ok, failed) = snapshot.reloads;
        reading.total(&of_all("reloads").word("ok"), ok);
        reading.total(&of_all("reloads").word("error"), failed);
        reading.level(&of_all("tasks"), snapshot.tasks.iter().sum::<usize>() as f64);
        let cpu = process::cpu_seconds();
        reading.more(&of_all("cpu"), cpu - std::mem::replace(&mut self.cpu, cpu));
        if let Some(bytes) = process::resident_bytes() {
            reading.level(&of_all("memory"), bytes as f64);
        }
    }

    fn rules(&mut self, snapshot: &Snapshot, reading: &mut Reading<'_>) {
        for rule in snapshot.by_rule() {
            let key = (rule.site.clone(), rule.rule.clone());
            let before = self.rules.get(&key);
            let requests = rule.requests().wrapping_sub(before.map_or(0, RuleSnapshot::requests));
            // What no rule took shares the figures of the rules without a place, and never has one.
            let is_other = *key.0 == *OTHER && *key.1 == *OTHER;
            let has_place = !is_other && self.busiest.note(&key, requests);
            let (site, name) = if has_place { (&*key.0, &*key.1) } else { (OTHER, OTHER) };
            tell_rule(&[RULE, site, name], &rule, before, reading);
            self.rules.insert(key, rule);
        }
        for (site, rule) in self.busiest.second() {
            reading.forget(&[RULE, &site, &rule]);
        }
    }

    fn latency(&mut self, snapshot: &Snapshot, reading: &mut Reading<'_>) {
        let (mut all, mut all_before) = (HistogramSnapshot::default(), HistogramSnapshot::default());
        for (served, histogram) in &snapshot.latency {
            let before = self.latency.insert(served, histogram.clone()).unwrap_or_default();
            reading.durations(&[LATENCY, served], &histogram.since(&before));
            all.absorb(histogram);
            all_before.absorb(&before);
        }
        reading.durations(&[LATENCY, "all"], &all.since(&all_before));
    }

    fn origins(&mut self, snapshot: &Snapshot, reading: &mut Reading<'_>) {
        for origin in &snapshot.origins {
            let before =
                self.origins.insert(origin.name.clone(), origin.duration.clone()).unwrap_or_default();
            let scope = [ORIGIN, &*origin.name];
            let durations = origin.duration.since(&before);
            reading.more(&SeriesName::of(&scope, "answers"), durations.count() as f64);
            reading.more(&SeriesName::of(&scope, "requests"), durations.count() as f64);
            reading.more(&SeriesName::of(&scope, "seconds"), durations.sum_seconds());
            reading.durations(&scope, &durations);
        }
    }
}

fn stores(snapshot: &Snapshot, reading: &mut Reading<'_>) {
    for store in &snapshot.caches {
        let scope = [STORE, &*store.name];
        let of = |measure| SeriesName::of(&scope, measure);
        for Count { token, count } in &store.lookups {
            let measure = if *token == "hit" { of("hits") } else { of("reason").word(token) };
            let more = reading.total(&measure, *count);
            reading.more(&of("lookups"), more as f64);
        }
        reading.total(&of("stored"), store.stored);
    }
}

/// What has come of each word since.
fn each_more(now: &[Count], before: Option<&[Count]>, mut tell: impl FnMut(&'static str, u64)) {
    let before = before.unwrap_or_default();
    for (place, Count { token, count }) in now.iter().enumerate() {
        let more = count.wrapping_sub(before.get(place).map_or(0, |count| count.count));
        if more > 0 {
            tell(token, more);
        }
    }
}

/// Where the counts of a measure are in a rule.
type CountsOf = fn(&RuleSnapshot) -> &[Count];

/// The words that are counted of each rule: the measure, and where its counts are.
const WORDS: [(&str, CountsOf); 4] = [
    ("result", |rule| &rule.results),
    ("reason", |rule| &rule.forwarded),
    ("not_stored", |rule| &rule.not_stored),
    ("before", |rule| &rule.before),
];

/// What has come of a rule since, under its own scope and in the sums over all rules.
fn tell_rule(scope: &[&str], rule: &RuleSnapshot, before: Option<&RuleSnapshot>, reading: &mut Reading<'_>) {
    let mut tell = |measure: &str, word: Option<&str>, count: f64| {
        for scope in [scope, &[]] {
            reading.more(&SeriesName { scope, measure, word }, count);
        }
    };
    for (measure, of) in WORDS {
        each_more(of(rule), before.map(of), |word, count| tell(measure, Some(word), count as f64));
    }
    let mut bytes = 0;
    each_more(&rule.bytes, before.map(|before| &*before.bytes), |from, count| {
        tell(bytes_measure(from), None, count as f64);
        bytes += count;
    });
    let (answers, seconds) = answered(rule, before);
    tell("origin_answers", None, answers);
    tell("origin_seconds", None, seconds);
    reading.more(&SeriesName::of_all("bytes_out"), bytes as f64);
    // The sum over all of them is that of the origins, which know tunnels and checks, too.
    let received = rule.received.wrapping_sub(before.map_or(0, |before| before.received));
    reading.more(&SeriesName::of(scope, "bytes_in"), received as f64);
}

fn answered(rule: &RuleSnapshot, before: Option<&RuleSnapshot>) -> (f64, f64) {
    let answers = rule.origin_answers.wrapping_sub(before.map_or(0, |before| before.origin_answers));
    let time = rule.origin_time.saturating_sub(before.map(|before| before.origin_time).unwrap_or_default());
    (answers as f64, time.as_secs_f64())
}

fn bytes_measure(from: &str) -> &'static str {
    const MEASURES: [&str; BytesFrom::TOKENS.len()] = ["bytes_store", "bytes_origin", "bytes_own"];
    let place = BytesFrom::TOKENS.iter().position(|token| *token == from);
    place.and_then(|place| MEASURES.get(place)).copied().unwrap_or("bytes_own")
}
