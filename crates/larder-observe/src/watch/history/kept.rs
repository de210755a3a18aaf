//! All figures: their values in this second, and as far as there is room their past.
//!
//! In: values under names, and seconds to write them down for. Out: the figure of a name, and the sum of what is taken. A figure is made when it
//! is first told, its series when it is first not zero. The bound holds for series; a name beyond [`FIGURES_MAX`] is not kept at all.

use std::collections::HashMap;
use std::time::Duration;

use larder_http::time::WallTime;

use super::SeriesName;
use super::declared::is_declared;
use super::heat::HeatMap;
use super::resolution::{Resolution, Slot};
use super::series::Series;
use crate::histogram::OCTAVES;

/// The most figures that are told apart. Names come from the configuration and from fixed words: this is beyond all of them.
const FIGURES_MAX: usize = 65_536;
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
}

impl Figure {
    fn new(form: Form) -> Self {
        Self { form, total: 0, sum: 0.0, value: None, series: None, is_folded: false }
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
    scratch: String,
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
            scratch: String::new(),
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
    pub(super) fn begin(&mut self) {
        self.figures.values_mut().for_each(|figure| figure.value = None);
        self.durations.values_mut().for_each(|durations| durations.counts = None);
    }

    /// Writes the values of this moment down for a second.
    pub(super) fn write(&mut self, second: u64) {
        let slots: Vec<Slot> =
            self.resolutions.iter_mut().map(|resolution| resolution.note(second)).collect();
        let Self { resolutions, figures, bytes, bytes_max, folded, .. } = self;
        for figure in figures.values_mut() {
            let kept = figure.kept();
            if figure.series.is_none() && kept.is_some_and(|value| value != 0.0) && !resolutions.is_empty() {
                let is_sparse = figure.form == Form::Sparse;
                let more = Series::bytes(resolutions, is_sparse);
                if *bytes + more <= *bytes_max {
                    *bytes += more;
                    figure.series = Some(Series::new(resolutions, is_sparse));
                } else if !std::mem::replace(&mut figure.is_folded, true) {
                    *folded += 1;
                }
            }
            if let Some(series) = &mut figure.series {
                series.add(&slots, kept);
            }
        }
        for durations in self.durations.values_mut() {
            durations.heat.add(&slots, &durations.counts.unwrap_or_default());
        }
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
        let found = self.figures.get_mut(scratch.as_str());
        self.scratch = scratch;
        found
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
            self.durations.insert(name.into(), Durations { counts: None, heat });
        }
        if let Some(durations) = self.durations.get_mut(name) {
            durations.counts = Some(counts);
        }
    }

    /// Forgets what figures of one thing were: another one takes their place.
    pub(super) fn forget(&mut self, scope: &[&str]) {
        let mut prefix = String::new();
        SeriesName::of(scope, "").write(&mut prefix);
        let Self { figures, bytes, resolutions, .. } = self;
        figures.retain(|name, figure| {
            let goes = name.starts_with(&prefix);
            if goes {
                *bytes -= FIGURE_BYTES + name.len();
                if figure.series.is_some() {
                    *bytes -= Series::bytes(resolutions, figure.form == Form::Sparse);
                }
            }
            !goes
        });
    }

    pub(super) fn remembered(&self) -> SeriesMemory {
        let series = self.figures.values().filter(|figure| figure.series.is_some()).count();
        let Self { bytes, bytes_max, folded, .. } = *self;
        SeriesMemory { series: series + self.durations.len(), folded, bytes, bytes_max }
    }
}
