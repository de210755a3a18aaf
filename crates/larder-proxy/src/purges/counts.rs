//! How many purges there were, by what they name, how, in which words, and what came of them.
//!
//! In: purges as they end, how long they took, and requests for purges that were refused. Out: counts for metrics. Purges are rare, so
//! all threads share one count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use larder_cache::purge::{Kind, Mode};
use larder_observe::HistogramSnapshot;
use parking_lot::Mutex;

use super::audit::mode_word;
use super::dialect::Dialect;
use super::refusal::PurgeRefusal;

const MODES: [Mode; 2] = [Mode::Hard, Mode::Soft];
const RESULTS: [&str; 2] = ["held", "not-held"];

/// A part of what a purge takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PurgePart {
    /// Until every look-up sees it.
    Table,
    /// From then until every journal has it.
    Journal,
}

impl PurgePart {
    const ALL: [Self; 2] = [Self::Table, Self::Journal];

    /// The fixed word.
    const fn token(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Journal => "journal",
        }
    }
}

/// The counts.
#[derive(Debug)]
pub(crate) struct Counts {
    /// How long the parts took, in the order of [`PurgePart::ALL`]. Held for one addition.
    seconds: Mutex<[HistogramSnapshot; PurgePart::ALL.len()]>,
    purges: Box<[AtomicU64]>,
    refused: [AtomicU64; PurgeRefusal::ALL.len()],
    /// Responses that were taken out or made stale.
    objects: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        let cells = Kind::ALL.len() * MODES.len() * Dialect::ALL.len() * RESULTS.len();
        Self {
            purges: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            refused: Default::default(),
            objects: AtomicU64::new(0),
            seconds: Mutex::default(),
        }
    }
}

fn place(kind: usize, mode: usize, dialect: usize, result: usize) -> usize {
    ((kind * MODES.len() + mode) * Dialect::ALL.len() + dialect) * RESULTS.len() + result
}

impl Counts {
    pub(crate) fn purged(&self, kind: Kind, mode: Mode, dialect: Dialect, is_held: bool) {
        let dialect = Dialect::ALL.iter().position(|other| *other == dialect);
        let kind = Kind::ALL.iter().position(|other| *other == kind);
        let Some((kind, dialect)) = kind.zip(dialect) else { return };
        let place = place(kind, usize::from(mode == Mode::Soft), dialect, usize::from(!is_held));
        if let Some(count) = self.purges.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn refused(&self, why: PurgeRefusal) {
        let place = PurgeRefusal::ALL.iter().position(|other| *other == why);
        if let Some(count) = place.and_then(|place| self.refused.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts how long parts of a purge took.
    pub(crate) fn took(&self, parts: [(PurgePart, Duration); 2]) {
        let mut seconds = self.seconds.lock();
        for (part, took) in parts {
            let place = PurgePart::ALL.iter().position(|other| *other == part);
            if let Some(histogram) = place.and_then(|place| seconds.get_mut(place)) {
                histogram.observe(took);
            }
        }
    }

    pub(crate) fn each_part(&self, mut visit: impl FnMut(&'static str, &HistogramSnapshot)) {
        let seconds = self.seconds.lock().clone();
        PurgePart::ALL.iter().zip(&seconds).for_each(|(part, histogram)| visit(part.token(), histogram));
    }

    pub(crate) fn objects(&self, count: u64) {
        self.objects.fetch_add(count, Ordering::Relaxed);
    }

    /// Every count that is not zero: kind, mode, dialect, result.
    pub(crate) fn each_purge(&self, mut visit: impl FnMut([(&'static str, &'static str); 4], u64)) {
        for (kind, kind_word) in Kind::ALL.iter().map(|kind| kind.token()).enumerate() {
            for (mode, mode_of) in MODES.iter().enumerate() {
                for (dialect, dialect_word) in Dialect::ALL.iter().map(|dialect| dialect.token()).enumerate()
                {
                    for (result, result_word) in RESULTS.iter().enumerate() {
                        let count = self.purges.get(place(kind, mode, dialect, result));
                        let count = count.map_or(0, |count| count.load(Ordering::Relaxed));
                        if count > 0 {
                            let labels = [
                                ("kind", kind_word),
                                ("mode", mode_word(*mode_of)),
                                ("dialect", dialect_word),
                                ("result", result_word),
                            ];
                            visit(labels, count);
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn each_refusal(&self, mut visit: impl FnMut(&'static str, u64)) {
        for (why, count) in PurgeRefusal::ALL.iter().zip(&self.refused) {
            visit(why.token(), count.load(Ordering::Relaxed));
        }
    }

    pub(crate) fn object_count(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }
}
