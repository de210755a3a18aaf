//! Figures that several parts of the statistics have: counts by a word, and times.
//!
//! In: counters and histograms. Out: the same as they are printed.

use std::collections::BTreeMap;

use larder_observe::{Count, HistogramSnapshot};
use serde::Serialize;

/// How often, by token.
pub type Counts = BTreeMap<&'static str, u64>;

/// Durations in seconds; percentiles are at most a quarter too high.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencyStats {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// What nine of ten stay within.
    pub p90: Option<f64>,
    /// What 99 of 100 stay within.
    pub p99: Option<f64>,
    /// What 999 of 1000 stay within.
    pub p999: Option<f64>,
}

impl From<&HistogramSnapshot> for LatencyStats {
    fn from(histogram: &HistogramSnapshot) -> Self {
        let count = histogram.count();
        Self {
            count,
            mean: (count > 0).then(|| histogram.sum_seconds() / count as f64),
            p50: histogram.percentile(0.5),
            p90: histogram.percentile(0.9),
            p99: histogram.percentile(0.99),
            p999: histogram.percentile(0.999),
        }
    }
}

/// The sums by token.
pub(super) fn summed<'a>(counts: impl IntoIterator<Item = &'a Count>) -> Counts {
    let mut sums = Counts::new();
    for Count { token, count } in counts {
        *sums.entry(*token).or_default() += count;
    }
    sums
}

/// The same without what never occurred.
pub(super) fn occurred<'a>(counts: impl IntoIterator<Item = &'a Count>) -> Counts {
    summed(counts.into_iter().filter(|count| count.count > 0))
}

/// `None` of nothing.
pub(super) fn ratio((part, whole): (u64, u64)) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
