//! Whether the file system works.
//!
//! In: errors of the writing thread and of walks. Out: a time to leave it alone, 1 s at first and twice as long each time
//! in a row, at most a minute; and one event for the log for each spell. What can be read is served meanwhile.

use std::io;
use std::time::{Duration, Instant};

use larder_tier::rank::RankedMutex;

const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Spell {
    until: Option<Instant>,
    rest: Duration,
    event: Option<String>,
    errors: u64,
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Health(RankedMutex<Spell>);

impl Health {
    /// Something failed.
    pub(super) fn fails(&self, step: &str, error: &io::Error) {
        let mut spell = self.0.lock();
        spell.errors += 1;
        let now = Instant::now();
        if spell.until.is_some_and(|until| now < until) {
            return;
        }
        if spell.rest.is_zero() {
            spell.event = Some(format!("{step}: {error}"));
        }
        spell.rest = (spell.rest * 2).clamp(REST_MIN, REST_MAX);
        spell.until = Some(now + spell.rest);
    }

    /// Something was written.
    pub(super) fn works(&self) {
        let mut spell = self.0.lock();
        if !spell.rest.is_zero() {
            (spell.rest, spell.until) = (Duration::ZERO, None);
            spell.event = Some("works again".to_owned());
        }
    }

    /// Whether it is being left alone.
    pub(super) fn is_failing(&self) -> bool {
        self.0.lock().until.is_some_and(|until| Instant::now() < until)
    }

    /// Errors so far.
    pub(super) fn errors(&self) -> u64 {
        self.0.lock().errors
    }

    /// What is worth a line of log, once.
    pub(super) fn take_event(&self) -> Option<String> {
        self.0.lock().event.take()
    }
}
