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
        for Count { token, count } in &snapshot.not_stored {
            reading.total(&of_all("not_stored").word(token), *count);
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
            if !is_other && self.busiest.note(&key, requests) {
                tell_rule(&[RULE, &key.0, &key.1], &rule, before, reading);
            } else {
                tell_rule(&[RULE, OTHER, OTHER], &rule, before, reading);
            }
            tell_sums(&rule, before, reading);
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
fn each_more(
    now: &[Count],
    before: Option<&RuleSnapshot>,
    of: fn(&RuleSnapshot) -> &[Count],
    mut tell: impl FnMut(&'static str, u64),
) {
    let before = before.map(of).unwrap_or_default();
    for (place, Count { token, count }) in now.iter().enumerate() {
        let more = count.wrapping_sub(before.get(place).map_or(0, |count| count.count));
        if more > 0 {
            tell(token, more);
        }
    }
}

/// The figures that each rule has, under a scope.
fn tell_rule(scope: &[&str], rule: &RuleSnapshot, before: Option<&RuleSnapshot>, reading: &mut Reading<'_>) {
    let of = |measure| SeriesName { scope, measure, word: None };
    each_more(
        &rule.results,
        before,
        |r| &r.results,
        |word, n| reading.more(&of("result").word(word), n as f64),
    );
    each_more(
        &rule.forwarded,
        before,
        |r| &r.forwarded,
        |word, n| reading.more(&of("reason").word(word), n as f64),
    );
    each_more(
        &rule.not_stored,
        before,
        |r| &r.not_stored,
        |word, n| reading.more(&of("not_stored").word(word), n as f64),
    );
    each_more(
        &rule.before,
        before,
        |r| &r.before,
        |word, n| reading.more(&of("before").word(word), n as f64),
    );
    each_more(&rule.bytes, before, |r| &r.bytes, |word, n| reading.more(&of(bytes_measure(word)), n as f64));
    let (answers, seconds) = answered(rule, before);
    reading.more(&of("origin_answers"), answers);
    reading.more(&of("origin_seconds"), seconds);
}

/// What adds up over all rules.
fn tell_sums(rule: &RuleSnapshot, before: Option<&RuleSnapshot>, reading: &mut Reading<'_>) {
    let of = SeriesName::of_all;
    each_more(
        &rule.results,
        before,
        |r| &r.results,
        |word, n| reading.more(&of("result").word(word), n as f64),
    );
    each_more(
        &rule.forwarded,
        before,
        |r| &r.forwarded,
        |word, n| reading.more(&of("reason").word(word), n as f64),
    );
    each_more(
        &rule.before,
        before,
        |r| &r.before,
        |word, n| reading.more(&of("before").word(word), n as f64),
    );
    each_more(
        &rule.bytes,
        before,
        |r| &r.bytes,
        |word, n| {
            reading.more(&of(bytes_measure(word)), n as f64);
            reading.more(&of("bytes_out"), n as f64);
        },
    );
    let (answers, seconds) = answered(rule, before);
    reading.more(&of("origin_answers"), answers);
    reading.more(&of("origin_seconds"), seconds);
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
