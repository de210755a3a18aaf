//! What figures were over a span of time.
//!
//! In: names, and a [`Span`]: from when to when, and how far its points lie apart. Out: for each name a value for each point, or `None`
//! where nothing is known. The finest resolution that reaches back far enough is read; where points lie further apart, they are means.

use larder_http::time::{Now, WallTime};

use super::History;
use super::kept::{Figure, Form};
use super::resolution::Resolution;
use super::series::Series;
use crate::histogram::OCTAVES;

/// The most names of one answer.
pub const SERIES_MAX: usize = 512;
/// The most points of one.
const POINTS_MAX: u64 = 2000;
/// The most values of one answer.
const VALUES_MAX: u64 = 128_000;
/// A day: nothing is remembered for longer.
const SECONDS_MAX: u64 = 86_400;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotASpan {
    /// It ends before it begins.
    #[error("`to` lies further back than `from`")]
    Reversed,
    /// It lies further back than anything is remembered.
    #[error("`from` is at most {SECONDS_MAX} seconds ago")]
    TooLongAgo,
    /// No points, or less than one.
    #[error("`step` is 1 to {SECONDS_MAX} seconds")]
    Step,
    /// Too many points.
    #[error("at most {POINTS_MAX} points: `step` has to be longer, or the span shorter")]
    TooManyPoints,
    /// Too many points of all names together.
    #[error("at most {VALUES_MAX} values: fewer names, a longer `step`, or a shorter span")]
    TooManyValues,
    /// Too many names.
    #[error("at most 64 names, and {SERIES_MAX} with those that `*` stands for")]
    TooManyNames,
}

/// A span of time before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// It begins so many seconds ago; at most a day.
    pub from: u64,
    /// It ends so many seconds ago.
    pub to: u64,
    /// Seconds between two points; `None`: 1, 10 or 60, by how far it reaches back.
    pub step: Option<u64>,
}

impl Default for Span {
    fn default() -> Self {
        Self { from: 600, to: 0, step: None }
    }
}

/// Values of several names at the same points.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesAnswer {
    /// The end of the last second that is in it.
    pub newest: WallTime,
    /// The end of the first point.
    pub from: WallTime,
    /// The end of the last point.
    pub at: WallTime,
    /// Seconds between two points.
    pub step: u64,
    /// By name; oldest first.
    pub values: Vec<(Box<str>, Vec<Option<f64>>)>,
}

/// How durations lay, at each point.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyAnswer {
    /// The end of the first point.
    pub from: WallTime,
    /// The end of the last point.
    pub at: WallTime,
    /// Seconds between two points.
    pub step: u64,
    /// Per second, by power of two; oldest first.
    pub counts: Vec<Option<[f64; OCTAVES]>>,
}

/// The points of an answer.
struct Points {
    resolution: usize,
    step: u64,
    first: u64,
    last: u64,
    newest: (u64, Now),
}

impl Points {
    /// When a point ends, by the wall clock of now.
    fn end(&self, point: u64) -> WallTime {
        let (second, now) = self.newest;
        let end = point.saturating_mul(self.step) + self.step - 1;
        let ago = second.saturating_sub(end).saturating_mul(1000);
        let ahead = end.saturating_sub(second).saturating_mul(1000);
        WallTime(now.wall.0.saturating_sub(ago).saturating_add(ahead))
    }

    /// The slots of a point.
    fn slots(&self, point: u64, resolution: &Resolution) -> std::ops::Range<u64> {
        let per_point = self.step / resolution.step;
        let (begin, end) = (point * per_point, (point + 1) * per_point);
        // No more than the ring has: a point may be a day.
        begin.max(end.saturating_sub(resolution.slots() as u64))..end
    }
}

impl History {
    fn points(&self, span: Span) -> Result<Points, NotASpan> {
        let Span { from, to, step } = span;
        if from < to {
            return Err(NotASpan::Reversed);
        }
        if from > SECONDS_MAX {
            return Err(NotASpan::TooLongAgo);
        }
        if step.is_some_and(|step| step == 0 || step > SECONDS_MAX) {
            return Err(NotASpan::Step);
        }
        let newest =
            self.newest.unwrap_or((0, Now { wall: WallTime(0), monotonic: std::time::Duration::ZERO }));
        let divides = |resolution: &Resolution| step.is_none_or(|step| step.is_multiple_of(resolution.step));
        let reaches = |resolution: &Resolution| resolution.span() >= from;
        let fitting =
            self.kept.resolutions.iter().position(|resolution| divides(resolution) && reaches(resolution));
        let resolution =
            fitting.or_else(|| self.kept.resolutions.iter().rposition(divides)).unwrap_or_default();
        let step = step
            .unwrap_or_else(|| self.kept.resolutions.get(resolution).map_or(1, |resolution| resolution.step));
        let point = |ago: u64| newest.0.saturating_sub(ago) / step;
        let (first, last) = (point(from) + 1, point(to));
        if (from - to) / step > POINTS_MAX {
            return Err(NotASpan::TooManyPoints);
        }
        Ok(Points { resolution, step, first: first.min(last), last, newest })
    }

    /// Values of names over a span. A name that ends in `*` stands for all that begin so. One that is not there was always zero.
    pub(in crate::watch) fn series(&self, names: &[&str], span: Span) -> Result<SeriesAnswer, NotASpan> {
        let points = self.points(span)?;
        let mut found: Vec<&str> = Vec::new();
        for name in names {
            match name.strip_suffix('*') {
                Some(prefix) => found.extend(
                    self.kept
                        .figures
                        .iter()
                        .filter(|(name, figure)| figure.series.is_some() && name.starts_with(prefix))
                        .map(|(name, _)| &**name),
                ),
                None => found.push(name),
            }
            if found.len() > SERIES_MAX {
                return Err(NotASpan::TooManyNames);
            }
        }
        found.sort_unstable();
        found.dedup();
        if found.len() as u64 * (points.last - points.first + 1) > VALUES_MAX {
            return Err(NotASpan::TooManyValues);
        }
        let values = found.into_iter().map(|name| {
            let figure = self.kept.figures.get(name);
            let values = (points.first..=points.last).map(|point| self.value(figure, &points, point));
            (name.into(), values.collect())
        });
        let values = values.collect();
        Ok(SeriesAnswer {
            newest: points.newest.1.wall,
            from: points.end(points.first),
            at: points.end(points.last),
            step: points.step,
            values,
        })
    }

    fn value(&self, figure: Option<&Figure>, points: &Points, point: u64) -> Option<f64> {
        let resolution = self.kept.resolutions.get(points.resolution)?;
        let (mut sum, mut seconds) = (0.0, 0);
        for known in points.slots(point, resolution).filter_map(|slot| resolution.known(slot)) {
            let of = figure
                .and_then(|figure| figure.series.as_ref().map(|series| series.sum(points.resolution, known)));
            let none =
                if figure.is_some_and(|figure| figure.form == Form::Sparse) { 0 } else { known.1.into() };
            let (more, of) = of.unwrap_or((0.0, none));
            sum += more;
            seconds += of;
        }
        (seconds > 0).then(|| sum / f64::from(seconds))
    }

    /// How durations lay over a span.
    pub(in crate::watch) fn latency(&self, name: &str, span: Span) -> Result<LatencyAnswer, NotASpan> {
        let points = self.points(span)?;
        let heat = self.kept.durations.get(name).map(|durations| &durations.heat);
        let counts = (points.first..=points.last).map(|point| {
            let resolution = self.kept.resolutions.get(points.resolution)?;
            let (mut sums, mut seconds) = ([0.0; OCTAVES], 0);
            for (place, known) in points.slots(point, resolution).filter_map(|slot| resolution.known(slot)) {
                let counts = heat.and_then(|heat| heat.counts(points.resolution, place)).unwrap_or_default();
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += f64::from(count));
                seconds += u32::from(known);
            }
            (seconds > 0).then(|| sums.map(|sum| sum / f64::from(seconds)))
        });
        let counts = counts.collect();
        Ok(LatencyAnswer {
            from: points.end(points.first),
            at: points.end(points.last),
            step: points.step,
            counts,
        })
    }

    /// The resolution that reaches back so many seconds, its place, and its slots of that time, the last of which is not over.
    fn lately(&self, seconds: u64) -> Option<(usize, &Resolution, std::ops::Range<u64>)> {
        let (newest, _) = self.newest?;
        let all = &self.kept.resolutions;
        let place = all.iter().position(|resolution| resolution.span() >= seconds);
        let place = place.or(all.len().checked_sub(1))?;
        let resolution = all.get(place)?;
        let last = newest / resolution.step;
        let count = seconds.div_ceil(resolution.step).clamp(1, resolution.slots() as u64);
        Some((place, resolution, (last + 1).saturating_sub(count)..last + 1))
    }

    /// How many of the last so many seconds are known.
    pub(super) fn known(&self, seconds: u64) -> u64 {
        let Some((_, resolution, slots)) = self.lately(seconds) else { return 0 };
        slots.filter_map(|slot| resolution.known(slot)).map(|(_, known)| u64::from(known)).sum()
    }

    /// The means of all figures over the last so many seconds, without those that are zero.
    pub(in crate::watch) fn means(&self, seconds: u64) -> Vec<(&str, f64)> {
        let Some((place, resolution, slots)) = self.lately(seconds) else { return Vec::new() };
        let mean = |series: &Series| {
            let known = slots.clone().filter_map(|slot| resolution.known(slot));
            let sums = known.map(|known| series.sum(place, known));
            let (sum, seconds) = sums.fold((0.0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
            (sum != 0.0 && seconds > 0).then(|| sum / f64::from(seconds))
        };
        let figures = self.kept.figures.iter();
        let means = figures.filter_map(|(name, figure)| Some((&**name, mean(figure.series.as_ref()?)?)));
        let mut means: Vec<_> = means.collect();
        means.sort_unstable_by_key(|(name, _)| *name);
        means
    }
}
