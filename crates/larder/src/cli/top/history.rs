//! The past of the figures that are drawn over time.
//!
//! In: what the admin address remembers of a window, then ticks. Out: as many points as are drawn, each the mean over its part of the window.
//! Where nothing is known there is none: a gap, never a zero. Bounded by [`POINTS`] for each of [`HELD`].

use std::collections::VecDeque;

use serde_json::Value;

use super::figures::{TickFigures, finite};

/// The figures that are drawn over time.
pub(super) const HELD: [&str; 5] =
    ["requests", "result.asked", "bytes_out", "latency:all:p50", "latency:all:p99"];
/// So many points a window has.
pub(super) const POINTS: usize = 120;

/// How far the pictures reach back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TopWindow {
    #[default]
    TenMinutes,
    ThreeHours,
    Day,
}

impl TopWindow {
    pub(super) const fn next(self) -> Self {
        match self {
            Self::TenMinutes => Self::ThreeHours,
            Self::ThreeHours => Self::Day,
            Self::Day => Self::TenMinutes,
        }
    }

    pub(super) const fn seconds(self) -> u32 {
        match self {
            Self::TenMinutes => 600,
            Self::ThreeHours => 10_800,
            Self::Day => 86_400,
        }
    }

    /// From one point to the next.
    pub(super) const fn step(self) -> u32 {
        self.seconds() / POINTS as u32
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::TenMinutes => "10 min",
            Self::ThreeHours => "3 h",
            Self::Day => "24 h",
        }
    }
}

/// The points of all figures in [`HELD`].
#[derive(Debug)]
pub(super) struct PointHistory {
    step: f64,
    /// The end of the last point.
    end: Option<f64>,
    series: [PointSeries; HELD.len()],
}

#[derive(Clone, Debug, Default)]
struct PointSeries {
    points: VecDeque<Option<f64>>,
    /// Of the point that has not ended yet.
    sum: f64,
    times: u32,
}

impl PointSeries {
    fn push(&mut self, point: Option<f64>) {
        if self.points.len() >= POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    fn end_point(&mut self) {
        let mean = (self.times > 0).then(|| self.sum / f64::from(self.times));
        (self.sum, self.times) = (0.0, 0);
        self.push(mean);
    }
}

impl PointHistory {
    /// Nothing is known yet.
    pub(super) fn new(window: TopWindow) -> Self {
        Self { step: f64::from(window.step()), end: None, series: Default::default() }
    }

    /// Takes what the admin address remembers, unless more than that is known here: it may have been started anew.
    pub(super) fn fill(&mut self, answer: &Value) {
        let Some(at) = answer.get("at").and_then(finite) else { return };
        let known = |points: &VecDeque<Option<f64>>| points.iter().flatten().count();
        let before: usize = self.series.iter().map(|one| known(&one.points)).sum();
        let mut filled: [PointSeries; HELD.len()] = Default::default();
        for (series, name) in filled.iter_mut().zip(HELD) {
            let points = answer.get("values").and_then(|all| all.get(name)).and_then(Value::as_array);
            for point in points.into_iter().flatten() {
                series.push(finite(point));
            }
        }
        if filled.iter().map(|one| known(&one.points)).sum::<usize>() >= before {
            (self.series, self.end) = (filled, Some(at));
        }
    }

    /// Adds a second.
    pub(super) fn tick(&mut self, tick: &TickFigures) {
        let end = *self.end.get_or_insert_with(|| (tick.at / self.step).floor() * self.step);
        let passed = ((tick.at - end) / self.step).floor();
        // What is remembered may end a moment after the last tick.
        let passed = if passed >= -2.0 { passed.max(0.0) } else { passed };
        // After a longer gap nothing of it is left; the clock may also have been set back.
        if !(0.0..=POINTS as f64).contains(&passed) {
            self.series = Default::default();
            self.end = Some(tick.at);
        } else {
            for _ in 0..passed as usize {
                self.series.iter_mut().for_each(PointSeries::end_point);
            }
            self.end = Some(end + passed * self.step);
        }
        for (series, name) in self.series.iter_mut().zip(HELD) {
            let value = tick.values.get(name).copied();
            // A rate that is not there was zero; a percentile is unknown then.
            if let Some(value) = value.or_else(|| (!name.starts_with("latency")).then_some(0.0)) {
                (series.sum, series.times) = (series.sum + value, series.times + 1);
            }
        }
    }

    /// The points of a figure, as many as `width`, oldest first: the last one is now.
    pub(super) fn points(&self, name: &str, width: usize) -> Vec<Option<f64>> {
        let of = HELD.iter().position(|held| *held == name).and_then(|at| self.series.get(at));
        let Some(points) = of.map(|series| &series.points) else { return vec![None; width] };
        let missing = POINTS.saturating_sub(points.len());
        let point = |at: usize| at.checked_sub(missing).and_then(|at| points.get(at).copied().flatten());
        let place = |column: usize| column * POINTS / width.max(1);
        let mean = |column: usize| {
            let (from, to) = (place(column), place(column + 1).max(place(column) + 1));
            let known: Vec<f64> = (from..to).filter_map(point).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        (0..width).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tick(at: f64, requests: f64) -> TickFigures {
        TickFigures { at, values: [("requests".to_owned(), requests)].into() }
    }

    fn known(of: &PointHistory, name: &str) -> Vec<f64> {
        of.points(name, POINTS).into_iter().flatten().collect()
    }

    #[test]
    fn ticks_make_points_and_what_was_missed_is_a_gap() {
        let mut history = PointHistory::new(TopWindow::TenMinutes);
        for second in 0..=5 {
            history.tick(&tick(1000.0 + f64::from(second), f64::from(second)));
        }
        assert_eq!(known(&history, "requests"), [2.0]);
        history.tick(&tick(1016.0, 9.0));
        let points = history.points("requests", POINTS);
        assert_eq!(points[POINTS - 3..], [Some(2.0), Some(5.0), None]);
        assert!(known(&history, "latency:all:p99").is_empty() && known(&history, "unknown").is_empty());
        // Hours later nothing of it is left, and a clock that was set back is no end.
        for at in [1e6, 5.0] {
            history.tick(&tick(at, 1.0));
            assert!(known(&history, "requests").is_empty());
        }
    }

    #[test]
    fn what_is_remembered_fills_the_window_and_ticks_go_on_from_there() {
        let mut history = PointHistory::new(TopWindow::TenMinutes);
        let all: Vec<_> = (0..200).collect();
        history.fill(&json!({"at": 1000.0, "step": 5, "values": {"requests": all, "bytes_out": [null, 1]}}));
        assert_eq!((known(&history, "requests").len(), known(&history, "bytes_out").len()), (POINTS, 1));
        assert_eq!(history.points("requests", 60)[59], Some(198.5));
        assert_eq!(history.points("requests", 240)[239], Some(199.0));
        for second in 1..=6 {
            history.tick(&tick(1000.0 + f64::from(second), 7.0));
        }
        assert_eq!(history.points("requests", POINTS)[POINTS - 1], Some(7.0));
        // A larder that was started anew knows less.
        history.fill(&json!({"at": 1001.0, "values": {"requests": [1]}}));
        assert_eq!(known(&history, "requests").len(), POINTS);
        for nothing in [json!({}), json!([]), json!({"at": "x"})] {
            history.fill(&nothing);
        }
        assert_eq!(history.points("requests", 0), []);
    }

    #[test]
    fn the_windows_come_around_and_their_steps_are_ones_that_are_remembered() {
        let mut window = TopWindow::default();
        for (word, step) in [("10 min", 5), ("3 h", 90), ("24 h", 720)] {
            assert_eq!((window.word(), window.step()), (word, step));
            window = window.next();
        }
        assert_eq!(window, TopWindow::TenMinutes);
    }
}
