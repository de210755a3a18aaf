//! One of the two loads of a demo, with its progress on the screen.

use std::io::Write;
use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::expected::ExpectedPage;
use super::load::{self, Figures, Load, Outcome};
use super::screen::Screen;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(200);

/// Runs a load to its end.
///
/// # Errors
/// An answer was wrong, none came, or the screen is gone.
pub(super) async fn phase<W: Write, P: ExpectedPage>(
    name: &str,
    load: Load<'_, P>,
    screen: &mut Screen<W>,
) -> anyhow::Result<Outcome> {
    let (figures, began, time) = (Figures::new(load.time), Instant::now(), load.time);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut driving = std::pin::pin!(load::drive(load, &figures));
    let outcome = loop {
        tokio::select! {
            outcome = &mut driving => break outcome,
            _ = ticks.tick() => screen.progress(name, began.elapsed(), time, figures.answers())?,
        }
    };
    // The line of progress is left as it is, and what went wrong stands below it.
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            screen.end_line()?;
            return Err(anyhow::Error::new(error).context(format!("{name}: the load failed")));
        }
    };
    screen.done(name, time, outcome.answers, outcome.rate())?;
    ensure!(outcome.answers > 0, "{name}: no page came within {} s", time.as_secs());
    Ok(outcome)
}
