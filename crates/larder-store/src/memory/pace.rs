//! Walks through the whole index that leave the CPU to those who answer clients.
//!
//! In: the ends of a walk's slices. Out: a pause now and then, several times as long as the work before it. A thread that is never idle
//! keeps the others on its core waiting for a turn of the scheduler's, which is several milliseconds; one that rests gives way at once.

use std::time::{Duration, Instant};

/// Work between two rests: what a client may have to wait for because of a walk.
const WORK_MAX: Duration = Duration::from_micros(100);
/// Rest for each work: a walk takes a fifth of a core.
const RESTS: u32 = 4;

/// How long a walk has been at work since it rested.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
}

impl Pace {
    pub(super) fn begin() -> Self {
        Self { began: Instant::now() }
    }

    /// After a slice, with no lock held. Blocks where a rest is due: for a thread that serves nobody.
    pub(super) fn rest(&mut self) {
        let worked = self.began.elapsed();
        if worked >= WORK_MAX {
            // What took long for another reason, as a core that others had meanwhile, is not repaid.
            std::thread::park_timeout(RESTS * worked.min(2 * WORK_MAX));
            self.began = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_rests_once_it_has_worked_and_not_before() {
        let mut pace = Pace::begin();
        let began = pace.began;
        pace.began = Instant::now() + Duration::from_secs(1);
        pace.rest();
        assert!(pace.began > Instant::now(), "it has not worked");
        pace.began = began - WORK_MAX;
        let before = Instant::now();
        pace.rest();
        assert!(pace.began - before >= RESTS * WORK_MAX, "a rest for the work");
    }
}
