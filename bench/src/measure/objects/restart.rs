//! How soon a server that was killed has what it had.
//!
//! In: a server that is not running, its files, and names of which nearly all are stored. Out: the time from the start of the
//! program to the first hit, and how many of a thousand names are found again. What is asked for before the first hit is
//! another name each time: a miss stores its object, and would make the next request for it a hit.
//! Deliberately absent: a second start that is counted. The first after a kill is the one that people wait for.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{OBJECTS, Pass, target};
use crate::measure::asker::{Asker, Was, ask_all};
use crate::measure::contender::Launch;
use crate::measure::load::on_load_core;
use crate::measure::turns::wait;
use harness::children::Server;

/// Longest wait for a server, and for its first hit.
pub(super) const BACK_MAX: Duration = Duration::from_secs(120);
/// Between two attempts while nobody listens yet.
const ATTEMPTS_EVERY: Duration = Duration::from_millis(1);
const LOOKED_FOR: u64 = 1000;
/// From one name that is looked for to the next: all over the store, in the order in which it was written.
const STEP: u64 = OBJECTS / LOOKED_FOR;

/// What came back.
#[derive(Clone, Copy)]
pub(super) struct Back {
    /// From the start of the program to the end of the first answer that was a hit.
    pub(super) first_hit: Duration,
    /// Answers that were none before it.
    pub(super) misses_before: u64,
    /// Of [`LOOKED_FOR`] names, how many were hits.
    pub(super) found: u64,
}

impl Back {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(super) fn found_percent(&self) -> f64 {
        100.0 * self.found as f64 / LOOKED_FOR as f64
    }
}

/// Starts the server again; it runs on.
///
/// # Errors
/// It ends, or there is no hit within the limit.
pub(super) fn back(launch: &mut Launch, before: &Pass) -> Result<(Server, Back)> {
    ensure!(before.hits > OBJECTS / 2, "only {} hits before it was killed", before.hits);
    let began = Instant::now();
    let mut server = launch.start()?;
    let (mut asked, address) = (0, launch.address);
    let first_hit = loop {
        server.still_runs()?;
        ensure!(began.elapsed() < BACK_MAX, "no hit after {} s and {asked} answers", BACK_MAX.as_secs());
        // Names that are not looked for below.
        let name = target(asked * STEP + STEP / 2);
        let answered = on_load_core(async {
            let mut asker = Asker::connect(address).await.ok()?;
            Some(asker.ask(&name).await)
        })?;
        match answered.transpose().context("while it starts")? {
            Some(Was::Hit) => break began.elapsed(),
            Some(Was::Other) => asked += 1,
            None => wait(ATTEMPTS_EVERY),
        }
        ensure!(asked < LOOKED_FOR, "{asked} answers and no hit among them");
    };
    let found = ask_all(address, 1, LOOKED_FOR, |number| target(number * STEP))?;
    Ok((server, Back { first_hit, misses_before: asked, found }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_name_is_asked_for_before_it_is_looked_for() {
        let before: HashSet<u64> = (0..LOOKED_FOR).map(|asked| asked * STEP + STEP / 2).collect();
        let looked_for: HashSet<u64> = (0..LOOKED_FOR).map(|number| number * STEP).collect();
        assert!(before.is_disjoint(&looked_for));
        assert!(before.iter().chain(&looked_for).all(|number| *number < OBJECTS));
    }
}
