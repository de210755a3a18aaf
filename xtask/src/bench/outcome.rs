//! What a measurement brought: every run, their medians, and targets judged by them.
//!
//! In: runs, pushed by the runner. Out: medians per scenario and server, and a [`Judged`] per target. Each target is
//! a comparison of two rows of one scenario, taken in the same rounds.

use anyhow::{Context, Result};

use super::drive::Driven;
use super::report::median;

/// All scenarios of a measurement.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) measured: Vec<Measured>,
}

/// One scenario.
pub(crate) struct Measured {
    pub(crate) scenario: String,
    /// The load, as one would type it.
    pub(crate) load: String,
    pub(crate) rows: Vec<Figures>,
}

/// One server in one scenario.
pub(crate) struct Figures {
    pub(crate) server: String,
    pub(crate) runs: Vec<Run>,
    /// Of all its processes, after the last run.
    pub(crate) resident_bytes: u64,
}

/// One run.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) driven: Driven,
    pub(crate) cpu_us_per_request: f64,
    pub(crate) origin_requests: u64,
}

impl Figures {
    /// No runs yet.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.to_owned(), runs: Vec::new(), resident_bytes: 0 }
    }

    /// The median of one figure over the runs; NaN without runs.
    pub(crate) fn median(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(of).collect())
    }

    /// User and system time of the server, in microseconds per request.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.median(|run| run.cpu_us_per_request)
    }

    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.median(|run| run.driven.requests_per_s)
    }

    /// The 99th percentile of the waits, in microseconds.
    pub(crate) fn p99_us(&self) -> f64 {
        self.median(|run| run.driven.p99_us)
    }
}

/// One target, judged.
pub(crate) struct Judged {
    pub(crate) scenario: String,
    pub(crate) target: String,
    pub(crate) figure: String,
    pub(crate) holds: bool,
}

impl Outcome {
    /// A server's figures in a scenario.
    ///
    /// # Errors
    /// There is no such row.
    pub(crate) fn figures(&self, scenario: &str, server: &str) -> Result<&Figures> {
        let measured = self.measured.iter().find(|measured| measured.scenario == scenario);
        let row = measured.and_then(|measured| measured.rows.iter().find(|row| row.server == server));
        row.with_context(|| format!("no row for {server} in {scenario}"))
    }

    /// CPU per request of `server` is at most `share` of that of `beside`.
    pub(crate) fn cpu_at_most(
        &self,
        scenario: &str,
        server: &str,
        share: f64,
        beside: &str,
    ) -> Result<Judged> {
        let ratio = self.figures(scenario, server)?.cpu_us() / self.figures(scenario, beside)?.cpu_us();
        let what = format!("{server}: CPU per request at most {share:.2} of {beside}");
        Ok(judge(scenario, what, ratio, ratio <= share))
    }

    /// `server` answers at least `share` of the requests per second that `beside` does.
    pub(crate) fn rate_at_least(
        &self,
        scenario: &str,
        server: &str,
        share: f64,
        beside: &str,
    ) -> Result<Judged> {
        let ratio = self.figures(scenario, server)?.rate() / self.figures(scenario, beside)?.rate();
        let what = format!("{server}: requests/s at least {share:.2} of {beside}");
        Ok(judge(scenario, what, ratio, ratio >= share))
    }

    /// The p99 of `server` is at most `share` of that of `beside`.
    pub(crate) fn p99_at_most(
        &self,
        scenario: &str,
        server: &str,
        share: f64,
        beside: &str,
    ) -> Result<Judged> {
        let ratio = self.figures(scenario, server)?.p99_us() / self.figures(scenario, beside)?.p99_us();
        let what = format!("{server}: p99 at most {share:.2} of {beside}");
        Ok(judge(scenario, what, ratio, ratio <= share))
    }
}

fn judge(scenario: &str, target: String, ratio: f64, holds: bool) -> Judged {
    // More places than any target has: a miss by a hair has to show as one.
    Judged { scenario: scenario.to_owned(), target, figure: format!("{ratio:.3}"), holds }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two servers, three runs each; the medians of `quick` are half of those of `slow`.
    pub(crate) fn outcome() -> Outcome {
        let row = |server: &str, scale: f64| {
            let mut figures = Figures::new(server);
            for run in [1.0, 9.0, 4.0] {
                let value = run * scale;
                figures.runs.push(Run {
                    driven: Driven {
                        requests: 1000.0,
                        requests_per_s: value * 1000.0,
                        p50_us: value,
                        p99_us: value * 2.0,
                        p999_us: None,
                        bytes_per_request: 400.0,
                        load_percent: 50.0,
                    },
                    cpu_us_per_request: value,
                    origin_requests: 0,
                });
            }
            figures
        };
        let rows = vec![row("quick", 1.0), row("slow", 2.0)];
        Outcome { measured: vec![Measured { scenario: "134 B".into(), load: "`wrk`".into(), rows }] }
    }

    #[test]
    fn targets_compare_medians() {
        let outcome = outcome();
        assert_eq!(outcome.figures("134 B", "slow").unwrap().cpu_us().to_bits(), 8.0_f64.to_bits());
        let check = |judged: Result<Judged>, figure: &str, holds: bool| {
            let judged = judged.unwrap();
            assert_eq!((judged.figure.as_str(), judged.holds), (figure, holds), "{}", judged.target);
        };
        check(outcome.cpu_at_most("134 B", "quick", 0.5, "slow"), "0.500", true);
        check(outcome.cpu_at_most("134 B", "quick", 0.49, "slow"), "0.500", false);
        check(outcome.cpu_at_most("134 B", "slow", 1.0, "quick"), "2.000", false);
        check(outcome.rate_at_least("134 B", "slow", 2.0, "quick"), "2.000", true);
        check(outcome.rate_at_least("134 B", "quick", 0.9, "slow"), "0.500", false);
        check(outcome.p99_at_most("134 B", "quick", 1.0, "slow"), "0.500", true);
        check(outcome.p99_at_most("134 B", "slow", 1.0, "quick"), "2.000", false);
    }

    #[test]
    fn a_target_about_a_row_that_is_not_there_is_an_error() {
        assert!(outcome().cpu_at_most("134 B", "quick", 1.0, "nobody").is_err());
        assert!(outcome().cpu_at_most("1 MB", "quick", 1.0, "slow").is_err());
    }

    #[test]
    fn no_runs_hold_no_target() {
        let mut outcome = outcome();
        outcome.measured[0].rows[0].runs.clear();
        assert!(!outcome.cpu_at_most("134 B", "quick", 1.0, "slow").unwrap().holds);
        assert!(!outcome.rate_at_least("134 B", "quick", 0.0, "slow").unwrap().holds);
    }
}
