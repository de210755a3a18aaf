//! How much is remembered.
//!
//! In: a watch. Out: its figures at this moment, and their bounds.

use std::time::Duration;

use super::events::EVENTS_BYTES_MAX;
use super::{SAMPLES_BYTES_MAX, Tables, Watch};

/// How much a watch remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Figures over time, each with its past.
    pub series: usize,
    /// Figures that found no room, and are counted with others.
    pub series_folded: usize,
    /// The memory that figures, tables, samples and events take.
    pub bytes: usize,
    /// The most that they may take.
    pub bytes_max: usize,
}

impl Watch {
    /// How much is remembered now.
    pub fn remembered(&self) -> Remembered {
        let over_time = self.history.lock().remembered();
        let others = self.recent.lock().bytes() + self.events.lock().bytes() + self.tables.lock().bytes();
        Remembered {
            series: over_time.series,
            series_folded: over_time.folded,
            bytes: over_time.bytes + others,
            bytes_max: over_time.bytes_max + SAMPLES_BYTES_MAX + EVENTS_BYTES_MAX + Tables::bytes_max(),
        }
    }

    /// How far back figures over time are to be remembered; zero for not at all.
    pub fn history(&self) -> Duration {
        self.drain.lock().settings.history
    }
}
