//! Figures over time: what each was in each second of the last ten minutes, 10 s of the last three hours, minute of the last day.
//!
//! In: once a second a [`Reading`]. Out: the values of that second, and those of a span ([`window`]). A series is made when its figure is
//! first not zero, so what never happens costs nothing. Series that find no room within the bound of memory are not kept; they are
//! counted, and their figure of the moment is there all the same.
//! Seconds are those of the monotonic clock: a jump of the wall clock makes no gap and no rate below zero. A pause of more than
//! [`CARRIED`] is a gap; what was counted in a shorter one is spread over its seconds, so that sums stay right.
//! Deliberately absent: a copy on a disk. A restart is a gap.

mod busiest;
mod counted;
mod declared;
mod heat;
mod kept;
mod name;
mod reading;
mod resolution;
mod series;
mod shares;
mod window;

use std::time::Duration;

use larder_http::time::Now;

use kept::Kept;

pub(super) use counted::CountedSince;
pub use declared::{DeclaredFigure, FIGURES};

pub(super) use kept::{Second, SeriesMemory};
pub use name::{SeriesName, scope_name};
pub use reading::{FigureSource, Reading};
pub use window::{LatencyAnswer, NotASpan, SERIES_MAX, SeriesAnswer, Span};

/// After a pause of so many seconds at most, what was counted in it belongs to all of them.
const CARRIED: u64 = 10;

/// What is remembered over time, and of this second.
#[derive(Debug)]
pub(super) struct History {
    kept: Kept,
    /// The last second that was read, and when.
    newest: Option<(u64, Now)>,
}

impl History {
    pub(super) fn new(history: Duration, bytes_max: usize) -> Self {
        Self { kept: Kept::new(history, bytes_max), newest: None }
    }

    /// From now on so much is remembered; what is already is forgotten.
    pub(super) fn limit(&mut self, history: Duration, bytes_max: usize) {
        self.kept.limit(history, bytes_max);
    }

    /// Reads all figures, if a second has begun since the last time. The first time tells from what on is counted, and is no second.
    pub(super) fn tick(&mut self, now: Now, read: impl FnOnce(&mut Reading<'_>)) -> Option<Second> {
        let second = now.monotonic.as_secs();
        let before = self.newest;
        if before.is_some_and(|(newest, _)| second <= newest) {
            return None;
        }
        // Whole seconds, so that the sum over them is what was counted.
        let elapsed = before.map_or(1.0, |(newest, _)| (second - newest) as f64);
        self.kept.begin();
        read(&mut Reading::new(&mut self.kept, elapsed, before.is_none()));
        self.newest = Some((second, now));
        let (newest, _) = before?;
        let from = if second - newest <= CARRIED { newest + 1 } else { second };
        (from..=second).for_each(|second| self.kept.write(second));
        Some(self.kept.second(now.wall))
    }

    /// How much is remembered.
    pub(super) fn remembered(&self) -> SeriesMemory {
        self.kept.remembered()
    }
}

#[cfg(test)]
mod tests;
