//! How much is remembered.
//!
//! In: a watch. Out: its figures at this moment, and their bounds.

use std::time::Duration;

use super::{EVENTS_BYTES_MAX, SAMPLES_BYTES_MAX, Watch};

/// How much a watch remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Figures over time, each with its past.
    pub series: usize,
    /// Figures that found no room, and are counted with others.
    pub series_folded: usize,
    /// The memory that figures, samples and events take.
    pub bytes: usize,
    /// The most that they may take.
    pub bytes_max: usize,
}

impl Watch {
    /// How much is remembered now. There are no figures over time yet.
    pub fn remembered(&self) -> Remembered {
        let memory_bytes = self.drain.lock().settings.memory_bytes;
        let events = self.events.lock().bytes();
        Remembered {
            series: 0,
            series_folded: 0,
            bytes: self.recent.lock().bytes() + events,
            bytes_max: memory_bytes.saturating_add(SAMPLES_BYTES_MAX + EVENTS_BYTES_MAX),
        }
    }

    /// How far back figures over time are to be remembered; zero for not at all.
    pub fn history(&self) -> Duration {
        self.drain.lock().settings.history
    }
}
