//! Sums over all workers.
//!
//! In: the cells and histograms of each worker. Out: one figure for each word, or one histogram.

use crate::cells::SumInto;
use crate::histogram::{Histogram, HistogramSnapshot};

/// How often something with a fixed name happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The label's value.
    pub token: &'static str,
    /// How often.
    pub count: u64,
}

impl Count {
    /// It has not happened.
    pub(crate) fn none(token: &'static str) -> Self {
        Self { token, count: 0 }
    }
}

/// Adds counts of the same words, in the same order.
pub(crate) fn add_counts(sums: &mut [Count], counts: &[Count]) {
    for (sum, Count { token, count }) in sums.iter_mut().zip(counts) {
        debug_assert_eq!(sum.token, *token);
        sum.count += count;
    }
}

pub(crate) fn sum<'a, C: SumInto + 'a>(cells: impl Iterator<Item = &'a C>, len: usize) -> Vec<u64> {
    let mut sums = vec![0; len];
    cells.for_each(|cells| cells.sum_into(&mut sums));
    sums
}

pub(crate) fn sum_histograms<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> HistogramSnapshot {
    let mut sum = HistogramSnapshot::default();
    histograms.for_each(|histogram| sum.add(histogram));
    sum
}

pub(crate) fn counts(tokens: impl Iterator<Item = &'static str>, sums: Vec<u64>) -> Vec<Count> {
    tokens.zip(sums).map(|(token, count)| Count { token, count }).collect()
}
