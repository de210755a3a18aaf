//! The most frequent URLs, misses, errors, unknown hosts and names of parameters, by their rate.
//!
//! In: samples as they are drained, with their weights. Out: the keys with the highest rates, each with the bound of its error and when it was last
//! seen. Counts decay (forward decay, Cormode et al. 2009). An increment at a time t is weight * 2^((t - landmark) / half-life). So all counts
//! of one moment can be compared as they are, and nothing is touched as time passes. Before the numbers grow too large, the landmark moves.
//! A decayed count is a rate: in a steady state it is rate * half-life / ln 2. While a table is young, less than that has gathered, which is
//! known and corrected.
//! Each table has room of its own: a flood of keys in one leaves the others alone.
//! Deliberately absent: exactness. `error` says by how much a rate may be too high, beside what sampling leaves open.

mod counters;
mod keys;
mod kind;

use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use larder_http::time::{Now, WallTime};
use std::hash::BuildHasher;

use super::sample::Sample;
use crate::exposition::Exposition;
use crate::family;
use crate::filter::Glob;
use counters::{Counted, SpaceSaving};
use keys::KeyRoom;
use kind::COUNTERS_MAX;

pub use kind::{TableKind, TableWindow};

/// The landmark moves after so many half-lives: increments are below 2^60 then.
const HALF_LIVES_MAX: f64 = 60.0;
/// What was not seen for so many half-lives is not told.
const HALF_LIVES_TOLD: u32 = 10;
/// A table is never taken to be younger.
const AGE_MIN: Duration = Duration::from_secs(1);

/// What is asked of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopQuestion {
    /// Which table.
    pub of: TableKind,
    /// Over what time.
    pub window: TableWindow,
    /// A glob over keys; parts of a key have a space between them. Case counts.
    pub glob: Option<String>,
    /// The most rows.
    pub limit: usize,
}

/// The largest of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Top {
    /// By falling rate.
    pub rows: Vec<TopRow>,
    /// How often a key of this table gave way to another, since the start.
    pub folded: u64,
}

/// One key.
#[derive(Clone, Debug, PartialEq)]
pub struct TopRow {
    /// Its parts; `None` where an error concerns no server.
    pub key: Vec<Option<String>>,
    /// Per second, never too low but for what sampling leaves open.
    pub rate: f64,
    /// So much of it may be another's.
    pub error: f64,
    /// When it was last seen.
    pub last: WallTime,
}

/// All tables.
#[derive(Debug)]
pub(super) struct Tables {
    hasher: RandomState,
    room: KeyRoom,
    windows: [Window; TableWindow::ALL.len()],
    began: Option<Now>,
}

/// All that one table has.
#[derive(Debug)]
pub(super) struct TableRates {
    /// With rates in place of counts.
    rates: Vec<Counted>,
    folded: u64,
}

/// The tables of one window.
#[derive(Debug)]
struct Window {
    half_life: Duration,
    /// The time at which an increment is its weight.
    landmark: Duration,
    tables: [SpaceSaving; TableKind::ALL.len()],
}

impl Window {
    fn new(window: TableWindow) -> Self {
        let tables = TableKind::ALL.map(|kind| SpaceSaving::new(COUNTERS_MAX, kind.bytes_max()));
        Self { half_life: window.half_life(), landmark: Duration::ZERO, tables }
    }

    /// Half-lives since the landmark.
    fn half_lives(&self, now: Duration) -> f64 {
        now.saturating_sub(self.landmark).as_secs_f64() / self.half_life.as_secs_f64()
    }

    /// What a weight of 1 adds now.
    fn increment(&mut self, now: Duration) -> f64 {
        let passed = self.half_lives(now);
        if passed < HALF_LIVES_MAX {
            return passed.exp2();
        }
        let factor = (-passed).exp2();
        self.tables.iter_mut().for_each(|table| table.scale(factor));
        self.landmark = now;
        1.0
    }

    /// What a count must be multiplied with to be a rate.
    fn rate_of_count(&self, now: Duration, age: Duration) -> f64 {
        let half_life = self.half_life.as_secs_f64();
        let age = age.max(AGE_MIN).as_secs_f64();
        // How much of what a table would have in the end it has by now.
        let gathered = 1.0 - (-age / half_life).exp2();
        (-self.half_lives(now)).exp2() * std::f64::consts::LN_2 / (half_life * gathered)
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            room: KeyRoom::default(),
            windows: TableWindow::ALL.map(Window::new),
            began: None,
        }
    }
}

impl Tables {
    /// Counts samples; to be called at each drain, also without any.
    pub(super) fn feed(&mut self, now: Now, samples: &[Arc<Sample>]) {
        let Self { hasher, room, windows, began } = self;
        if began.is_none() {
            *began = Some(now);
            windows.iter_mut().for_each(|window| window.landmark = now.monotonic);
        }
        if samples.is_empty() {
            return;
        }
        let increments = windows.each_mut().map(|window| window.increment(now.monotonic));
        for sample in samples {
            let seen = sample.ended();
            room.each(sample, |kind, key, amount| {
                let hash = hasher.hash_one(key);
                for (window, increment) in windows.iter_mut().zip(increments) {
                    window.tables[kind as usize].add(hash, key, amount * increment, seen);
                }
            });
        }
    }

    /// Forgets everything that is counted.
    pub(super) fn clear(&mut self) {
        self.began = None;
        self.windows.iter_mut().flat_map(|window| &mut window.tables).for_each(SpaceSaving::clear);
    }

    /// Since when samples are counted.
    pub(super) fn began(&self) -> Option<Now> {
        self.began
    }

    /// All that a table has. What is costly about a question needs no more than that.
    pub(super) fn rates(&self, of: TableKind, window: TableWindow, now: Now) -> TableRates {
        let window = &self.windows[window as usize];
        let table = &window.tables[of as usize];
        let age = self.began.map(|began| now.since(&began)).unwrap_or_default();
        let factor = window.rate_of_count(now.monotonic, age);
        let told = window.half_life * HALF_LIVES_TOLD;
        let all = table.all().filter(|counted| now.wall.since(counted.last) < told);
        let rates = all.map(|counted| Counted {
            count: counted.count * factor,
            error: counted.error * factor,
            ..counted
        });
        TableRates { rates: rates.collect(), folded: table.folded() }
    }

    /// The memory that all of them take.
    pub(super) fn bytes(&self) -> usize {
        self.windows.iter().flat_map(|window| &window.tables).map(SpaceSaving::bytes).sum()
    }

    /// The most that they take.
    pub(super) fn bytes_max() -> usize {
        TableWindow::ALL.len() * TableKind::ALL.iter().map(|kind| kind.bytes_max()).sum::<usize>()
    }

    /// Adds the families of the tables.
    pub(super) fn expose(&self, out: &mut Exposition) {
        out.family(&family::LIVE_TABLE_BYTES).value(&[], self.bytes());
        for (window, of) in TableWindow::ALL.iter().zip(&self.windows) {
            for (kind, table) in TableKind::ALL.iter().zip(&of.tables) {
                let labels = [("table", kind.token()), ("window", window.token())];
                out.family(&family::LIVE_TABLE_FOLDED).value(&labels, table.folded());
            }
        }
    }
}

impl TopQuestion {
    /// The rows of a table that are asked for.
    pub(super) fn top(&self, TableRates { mut rates, folded }: TableRates) -> Top {
        if let Some(glob) = &self.glob {
            let glob = Glob::of_value(glob, false);
            rates.retain(|counted| glob.matches(&counted.key));
        }
        rates.sort_unstable_by(|one, other| {
            other.count.total_cmp(&one.count).then_with(|| one.key.cmp(&other.key))
        });
        rates.truncate(self.limit);
        let rows = rates.into_iter().map(|Counted { key, count, error, last }| TopRow {
            key: self.parts(&key),
            rate: count,
            error,
            last,
        });
        Top { rows: rows.collect(), folded }
    }

    fn parts(&self, key: &str) -> Vec<Option<String>> {
        let part = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match key.split_once(' ') {
            Some((word, text)) if self.of.has_word() => vec![part(word), part(text)],
            _ => vec![part(key)],
        }
    }
}

#[cfg(test)]
mod tests;
