//! How one endpoint is doing, as far as requests and checks have shown.
//!
//! In: outcomes of requests, answers to health checks, readings of the clock. Out: whether it can be asked now, and
//! how much of its weight it gets. Kept over reloads; one lock, held for a few instructions.
//!
//! ```text
//!            failures in a row                  time over, a request is sent
//!      Up ---------------------> Ejected(until) ----------------------------> Ejected, probing
//!       ^                           ^      ^                                     |  |  |
//!       |                           |      +--- no outcome: cancelled, or slow --+  |  |
//!       |                           +---------- failure: twice as long -------------+  |
//!       +-------------------------------------- success: slow start ------------------+
//! ```
//!
//! A request that was sent before an ejection says nothing about the time after it: each ejection has a number, and an
//! outcome that carries an older one is ignored. A request that finds out whether the endpoint is well again keeps the
//! others away only for a time, because its own may be as long as its client likes: an upload that trickles.
//! What active checks have found is a matter apart: neither lifts the other, and where nobody checks it says nothing,
//! because nobody would ever say otherwise.
//! Deliberately absent: which outcome is a failure, which `origin` decides.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::Ejection;

/// How long a request that finds out keeps others away, at least; otherwise as long as the endpoint was left alone.
/// Enough for an answer from a server that is well, connecting included.
const PROBE_TIME_MIN: Duration = Duration::from_secs(5);

/// What a slow start begins with.
const SLOW_START_FROM: f64 = 0.1;

#[derive(Debug, Default)]
pub(crate) struct Condition(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    standing: Standing,
    failures_in_row: u32,
    /// How many ejections there were; see the head of this file.
    ejection: u64,
    /// How many requests have been sent to find out.
    probes: u64,
    checks: Checks,
    /// When it came, or came back; `None` where it was there from the start.
    since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Standing {
    #[default]
    Up,
    Ejected {
        until: Instant,
        /// Ejections without a success between them, this one included.
        in_row: u32,
        /// The request that is out to find out.
        probe: Option<Probe>,
        /// How long this one lasts.
        time: Duration,
    },
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    /// After that another one may find out too.
    until: Instant,
}

/// What active checks have found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Nothing: nobody has asked.
    #[default]
    Unknown,
    Healthy,
    Unhealthy {
        /// Whether it has ever been found healthy; if not, it is probably still starting.
        was_healthy: bool,
    },
}

impl Checks {
    /// Whether the endpoint has ever been found healthy.
    pub(crate) fn were_good(self) -> bool {
        matches!(self, Self::Healthy | Self::Unhealthy { was_healthy: true })
    }
}

/// What an endpoint can do for the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Use {
    /// Takes its share; 1.0 but in a slow start.
    Share(f64),
    /// Its time is over: one request may find out.
    Probe,
    /// Not before then, unless nobody else can be asked. A time that is over means that a request is finding out.
    Ejected(Instant),
    /// Not at all.
    Unhealthy,
}

/// A request's part in its endpoint's condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    ejection: u64,
    /// Its number, where its outcome decides.
    probe: Option<u64>,
}

impl Part {
    /// Whether this request's outcome decides.
    pub(crate) fn is_probe(self) -> bool {
        self.probe.is_some()
    }
}

/// What an outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Ejected,
    Recovered,
}

impl Condition {
    /// Of an endpoint that was not there before, or was from the start.
    pub(crate) fn new(since: Option<Instant>) -> Self {
        Self(Mutex::new(State { since, ..State::default() }))
    }

    /// What it can do at `now`. What checks have found counts only where it `is_checked` now.
    pub(crate) fn usable(&self, now: Instant, slow_start: Duration, is_checked: bool) -> Use {
        let state = self.0.lock();
        if is_checked && matches!(state.checks, Checks::Unhealthy { .. }) {
            return Use::Unhealthy;
        }
        match state.standing {
            Standing::Up => Use::Share(share(state.since, now, slow_start)),
            Standing::Ejected { until, probe, .. } if may_probe(until, probe, now) => Use::Probe,
            Standing::Ejected { until, .. } => Use::Ejected(until),
        }
    }

    /// A request is about to be sent; it becomes the probe where one is due.
    pub(crate) fn begin(&self, now: Instant) -> Part {
        let mut state = self.0.lock();
        let State { standing, ejection, probes, .. } = &mut *state;
        let probe = match standing {
            Standing::Ejected { until, probe, time, .. } if may_probe(*until, *probe, now) => {
                *probes = probes.wrapping_add(1);
                *probe = Some(Probe { number: *probes, until: now + (*time).max(PROBE_TIME_MIN) });
                Some(*probes)
            }
            _ => None,
        };
        Part { ejection: *ejection, probe }
    }

    /// A final head came that speaks for the endpoint.
    pub(crate) fn succeeded(&self, part: Part, now: Instant) -> Change {
        let mut state = self.0.lock();
        if part.ejection != state.ejection {
            return Change::Nothing;
        }
        state.failures_in_row = 0;
        match state.standing {
            Standing::Up => Change::Nothing,
            Standing::Ejected { .. } => {
                state.standing = Standing::Up;
                state.since = Some(now);
                Change::Recovered
            }
        }
    }

    /// The endpoint failed a request.
    pub(crate) fn failed(&self, part: Part, now: Instant, ejection: &Ejection) -> Change {
        let mut state = self.0.lock();
        if part.ejection != state.ejection || ejection.failures == 0 {
            // Where ejection was just switched off by a reload, a probe must not stay out for ever.
            state.end_probe(part);
            return Change::Nothing;
        }
        let in_row = match state.standing {
            Standing::Up => {
                state.failures_in_row = state.failures_in_row.saturating_add(1);
                if state.failures_in_row < ejection.failures {
                    return Change::Nothing;
                }
                1
            }
            Standing::Ejected { in_row, .. } if part.is_probe() => in_row.saturating_add(1),
            // Sent because nobody else could be asked: the ejection runs as it does.
            Standing::Ejected { .. } => return Change::Nothing,
        };
        state.failures_in_row = 0;
        state.ejection = state.ejection.wrapping_add(1);
        let time = back_off(ejection, in_row);
        state.standing = Standing::Ejected { until: now + time, in_row, probe: None, time };
        Change::Ejected
    }

    /// The request ended without saying anything about the endpoint.
    pub(crate) fn abandoned(&self, part: Part) {
        self.0.lock().end_probe(part);
    }

    /// What active checks have found. Returns whether that changes something: an endpoint is believed until it is
    /// asked, so that its first good answer does not.
    pub(crate) fn set_healthy(&self, is_healthy: bool, now: Instant) -> bool {
        let mut state = self.0.lock();
        let before = state.checks;
        state.checks = match is_healthy {
            true => Checks::Healthy,
            false => Checks::Unhealthy { was_healthy: before.were_good() },
        };
        let was_healthy = !matches!(before, Checks::Unhealthy { .. });
        if is_healthy && !was_healthy {
            state.since = Some(now);
        }
        was_healthy != is_healthy
    }

    /// What active checks have found so far.
    pub(crate) fn checks(&self) -> Checks {
        self.0.lock().checks
    }

    /// Nobody asks any more: what was found holds no longer, also for somebody who asks again one day.
    pub(crate) fn forget_checks(&self) {
        self.0.lock().checks = Checks::Unknown;
    }
}

impl State {
    fn end_probe(&mut self, part: Part) {
        if let Standing::Ejected { probe, .. } = &mut self.standing
            && part.ejection == self.ejection
            && part.probe.is_some()
            && part.probe == probe.map(|probe| probe.number)
        {
            *probe = None;
        }
    }
}

/// Whether a request may find out how an endpoint is that was left alone until then.
fn may_probe(until: Instant, probe: Option<Probe>, now: Instant) -> bool {
    until <= now && probe.is_none_or(|probe| probe.until <= now)
}

fn back_off(ejection: &Ejection, in_row: u32) -> Duration {
    let factor = 2_u32.checked_pow(in_row.saturating_sub(1)).unwrap_or(u32::MAX);
    ejection.time.saturating_mul(factor).min(ejection.time_max.max(ejection.time))
}

fn share(since: Option<Instant>, now: Instant, slow_start: Duration) -> f64 {
    let Some(since) = since else { return 1.0 };
    let passed = now.saturating_duration_since(since);
    if passed >= slow_start {
        return 1.0;
    }
    SLOW_START_FROM + (1.0 - SLOW_START_FROM) * passed.as_secs_f64() / slow_start.as_secs_f64()
}

#[cfg(test)]
mod tests;
