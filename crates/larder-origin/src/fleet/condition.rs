//! How one endpoint is doing, as far as requests and checks have shown.
//!
//! In: outcomes of requests, answers to health checks, readings of the clock. Out: whether it can be asked now, and
//! how much of its weight it gets. Kept over reloads; one lock, held for a few instructions.
//!
//! ```text
//!            failures in a row                  time over, a request is sent
//!      Up ---------------------> Ejected(until) ----------------------------> Ejected, probing
//!       ^                           ^      ^                                     |  |  |
//!       |                           |      +--- no outcome (cancelled) ----------+  |  |
//!       |                           +---------- failure: twice as long -------------+  |
//!       +-------------------------------------- success: slow start ------------------+
//! ```
//!
//! A request that was sent before an ejection says nothing about the time after it: each ejection has a number, and an
//! outcome that carries an older one is ignored. Being unhealthy by active checks is a matter apart: neither lifts the
//! other. Deliberately absent: which outcome is a failure, which `origin` decides.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::Ejection;

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
    is_unhealthy: bool,
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
        /// Whether a request is out whose outcome decides.
        is_probing: bool,
    },
}

/// What an endpoint can do for the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Use {
    /// Takes its share; 1.0 but in a slow start.
    Share(f64),
    /// Its time is over: one request may find out.
    Probe,
    /// Not before then, unless nobody else can be asked. A time that is over means that a probe is out.
    Ejected(Instant),
    /// Not at all.
    Unhealthy,
}

/// A request's part in its endpoint's condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    ejection: u64,
    is_probe: bool,
}

impl Part {
    /// Whether this request's outcome decides.
    pub(crate) fn is_probe(self) -> bool {
        self.is_probe
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

    /// What it can do at `now`.
    pub(crate) fn usable(&self, now: Instant, slow_start: Duration) -> Use {
        let state = self.0.lock();
        if state.is_unhealthy {
            return Use::Unhealthy;
        }
        match state.standing {
            Standing::Up => Use::Share(share(state.since, now, slow_start)),
            Standing::Ejected { until, is_probing: false, .. } if until <= now => Use::Probe,
            Standing::Ejected { until, .. } => Use::Ejected(until),
        }
    }

    /// A request is about to be sent; it becomes the probe where one is due.
    pub(crate) fn begin(&self, now: Instant) -> Part {
        let mut state = self.0.lock();
        let ejection = state.ejection;
        let is_probe = match &mut state.standing {
            Standing::Ejected { until, is_probing, .. } if *until <= now && !*is_probing => {
                *is_probing = true;
                true
            }
            _ => false,
        };
        Part { ejection, is_probe }
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
            Standing::Ejected { in_row, .. } if part.is_probe => in_row.saturating_add(1),
            // Sent because nobody else could be asked: the ejection runs as it does.
            Standing::Ejected { .. } => return Change::Nothing,
        };
        state.failures_in_row = 0;
        state.ejection = state.ejection.wrapping_add(1);
        let until = now + back_off(ejection, in_row);
        state.standing = Standing::Ejected { until, in_row, is_probing: false };
        Change::Ejected
    }

    /// The request ended without saying anything about the endpoint.
    pub(crate) fn abandoned(&self, part: Part) {
        self.0.lock().end_probe(part);
    }

    /// What active checks have found. Returns whether that is news.
    pub(crate) fn set_healthy(&self, is_healthy: bool, now: Instant) -> bool {
        let mut state = self.0.lock();
        if state.is_unhealthy != is_healthy {
            return false;
        }
        state.is_unhealthy = !is_healthy;
        if is_healthy {
            state.since = Some(now);
        }
        true
    }

    pub(crate) fn is_healthy(&self) -> bool {
        !self.0.lock().is_unhealthy
    }
}

impl State {
    fn end_probe(&mut self, part: Part) {
        if let Standing::Ejected { is_probing, .. } = &mut self.standing
            && part.is_probe
            && part.ejection == self.ejection
        {
            *is_probing = false;
        }
    }
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
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;
    const EJECTION: Ejection =
        Ejection { failures: 3, time: Duration::from_secs(1), time_max: Duration::from_secs(5) };

    fn at(begun: Instant, millis: u64) -> Instant {
        begun + Duration::from_millis(millis)
    }

    /// One request that fails.
    fn fail(condition: &Condition, now: Instant) -> Change {
        let part = condition.begin(now);
        condition.failed(part, now, &EJECTION)
    }

    fn succeed(condition: &Condition, now: Instant) -> Change {
        let part = condition.begin(now);
        condition.succeeded(part, now)
    }

    fn ejected(now: Instant) -> Condition {
        let condition = Condition::default();
        for expected in [Change::Nothing, Change::Nothing, Change::Ejected] {
            assert_eq!(fail(&condition, now), expected);
        }
        condition
    }

    #[test]
    fn only_failures_in_a_row_eject() {
        let now = Instant::now();
        let condition = Condition::default();
        for outcomes in ["ffs", "ffs", "ff"] {
            for outcome in outcomes.chars() {
                let change = if outcome == 'f' { fail(&condition, now) } else { succeed(&condition, now) };
                assert_eq!(change, Change::Nothing);
            }
        }
        assert_eq!(fail(&condition, now), Change::Ejected);
        assert_eq!(condition.usable(now, NONE), Use::Ejected(at(now, 1000)));
    }

    #[test]
    fn each_ejection_in_a_row_lasts_twice_as_long_up_to_the_longest() {
        let mut now = Instant::now();
        let condition = ejected(now);
        for millis in [1000, 2000, 4000, 5000, 5000] {
            let until = at(now, millis);
            assert_eq!(condition.usable(until - Duration::from_millis(1), NONE), Use::Ejected(until));
            assert_eq!(condition.usable(until, NONE), Use::Probe);
            now = until;
            assert_eq!(fail(&condition, now), Change::Ejected);
        }
        now = at(now, 5000);
        assert_eq!(succeed(&condition, now), Change::Recovered);
        // A new row.
        for _ in 0..EJECTION.failures {
            fail(&condition, now);
        }
        assert_eq!(condition.usable(now, NONE), Use::Ejected(at(now, 1000)));
    }

    #[test]
    fn one_request_probes_and_a_cancelled_one_makes_room_for_the_next() {
        let begun = Instant::now();
        let condition = ejected(begun);
        let now = at(begun, 1000);
        let probe = condition.begin(now);
        assert_eq!(condition.usable(now, NONE), Use::Ejected(now));
        // Somebody who is sent all the same does not end the probe, whatever becomes of it.
        assert_eq!(fail(&condition, now), Change::Nothing);
        condition.abandoned(condition.begin(now));
        assert_eq!(condition.usable(now, NONE), Use::Ejected(now));
        condition.abandoned(probe);
        assert_eq!(condition.usable(now, NONE), Use::Probe);
        assert_eq!(succeed(&condition, now), Change::Recovered);
    }

    #[test]
    fn what_was_sent_before_an_ejection_says_nothing_about_the_time_after() {
        let now = Instant::now();
        let condition = Condition::default();
        let early = [condition.begin(now), condition.begin(now)];
        for _ in 0..EJECTION.failures {
            fail(&condition, now);
        }
        assert_eq!(condition.succeeded(early[0], now), Change::Nothing);
        assert_eq!(condition.failed(early[1], now, &EJECTION), Change::Nothing);
        assert_eq!(condition.usable(now, NONE), Use::Ejected(at(now, 1000)));
        // What was sent during it, because nobody else could be asked, does.
        assert_eq!(succeed(&condition, now), Change::Recovered);
    }

    #[test]
    fn ejection_can_be_switched_off() {
        let now = Instant::now();
        let never = Ejection { failures: 0, ..EJECTION };
        let condition = Condition::default();
        for _ in 0..100 {
            assert_eq!(condition.failed(condition.begin(now), now, &never), Change::Nothing);
        }
        assert_eq!(condition.usable(now, NONE), Use::Share(1.0));
        // Switched off while a probe is out.
        let condition = ejected(now);
        let now = at(now, 1000);
        condition.failed(condition.begin(now), now, &never);
        assert_eq!(condition.usable(now, NONE), Use::Probe);
    }

    #[test]
    fn a_slow_start_grows_from_a_tenth_after_coming_back_and_not_at_the_start() {
        let slow = Duration::from_secs(10);
        let begun = Instant::now();
        let condition = ejected(begun);
        let now = at(begun, 1000);
        assert_eq!(Condition::default().usable(now, slow), Use::Share(1.0));
        assert_eq!(Condition::new(Some(now)).usable(now, slow), Use::Share(0.1));
        succeed(&condition, now);
        for (millis, expected) in [(0, 0.1), (5000, 0.55), (10_000, 1.0), (99_000, 1.0)] {
            let Use::Share(share) = condition.usable(at(now, millis), slow) else { panic!("up") };
            assert!((share - expected).abs() < 1e-9, "{millis}: {share}");
        }
        assert_eq!(condition.usable(now, NONE), Use::Share(1.0));
    }

    #[test]
    fn unhealthy_and_ejected_do_not_lift_each_other() {
        let begun = Instant::now();
        let condition = ejected(begun);
        assert!(condition.set_healthy(false, begun) && !condition.set_healthy(false, begun));
        assert_eq!(condition.usable(begun, NONE), Use::Unhealthy);
        let now = at(begun, 1000);
        succeed(&condition, now);
        assert_eq!(condition.usable(now, NONE), Use::Unhealthy);
        assert!(!condition.is_healthy() && condition.set_healthy(true, now) && condition.is_healthy());
        assert_eq!(condition.usable(now, Duration::from_secs(1)), Use::Share(0.1));
    }
}
