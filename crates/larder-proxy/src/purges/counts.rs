//! How many purges there were, by what they name, how, in which words, and what came of them.
//!
//! In: purges as they end, and requests for purges that were refused. Out: counts for metrics. Purges are rare, so all threads share
//! one count.

use std::sync::atomic::{AtomicU64, Ordering};

use larder_cache::purge::{Kind, Mode};

use super::audit::mode_word;
use super::dialect::Dialect;
use super::refusal::PurgeRefusal;

const MODES: [Mode; 2] = [Mode::Hard, Mode::Soft];
const RESULTS: [&str; 2] = ["held", "not-held"];

/// The counts.
#[derive(Debug)]
pub(crate) struct Counts {
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
