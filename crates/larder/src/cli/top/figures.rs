//! Figures as the stream of the live view tells them each second, and their means over the last seconds.
//!
//! In: the values of ticks, and of answers in the same form. Out: a value by name, and all values of a scope by the names in it. Rates
//! are means, so that they can be read; what is a state at a moment is the last one. Bounded: so many ticks, each with so many names.
//! Deliberately absent: what a figure was before that, which the history of the admin address knows.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// Figures by name.
pub(super) type FigureValues = BTreeMap<String, f64>;

/// Rates are means over so many seconds.
pub(super) const MEAN_SECONDS: usize = 10;
/// More names than any larder keeps.
const NAMES_MAX: usize = 16 * 1024;
/// States, of which the last value counts, and what ends the names of others.
const STATES: [&str; 3] = ["connections", "memory", "tasks"];
const STATE_ENDS: [&str; 4] = [":bytes", ":objects", ":in_flight", ":queued"];
/// What ends the names of what is known only where something came.
const PERCENTILES: [&str; 2] = [":p50", ":p99"];

/// The figures of a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TickFigures {
    /// Its end, in seconds since 1970.
    pub(super) at: f64,
    pub(super) values: FigureValues,
}

/// The last seconds, and what they make together.
#[derive(Debug, Default)]
pub(super) struct RecentFigures {
    ticks: VecDeque<TickFigures>,
    means: FigureValues,
}

impl TickFigures {
    /// Reads a tick; `None` where it is none.
    pub(super) fn read(data: &str) -> Option<Self> {
        let tick: Value = serde_json::from_str(data).ok()?;
        Some(Self { at: finite(tick.get("at")?)?, values: numbers(tick.get("values")?) })
    }
}

/// The members that are numbers.
pub(super) fn numbers(of: &Value) -> FigureValues {
    let all = of.as_object().into_iter().flatten();
    all.filter_map(|(name, value)| Some((name.clone(), finite(value)?))).take(NAMES_MAX).collect()
}

/// A number that can be drawn.
pub(super) fn finite(of: &Value) -> Option<f64> {
    of.as_f64().filter(|number| number.is_finite())
}

impl RecentFigures {
    /// Takes a tick. One that is known already, or older than what is known, changes nothing: false.
    pub(super) fn push(&mut self, tick: TickFigures) -> bool {
        if self.at().is_some_and(|last| tick.at <= last) {
            return false;
        }
        // Seconds before a gap are no part of the last seconds.
        while self.ticks.front().is_some_and(|first| {
            self.ticks.len() >= MEAN_SECONDS || first.at < tick.at - MEAN_SECONDS as f64 - 1.0
        }) {
            self.ticks.pop_front();
        }
        self.ticks.push_back(tick);
        self.means = means(&self.ticks);
        true
    }

    /// Forgets everything: what comes is another larder's, or this one's with another clock.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// When the last second ended.
    pub(super) fn at(&self) -> Option<f64> {
        Some(self.ticks.back()?.at)
    }

    /// All values.
    pub(super) const fn values(&self) -> &FigureValues {
        &self.means
    }

    /// A value; nothing was zero.
    pub(super) fn value(&self, name: &str) -> f64 {
        self.means.get(name).copied().unwrap_or_default()
    }

    /// A value that may be unknown.
    pub(super) fn known(&self, name: &str) -> Option<f64> {
        self.means.get(name).copied()
    }
}

fn means(ticks: &VecDeque<TickFigures>) -> FigureValues {
    let mut sums: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for (name, value) in ticks.iter().flat_map(|tick| &tick.values) {
        let (sum, times) = sums.entry(name).or_default();
        (*sum, *times) = (*sum + value, *times + 1);
    }
    let last = ticks.back();
    let mean = |(name, (sum, times)): (&str, (f64, u32))| {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        let value = if ends(&PERCENTILES) {
            sum / f64::from(times)
        } else if STATES.contains(&name) || ends(&STATE_ENDS) {
            last?.values.get(name).copied()?
        } else {
            sum / ticks.len() as f64
        };
        Some((name.to_owned(), value))
    };
    sums.into_iter().filter_map(mean).collect()
}

/// The values of a scope: by the names in it, each by its measure.
pub(super) type ScopedFigures<'a> = BTreeMap<Vec<String>, BTreeMap<&'a str, f64>>;

/// The values of `scope`, which has so many names before the measure.
pub(super) fn scoped<'a>(of: &'a FigureValues, scope: &str, names: usize) -> ScopedFigures<'a> {
    let mut all = ScopedFigures::new();
    let begin = format!("{scope}:");
    let of_scope = of.range(begin.clone()..).take_while(|(name, _)| name.starts_with(&begin));
    for (name, value) in of_scope {
        let mut parts = name.get(begin.len()..).unwrap_or_default().splitn(names + 1, ':');
        let named: Vec<String> = parts.by_ref().take(names).map(decoded).collect();
        if let Some(measure) = parts.next() {
            all.entry(named).or_default().insert(measure, *value);
        }
    }
    all
}

/// The measures with a word behind a point: `reason.` gives the words of `reason.uri-miss`.
pub(super) fn worded<'a>(
    of: impl Iterator<Item = (&'a str, f64)>,
    measure: &str,
) -> impl Iterator<Item = (&'a str, f64)> {
    of.filter_map(move |(name, value)| Some((name.strip_prefix(measure)?.strip_prefix('.')?, value)))
}

/// A name as the configuration has it.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(at: f64, values: &[(&str, f64)]) -> TickFigures {
        TickFigures { at, values: values.iter().map(|&(name, value)| (name.to_owned(), value)).collect() }
    }

    #[test]
    fn rates_are_means_states_are_the_last_and_percentiles_those_that_are_known() {
        let mut recent = RecentFigures::default();
        let first = [("requests", 10.0), ("result.memory", 4.0), ("memory", 5.0), ("latency:all:p50", 0.2)];
        assert!(recent.push(tick(1.0, &first)));
        assert!(recent.push(tick(2.0, &[("memory", 7.0)])));
        assert_eq!(recent.value("result.memory"), 2.0, "a rate, not a state");
        assert!(!recent.push(tick(2.0, &[("requests", 1e9)])), "the same second again");
        assert_eq!((recent.value("requests"), recent.value("memory")), (5.0, 7.0));
        assert_eq!((recent.known("latency:all:p50"), recent.known("latency:hit:p50")), (Some(0.2), None));
        for second in 3..20 {
            recent.push(tick(f64::from(second), &[("requests", 3.0)]));
            assert!(recent.ticks.len() <= MEAN_SECONDS);
        }
        assert_eq!((recent.value("requests"), recent.known("memory")), (3.0, None));
        // After a gap the seconds before it are forgotten.
        recent.push(tick(100.0, &[("requests", 1.0)]));
        assert_eq!((recent.value("requests"), recent.ticks.len()), (1.0, 1));
    }

    #[test]
    fn a_tick_is_read_and_what_is_none_is_left() {
        let read =
            TickFigures::read(r#"{"at":7.5,"values":{"requests":3,"x":null,"y":"z"},"new":1}"#).unwrap();
        assert_eq!(read, tick(7.5, &[("requests", 3.0)]));
        for none in ["", "{}", "[]", r#"{"at":"x","values":{}}"#, r#"{"at":1}"#] {
            assert_eq!(TickFigures::read(none), None, "{none}");
        }
        assert!(TickFigures::read(r#"{"at":1,"values":[]}"#).unwrap().values.is_empty());
    }

    #[test]
    fn names_of_a_scope_are_those_of_the_configuration() {
        let values = tick(
            1.0,
            &[
                ("rule:shop:/a%3Ab%20%E2%82%AC:result.memory", 1.0),
                ("rule:shop:/a%3Ab%20%E2%82%AC:bytes_store", 2.0),
                ("rule:shop:%zz%4:result.asked", 3.0),
                ("rule:shop", 4.0),
                ("rules:x:y:z", 5.0),
            ],
        )
        .values;
        let all = scoped(&values, "rule", 2);
        let names: Vec<_> = all.keys().map(|names| names.join(" ")).collect();
        assert_eq!(names, ["shop %zz%4", "shop /a:b \u{20ac}"]);
        let of = &all[&vec!["shop".to_owned(), "/a:b \u{20ac}".to_owned()]];
        let of = of.iter().map(|(name, value)| (*name, *value));
        assert_eq!(worded(of, "result").collect::<Vec<_>>(), [("memory", 1.0)]);
    }
}
