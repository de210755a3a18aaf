//! One reading of all figures: what the parts of larder call to tell theirs.
//!
//! In: counters and levels, under a [`SeriesName`]. Out: the value of each in this second. A counter that is told whole is compared with what
//! it was at the last reading; one that has begun anew counts from zero.

use super::kept::{Form, Kept};
use super::name::{SeriesName, scope_name};
use crate::histogram::HistogramSnapshot;

/// What has figures beside those of [`Metrics`](crate::Metrics): stores, origins, listeners.
pub trait FigureSource: Send + Sync {
    /// Tells all of them. Called once a second, on a thread of its own.
    fn read(&self, reading: &mut Reading<'_>);
}

/// Where figures of this second are told.
#[derive(Debug)]
pub struct Reading<'a> {
    kept: &'a mut Kept,
    elapsed: f64,
    /// Only from now on is counted.
    is_first: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn new(kept: &'a mut Kept, elapsed: f64, is_first: bool) -> Self {
        Self { kept, elapsed, is_first }
    }

    /// So many more since the last reading. What is told under one name adds up.
    pub fn more(&mut self, name: &SeriesName<'_>, count: f64) {
        if count == 0.0 || self.is_first {
            return;
        }
        let rate = (count / self.elapsed) as f32;
        if let Some(figure) = self.kept.figure(name, Form::Rate) {
            figure.value = Some(figure.value.unwrap_or_default() + rate);
        }
    }

    /// A counter's value. Returns how many more they are since the last reading.
    pub fn total(&mut self, name: &SeriesName<'_>, total: u64) -> u64 {
        let is_first = self.is_first;
        let elapsed = self.elapsed;
        if total == 0 && !self.kept.has(name) {
            return 0;
        }
        let Some(figure) = self.kept.figure(name, Form::Rate) else { return 0 };
        let before = std::mem::replace(&mut figure.total, total);
        if is_first {
            return 0;
        }
        let more = total.checked_sub(before).unwrap_or(total);
        if more > 0 {
            let rate = (more as f64 / elapsed) as f32;
            figure.value = Some(figure.value.unwrap_or_default() + rate);
        }
        more
    }

    /// A level at this moment.
    pub fn level(&mut self, name: &SeriesName<'_>, value: f64) {
        self.set(name, Form::Level, value);
    }

    /// A level that is not there in each second. In a second in which it is not told, it is unknown.
    pub fn sparse(&mut self, name: &SeriesName<'_>, value: Option<f64>) {
        if let Some(value) = value {
            self.set(name, Form::Sparse, value);
        }
    }

    /// The mean of what came since the last reading: what it is a sum of, and how many more there are. Unknown where there is none.
    pub fn mean(&mut self, name: &SeriesName<'_>, sum: f64, more: u64) {
        let Some(figure) = self.kept.figure(name, Form::Sparse) else { return };
        let before = std::mem::replace(&mut figure.sum, sum);
        if more > 0 {
            // A sum that has begun anew is all of it new.
            let grown = if sum < before { sum } else { sum - before };
            self.set(name, Form::Sparse, grown / more as f64);
        }
    }

    fn set(&mut self, name: &SeriesName<'_>, form: Form, value: f64) {
        if let Some(figure) = self.kept.figure(name, form) {
            figure.value = Some(value as f32).filter(|value| value.is_finite());
        }
    }

    /// Durations since the last reading: their median and 99th percentile as levels, and how they lie.
    pub(super) fn durations(&mut self, scope: &[&str], durations: &HistogramSnapshot) {
        if self.is_first {
            return;
        }
        self.sparse(&SeriesName::of(scope, "p50"), durations.percentile(0.5));
        self.sparse(&SeriesName::of(scope, "p99"), durations.percentile(0.99));
        let counts = durations.octaves().map(|count| (count as f64 / self.elapsed) as f32);
        self.kept.durations(&scope_name(scope), counts);
    }

    /// Forgets figures of one thing.
    pub(super) fn forget(&mut self, scope: &[&str]) {
        self.kept.forget(scope);
    }
}
