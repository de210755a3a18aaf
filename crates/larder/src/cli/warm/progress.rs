//! How far a run is.
//!
//! In: the counts so far. Out: on a terminal one line that is rewritten, elsewhere a line every 5 s, both on standard error, so that
//! standard output has the result alone. Everything shown is larder's own text or has been made printable.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use larder_config::print_duration;
use tokio::time::{Interval as Ticks, MissedTickBehavior, interval};

use super::counts::WarmCounts;
use crate::cli::output::{printable, say};

const TERMINAL_EVERY: Duration = Duration::from_millis(200);
const LINES_EVERY: Duration = Duration::from_secs(5);
/// Reasons that a line has room for.
const REASONS_MAX: usize = 2;

/// Where progress goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ShownAs {
    Nothing,
    /// A line every few seconds.
    Lines,
    /// One line that is rewritten.
    OneLine,
}

impl ShownAs {
    /// What suits standard error.
    pub(in crate::cli) fn on_stderr() -> Self {
        if io::stderr().is_terminal() { Self::OneLine } else { Self::Lines }
    }
}

pub(super) struct WarmProgress {
    shown: ShownAs,
    whole: usize,
    ticks: Ticks,
}

impl WarmProgress {
    pub(super) fn new(shown: ShownAs, whole: usize) -> Self {
        let mut ticks = interval(if shown == ShownAs::OneLine { TERMINAL_EVERY } else { LINES_EVERY });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once.
        ticks.reset();
        Self { shown, whole, ticks }
    }

    /// Waits until something is to be shown.
    ///
    /// # Cancel safety
    /// No tick is lost.
    pub(super) async fn due(&mut self) {
        self.ticks.tick().await;
    }

    pub(super) fn show(&self, counts: &WarmCounts, passed: Duration) {
        match self.shown {
            ShownAs::Nothing => {}
            ShownAs::Lines => say(line(counts, self.whole, passed)),
            ShownAs::OneLine => rewrite(&line(counts, self.whole, passed)),
        }
    }

    /// Leaves the last state where it stands.
    pub(super) fn end(&self, counts: &WarmCounts, passed: Duration) {
        if self.shown == ShownAs::OneLine {
            rewrite(&(line(counts, self.whole, passed) + "\n"));
        }
    }
}

fn rewrite(line: &str) {
    // Where it cannot be written there is nobody to see it.
    let _ = write!(io::stderr(), "\r\x1b[K{line}");
}

/// The counts in one line.
fn line(counts: &WarmCounts, whole: usize, passed: Duration) -> String {
    let mut line = format!("{}/{whole}  hit {}  stored {}", counts.done, counts.hit, counts.stored);
    if counts.not_stored() > 0 {
        line.push_str(&format!("  not stored {} ({})", counts.not_stored(), counts.reasons(REASONS_MAX)));
    }
    for (name, count) in [("nothing said", counts.unsaid), ("no answer", counts.unanswered())] {
        if count > 0 {
            line.push_str(&format!("  {name} {count}"));
        }
    }
    let rate = counts.done as f64 / passed.as_secs_f64().max(0.001);
    line.push_str(&format!("  {rate:.0}/s"));
    let left = (whole as u64).saturating_sub(counts.done);
    if left > 0 && counts.done > 0 {
        let seconds = Duration::from_secs((left as f64 / rate).ceil() as u64);
        line.push_str(&format!("  eta {}", print_duration(seconds)));
    }
    printable(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_there_is_to_say() {
        let mut counts = WarmCounts { done: 1204, hit: 310, stored: 889, ..WarmCounts::default() };
        counts.not_stored = [("no-store".to_owned(), 1), ("set-cookie".to_owned(), 4)].into();
        assert_eq!(
            line(&counts, 5000, Duration::from_secs(29)),
            "1204/5000  hit 310  stored 889  not stored 5 (set-cookie 4, no-store 1)  42/s  eta 1m32s"
        );
        counts = WarmCounts { done: 2, hit: 1, unsaid: 1, ..WarmCounts::default() };
        assert_eq!(line(&counts, 2, Duration::from_secs(1)), "2/2  hit 1  stored 0  nothing said 1  2/s");
        assert_eq!(line(&WarmCounts::default(), 2, Duration::ZERO), "0/2  hit 0  stored 0  0/s");
        counts.not_stored = [("\u{1b}[2J".to_owned(), 1)].into();
        assert!(!line(&counts, 2, Duration::ZERO).contains('\u{1b}'));
    }
}
