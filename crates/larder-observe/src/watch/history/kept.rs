//! All figures: their values in this second, and as far as there is room their past.
//!
//! In: values under names, and seconds to write them down for. Out: the figure of a name, and the sum of what is taken. A figure is made when it
//! is first told, its series when it is first not zero. The bound holds for series; a name beyond [`FIGURES_MAX`] is not kept at all,
//! and counts among those without room.

use std::collections::HashMap;
use std::time::Duration;

use larder_http::time::WallTime;

use super::SeriesName;
use super::declared::is_declared;
use super::heat::HeatMap;
use super::resolution::{Resolution, Slot};
use super::series::Series;
use crate::histogram::OCTAVES;

/// The most figures that are told apart: beyond what a configuration and fixed words make. Addresses from DNS come and go, and are forgotten.
const FIGURES_MAX: usize = 16_384;
/// A series whose figure has been zero for so many seconds gives its place where there is no room.
const IDLE: u64 = 600;
/// What a figure takes without a series, beside its name.
pub(super) const FIGURE_BYTES: usize = size_of::<Figure>() + 2 * size_of::<usize>();

/// How a figure becomes a value of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Something that is counted: its value is a rate per second. Where nothing was counted, it is 0.
    Rate,
    /// A level.
    Level,
    /// A level that is not there in each second.
    Sparse,
}

/// One figure, and its past.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) form: Form,
    /// Of a counter: what it was at the last reading.
    pub(super) total: u64,
    /// Of a mean: what its sum was.
    pub(super) sum: f64,
    /// In this second.
    pub(super) value: Option<f32>,
    pub(super) series: Option<Series>,
    /// There was no room for a series.
    is_folded: bool,
    /// The last second in which it was told, zero or not.
    told: u64,
    /// The last second in which it was not zero.
    moved: u64,
}

impl Figure {
    fn new(form: Form) -> Self {
        Self { form, total: 0, sum: 0.0, value: None, series: None, is_folded: false, told: 0, moved: 0 }
    }

    /// What is written down for this second.
    fn kept(&self) -> Option<f32> {
        match self.form {
            Form::Sparse => self.value,
            Form::Rate | Form::Level => Some(self.value.unwrap_or_default()),
        }
    }
}

/// Durations over time.
#[derive(Debug)]
pub(super) struct Durations {
    /// Of this second, per second.
    counts: Option<[f32; OCTAVES]>,
    /// The last second in which there were any.
    moved: u64,
    pub(super) heat: HeatMap,
}

/// How much is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::watch) struct SeriesMemory {
    /// Series that are kept.
    pub series: usize,
    /// Series that found no room.
    pub folded: usize,
    /// What all of them take.
    pub bytes: usize,
    /// What they may take.
    pub bytes_max: usize,
}

/// One second: what each figure was in it. Figures that are zero are left out.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::watch) struct Second {
    /// Its end.
    pub(in crate::watch) at: WallTime,
    /// By name, in the order of names.
    pub(in crate::watch) values: Vec<(Box<str>, f32)>,
}

/// Figures and durations, by name.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) resolutions: Vec<Resolution>,
    pub(super) figures: HashMap<Box<str>, Figure>,
    pub(super) durations: HashMap<Box<str>, Durations>,
    pub(super) bytes: usize,
    pub(super) bytes_max: usize,
    pub(super) folded: usize,
    /// How often a figure beyond the most was told: in this second so far, and in the last one.
    surplus: [usize; 2],
    scratch: String,
    second: u64,
}

impl Kept {
    pub(super) fn new(history: Duration, bytes_max: usize) -> Self {
        Self {
            resolutions: Resolution::all(history.as_secs()),
            figures: HashMap::new(),
            durations: HashMap::new(),
            bytes: 0,
            bytes_max,
            folded: 0,
            surplus: [0; 2],
            scratch: String::new(),
            second: 0,
        }
    }

    /// From now on so much is kept; series that are already go.
    pub(super) fn limit(&mut self, history: Duration, bytes_max: usize) {
        let Self { figures, .. } = std::mem::replace(self, Self::new(history, bytes_max));
        for (name, figure) in figures {
            self.bytes += FIGURE_BYTES + name.len();
            self.figures.insert(name, Figure { series: None, is_folded: false, ..figure });
        }
    }

    /// A second begins in which nothing is told yet.
    pub(super) fn begin(&mut self, second: u64) {
        self.second = second;
        self.surplus = [0, self.surplus[0]];
        self.figures.values_mut().for_each(|figure| figure.value = None);
        self.durations.values_mut().for_each(|durations| durations.counts = None);
    }

    /// Writes the values of this moment down for a second.
    pub(super) fn write(&mut self, second: u64) {
        let slots: Vec<Slot> =
            self.resolutions.iter_mut().map(|resolution| resolution.note(second)).collect();
        let mut wants_room = false;
        for figure in self.figures.values_mut() {
            let kept = figure.kept();
            if kept.is_some_and(|value| value != 0.0) {
                figure.moved = second;
                wants_room |= figure.series.is_none();
            }
            if let Some(series) = &mut figure.series {
                series.add(&slots, kept);
            }
        }
        for durations in self.durations.values_mut() {
            durations.heat.add(&slots, &durations.counts.unwrap_or_default());
        }
        if wants_room && !self.resolutions.is_empty() {
            self.make_series(second, &slots);
        }
    }

    /// Makes a series for each figure that is not zero for the first time, as far as there is room.
    fn make_series(&mut self, second: u64, slots: &[Slot]) {
        let is_new = |figure: &Figure| {
            figure.series.is_none()
                && figure.moved == second
                && figure.kept().is_some_and(|value| value != 0.0)
        };
        let names: Vec<Box<str>> =
            self.figures.iter().filter(|(_, figure)| is_new(figure)).map(|(name, _)| name.clone()).collect();
        let mut idle = None;
        for name in names {
            let Some(form) = self.figures.get(&name).map(|figure| figure.form) else { continue };
            let more = Series::bytes(&self.resolutions, form == Form::Sparse);
            let has_room = self.bytes + more <= self.bytes_max || self.give_room(&mut idle, second, more);
            let Some(figure) = self.figures.get_mut(&name) else { continue };
            let was_folded = std::mem::replace(&mut figure.is_folded, !has_room);
            self.folded = self.folded + usize::from(!has_room) - usize::from(was_folded);
            if has_room {
                self.bytes += more;
                let mut series = Series::new(&self.resolutions, form == Form::Sparse);
                series.add(slots, figure.kept());
                figure.series = Some(series);
            }
        }
    }

    /// Lets go of series whose figures have been zero for long, as many as it takes, those of the longest time first. False where that is not enough.
    /// `idle` is what is left of them in this second: looked for once, since every figure without room asks.
    fn give_room(&mut self, idle: &mut Option<Vec<Box<str>>>, second: u64, more: usize) -> bool {
        let idle = idle.get_or_insert_with(|| self.idle(second));
        while self.bytes + more > self.bytes_max {
            let Some(figure) = idle.pop().and_then(|name| self.figures.get_mut(&name)) else { return false };
            figure.series = None;
            self.bytes -= Series::bytes(&self.resolutions, figure.form == Form::Sparse);
        }
        true
    }

    /// Figures with series that have been zero for long, that of the longest time last.
    fn idle(&self, second: u64) -> Vec<Box<str>> {
        let is_idle = |figure: &Figure| figure.series.is_some() && second.saturating_sub(figure.moved) > IDLE;
        let mut idle: Vec<_> = self.figures.iter().filter(|(_, figure)| is_idle(figure)).collect();
        idle.sort_unstable_by_key(|(_, figure)| std::cmp::Reverse(figure.moved));
        idle.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Forgets figures that nothing has told for as long as anything is remembered: of stores, origins and addresses that are gone.
    pub(super) fn forget_gone(&mut self, second: u64) {
        let span = self.resolutions.iter().map(Resolution::span).max().unwrap_or_default().max(IDLE);
        self.forget_where(|_, figure| second.saturating_sub(figure.told.max(figure.moved)) > span);
        let before = self.durations.len();
        self.durations.retain(|_, durations| second.saturating_sub(durations.moved) <= span);
        self.bytes -= (before - self.durations.len()) * HeatMap::bytes(&self.resolutions);
    }

    fn forget_where(&mut self, goes: impl Fn(&str, &Figure) -> bool) {
        let Self { figures, bytes, resolutions, folded, .. } = self;
        figures.retain(|name, figure| {
            let goes = goes(name, figure);
            if goes {
                *bytes -= FIGURE_BYTES + name.len();
                if figure.series.is_some() {
                    *bytes -= Series::bytes(resolutions, figure.form == Form::Sparse);
                }
                *folded -= usize::from(figure.is_folded);
            }
            !goes
        });
    }

    /// Whether there is a figure of this name.
    pub(super) fn has(&mut self, name: &SeriesName<'_>) -> bool {
        self.scratch.clear();
        name.write(&mut self.scratch);
        self.figures.contains_key(self.scratch.as_str())
    }

    pub(super) fn second(&self, at: WallTime) -> Second {
        let values = self.figures.iter().filter_map(|(name, figure)| {
            let value = figure.value.filter(|value| *value != 0.0)?;
            Some((name.clone(), value))
        });
        let mut values: Vec<_> = values.collect();
        values.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Second { at, values }
    }

    /// The figure of a name; `None` where there are too many.
    pub(super) fn figure(&mut self, name: &SeriesName<'_>, form: Form) -> Option<&mut Figure> {
        debug_assert!(is_declared(name), "{name:?}");
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        name.write(&mut scratch);
        if !self.figures.contains_key(scratch.as_str()) && self.figures.len() < FIGURES_MAX {
            self.bytes += FIGURE_BYTES + scratch.len();
            self.figures.insert(scratch.as_str().into(), Figure::new(form));
        }
        let second = self.second;
        let found = self.figures.get_mut(scratch.as_str());
        self.scratch = scratch;
        if found.is_none() {
            self.surplus[0] += 1;
        }
        let figure = found?;
        figure.told = second;
        Some(figure)
    }

    /// Durations of this second, where there is room for their past.
    pub(super) fn durations(&mut self, name: &str, counts: [f32; OCTAVES]) {
        if !self.durations.contains_key(name) {
            let more = HeatMap::bytes(&self.resolutions);
            let is_none = counts.iter().all(|count| *count == 0.0);
            if is_none || self.resolutions.is_empty() || self.bytes + more > self.bytes_max {
                return;
            }
            self.bytes += more;
            let heat = HeatMap::new(&self.resolutions);
            self.durations.insert(name.into(), Durations { counts: None, moved: 0, heat });
        }
        if let Some(durations) = self.durations.get_mut(name) {
            durations.counts = Some(counts);
            if counts.iter().any(|count| *count > 0.0) {
                durations.moved = self.second;
            }
        }
    }

    /// Forgets what figures of one thing were: another one takes their place.
    pub(super) fn forget(&mut self, scope: &[&str]) {
        let mut prefix = String::new();
        SeriesName::of(scope, "").write(&mut prefix);
        self.forget_where(|name, _| name.starts_with(&prefix));
    }

    pub(super) fn remembered(&self) -> SeriesMemory {
        let series = self.figures.values().filter(|figure| figure.series.is_some()).count();
        let Self { bytes, bytes_max, .. } = *self;
        let folded = self.folded + self.surplus[1];
        SeriesMemory { series: series + self.durations.len(), folded, bytes, bytes_max }
    }
}
