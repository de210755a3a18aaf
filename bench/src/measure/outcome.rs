//! What a measurement brought: every run, their medians, and targets judged by them.
//!
//! In: runs, pushed by the runner. Out: medians per scenario and server, and a [`Judged`] per target. Each target is
//! a comparison of two rows of one scenario, taken in the same rounds.

use anyhow::{Context, Result, ensure};

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
    /// What the hypervisor took of either core meanwhile, in percent.
    pub(crate) steal_percent: f64,
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

    /// How busy the server kept its core, in percent; of one core, where it has two.
    pub(crate) fn server_percent(&self) -> f64 {
        // Microseconds per second are parts of a million.
        self.median(|run| run.cpu_us_per_request * run.driven.requests_per_s / 1e4)
    }

    /// How busy the load's core was, in percent.
    pub(crate) fn load_percent(&self) -> f64 {
        self.median(|run| run.driven.load_percent)
    }

    /// Bytes of an answer, head and body.
    pub(crate) fn answer_bytes(&self) -> f64 {
        self.median(|run| run.driven.bytes_per_request)
    }

    /// The least and the most of one figure over the runs; NaN without runs.
    pub(crate) fn spread(&self, of: impl Fn(&Run) -> f64) -> (f64, f64) {
        let values = || self.runs.iter().map(&of);
        (values().fold(f64::NAN, f64::min), values().fold(f64::NAN, f64::max))
    }

    /// The 99th percentile of the waits, in microseconds.
    pub(crate) fn p99_us(&self) -> f64 {
        self.median(|run| run.driven.p99_us)
    }
}

/// Where a server's rate is that of the load: beyond this, the load's core has no more to give.
const LOAD_LIMIT_PERCENT: f64 = 95.0;

/// One target, judged.
pub(crate) struct Judged {
    pub(crate) scenario: String,
    pub(crate) target: String,
    pub(crate) figure: String,
    pub(crate) verdict: Verdict,
}

/// What became of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Holds,
    Missed,
    /// The load was the limit of both sides, so that their rates are not theirs.
    NotTold,
}

impl Verdict {
    /// Of a figure that tells.
    pub(crate) fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Missed }
    }

    /// As tables and files have it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Missed => "MISSED",
            Self::NotTold => "not told: the load was the limit",
        }
    }
}

impl Judged {
    /// Whether this fails the measurement.
    pub(crate) fn missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }
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

    /// CPU per request of `server` is at most `share` of that of the cheapest of `peers`.
    pub(crate) fn cpu_at_most_of_best(
        &self,
        scenario: &str,
        server: &str,
        share: f64,
        peers: &[&'static str],
    ) -> Result<Judged> {
        let mut best: Option<(f64, &str)> = None;
        for peer in peers {
            let cpu = self.figures(scenario, peer)?.cpu_us();
            if best.is_none_or(|(least, _)| cpu < least) {
                best = Some((cpu, peer));
            }
        }
        let (_, best) = best.context("no peers")?;
        self.cpu_at_most(scenario, server, share, best)
    }

    /// `server` answers at least `share` of the requests per second that `beside` does; not told where the load was
    /// the limit of both.
    pub(crate) fn rate_at_least(
        &self,
        scenario: &str,
        server: &str,
        share: f64,
        beside: &str,
    ) -> Result<Judged> {
        let (server_figures, beside_figures) =
            (self.figures(scenario, server)?, self.figures(scenario, beside)?);
        let ratio = server_figures.rate() / beside_figures.rate();
        let what = format!("{server}: requests/s at least {share:.2} of {beside}");
        let mut judged = judge(scenario, what, ratio, ratio >= share);
        let limited = |figures: &Figures| figures.load_percent() > LOAD_LIMIT_PERCENT;
        if limited(server_figures) && limited(beside_figures) {
            judged.verdict = Verdict::NotTold;
        }
        Ok(judged)
    }

    /// That the answers of `beside` are as long as those of `server`, give or take this share: otherwise it has more or
    /// less to do.
    ///
    /// # Errors
    /// They are not, or there is no such row.
    pub(crate) fn same_bytes(&self, scenario: &str, server: &str, share: f64, beside: &str) -> Result<()> {
        let bytes = |server| Ok::<f64, anyhow::Error>(self.figures(scenario, server)?.answer_bytes());
        let (ours, theirs) = (bytes(server)?, bytes(beside)?);
        let same = (theirs / ours - 1.0).abs() <= share;
        ensure!(same, "{scenario}: an answer of {beside} has {theirs:.0} bytes, one of {server} {ours:.0}");
        Ok(())
    }

    /// The origin behind `server` is asked at most `most` times a second, by the median of the rounds.
    pub(crate) fn asked_at_most(&self, scenario: &str, server: &str, most: f64) -> Result<Judged> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let per_s = |run: &Run| run.origin_requests as f64 * run.driven.requests_per_s / run.driven.requests;
        let asked = self.figures(scenario, server)?.median(per_s);
        let what = format!("{server}: the origin is asked at most {most:.0} times a second");
        Ok(judge(scenario, what, asked, asked <= most))
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

impl Judged {
    /// A figure that may be `most`.
    pub(crate) fn of_ratio(scenario: &str, target: String, figure: f64, most: f64) -> Self {
        judge(scenario, target, figure, figure <= most)
    }
}

fn judge(scenario: &str, target: String, ratio: f64, holds: bool) -> Judged {
    // More places than any target has: a miss by a hair has to show as one.
    Judged {
        scenario: scenario.to_owned(),
        target,
        figure: format!("{ratio:.3}"),
        verdict: Verdict::of(holds),
    }
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
                    steal_percent: 0.5,
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
            let expected = (figure, Verdict::of(holds));
            assert_eq!((judged.figure.as_str(), judged.verdict), expected, "{}", judged.target);
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
    fn requests_to_the_origin_are_judged_by_the_second() {
        let mut outcome = outcome();
        for run in &mut outcome.measured[0].rows[0].runs {
            // In runs of a second, of a ninth and of a quarter of one.
            run.origin_requests = 3;
        }
        let judged = outcome.asked_at_most("134 B", "quick", 12.0).unwrap();
        assert_eq!((judged.figure.as_str(), judged.verdict), ("12.000", Verdict::Holds));
        assert!(outcome.asked_at_most("134 B", "quick", 11.0).unwrap().missed());
        assert!(!outcome.asked_at_most("134 B", "slow", 0.0).unwrap().missed());
    }

    #[test]
    fn a_rate_that_is_the_load_s_on_both_sides_is_not_told() {
        let mut outcome = outcome();
        let mut busy = |row: usize, percent: f64| {
            for run in &mut outcome.measured[0].rows[row].runs {
                run.driven.load_percent = percent;
            }
            outcome.rate_at_least("134 B", "quick", 0.9, "slow").unwrap().verdict
        };
        assert_eq!(busy(0, 97.0), Verdict::Missed);
        assert_eq!(busy(1, 95.5), Verdict::NotTold);
        assert_eq!(busy(0, 94.0), Verdict::Missed);
    }

    #[test]
    fn answers_of_another_length_are_no_comparison() {
        let mut outcome = outcome();
        for run in &mut outcome.measured[0].rows[1].runs {
            run.driven.bytes_per_request = 410.0;
        }
        assert!(outcome.same_bytes("134 B", "quick", 0.03, "slow").is_ok());
        assert!(outcome.same_bytes("134 B", "quick", 0.02, "slow").is_err());
        assert!(outcome.same_bytes("134 B", "slow", 0.02, "quick").is_err());
    }

    #[test]
    fn a_spread_is_of_all_runs() {
        let outcome = outcome();
        let row = outcome.figures("134 B", "quick").unwrap();
        assert_eq!(row.spread(|run| run.cpu_us_per_request), (1.0, 9.0));
        assert!(Figures::new("nobody").spread(|run| run.cpu_us_per_request).0.is_nan());
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
        assert!(outcome.cpu_at_most("134 B", "quick", 1.0, "slow").unwrap().missed());
        assert!(outcome.rate_at_least("134 B", "quick", 0.0, "slow").unwrap().missed());
    }
}
