//! A measurement's page: the table of its figures, its targets, and a plot of each figure that is compared.
//!
//! In: an [`Outcome`] and what was judged. Out: bench/results/NAME.md, NAME.json and NAME-cpu.svg, NAME-p99.svg; then
//! an error where a target was missed, after everything is written.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::outcome::{Figures, Judged, Measured, Outcome};
use super::plot::{Panel, bars};
use super::report::{Report, round};

/// What a page says besides its figures.
pub(crate) struct Page<'a> {
    /// The name of the files, and of the measurement on the command line.
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    /// How it was measured: sentences, each with its full stop.
    pub(crate) how: String,
    /// Programs and the flag that makes them tell their version.
    pub(crate) programs: &'a [(&'a str, &'a str)],
}

/// What a page has between the runner's table and the targets.
#[derive(Default)]
pub(crate) struct More {
    /// Tables in Markdown, each with a line that says what it is.
    pub(crate) tables: String,
    /// The same for programs.
    pub(crate) figures: Value,
}

/// The versions of the tools that most measurements have in common.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("rustc", "--version"),
    ("nginx", "-v"),
    ("varnishd", "-V"),
    ("haproxy", "-v"),
    ("h2o", "-v"),
    ("wrk", "-v"),
    ("h2load", "--version"),
];

impl Page<'_> {
    /// Prints the tables, and writes page, figures and plots.
    ///
    /// # Errors
    /// A target was missed; everything has been written then.
    pub(crate) fn write(&self, root: &Path, outcome: &Outcome, judged: &[Judged]) -> Result<()> {
        self.write_with(root, outcome, More::default(), judged)
    }

    /// The same with what the runner does not measure.
    pub(crate) fn write_with(
        &self,
        root: &Path,
        outcome: &Outcome,
        more: More,
        judged: &[Judged],
    ) -> Result<()> {
        let mut text = table(outcome);
        text.push_str(&more.tables);
        text.push_str(&targets(judged));
        for (kind, title, figure) in [
            ("cpu", "CPU time per request, microseconds", Figures::cpu_us as fn(&Figures) -> f64),
            ("p99", "99th percentile of the waits, microseconds", Figures::p99_us),
        ] {
            let file = format!("{}-{kind}.svg", self.name);
            bars(
                &root.join("bench/results").join(&file),
                &format!("{}: {title}", self.title),
                &panels(outcome, figure),
            )?;
            let _ = writeln!(text, "\n![{title}]({file})");
        }
        let missed = judged.iter().filter(|judged| judged.missed()).count();
        let mut figures =
            json!({ "scenarios": scenarios(outcome), "missed": missed, "targets": told(judged) });
        if let (Value::Object(figures), false) = (&mut figures, more.figures.is_null()) {
            figures.insert("more".to_owned(), more.figures);
        }
        Report {
            name: self.name,
            title: self.title,
            table: &text,
            how: &self.how,
            programs: self.programs,
            figures,
        }
        .write(root)?;
        ensure!(missed == 0, "{missed} targets missed");
        Ok(())
    }
}

/// The targets as NAME.json has them.
pub(crate) fn told(judged: &[Judged]) -> Vec<Value> {
    let one = |judged: &Judged| {
        json!({ "scenario": judged.scenario, "target": judged.target, "figure": judged.figure,
                "verdict": judged.verdict.word() })
    };
    judged.iter().map(one).collect()
}

/// The scenarios as NAME.json has them.
pub(crate) fn scenarios(outcome: &Outcome) -> Vec<Value> {
    let one = |measured: &Measured| {
        json!({
            "scenario": measured.scenario, "load": measured.load.replace('`', ""),
            "rows": measured.rows.iter().map(row).collect::<Vec<Value>>(),
        })
    };
    outcome.measured.iter().map(one).collect()
}

fn panels(outcome: &Outcome, figure: fn(&Figures) -> f64) -> Vec<Panel> {
    let of = |rows: &[Figures]| rows.iter().map(|row| (row.server.clone(), figure(row))).collect();
    outcome
        .measured
        .iter()
        .map(|measured| Panel { title: measured.scenario.clone(), bars: of(&measured.rows) })
        .collect()
}

/// A row for each server in each scenario.
pub(crate) fn table(outcome: &Outcome) -> String {
    let mut table = String::from(
        "| | server | CPU us per request | least..most | requests/s | p50 us | p99 us | p99.9 us | bytes per answer | \
         memory MB | server's core % | load's core % | origin requests |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for measured in &outcome.measured {
        for row in &measured.rows {
            let p999 = p999_us(row).map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
            let asked = origin_requests(row);
            let (least, most) = row.spread(|run| run.cpu_us_per_request);
            let _ = writeln!(
                table,
                "| {} | {} | {:.2} | {least:.2}..{most:.2} | {:.0} | {:.0} | {:.0} | {p999} | {:.0} | {:.1} | {:.0} | {:.0} \
                 | {asked} |",
                measured.scenario,
                row.server,
                row.cpu_us(),
                row.rate(),
                row.median(|run| run.driven.p50_us),
                row.p99_us(),
                row.answer_bytes(),
                megabytes(row.resident_bytes),
                row.server_percent(),
                row.load_percent(),
            );
        }
    }
    table
}

/// The table of targets; nothing where there are none.
pub(crate) fn targets(judged: &[Judged]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let mut table = String::from("\nTargets:\n\n| | target | figure | |\n|---|---|---|---|\n");
    for Judged { scenario, target, figure, verdict } in judged {
        let _ = writeln!(table, "| {scenario} | {target} | {figure} | {} |", verdict.word());
    }
    table
}

/// The median where every run has one.
fn p999_us(row: &Figures) -> Option<f64> {
    row.runs
        .iter()
        .all(|run| run.driven.p999_us.is_some())
        .then(|| row.median(|run| run.driven.p999_us.unwrap_or(f64::NAN)))
}

/// Of all runs together.
fn origin_requests(row: &Figures) -> u64 {
    row.runs.iter().map(|run| run.origin_requests).sum()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn row(row: &Figures) -> Value {
    json!({
        "server": row.server, "cpu_us_per_request": round(row.cpu_us()), "requests_per_s": row.rate().round(),
        "p50_us": row.median(|run| run.driven.p50_us), "p99_us": row.p99_us(), "p999_us": p999_us(row),
        "resident_mb": round(megabytes(row.resident_bytes)),
        "bytes_per_answer": row.answer_bytes().round(),
        "server_percent": row.server_percent().round(), "load_percent": row.load_percent().round(),
        "origin_requests": origin_requests(row),
        "rounds": row.runs.iter().map(|run| json!({
            "cpu_us_per_request": round(run.cpu_us_per_request), "requests_per_s": run.driven.requests_per_s.round(),
            "p99_us": run.driven.p99_us, "load_percent": run.driven.load_percent.round(),
            "steal_percent": round(run.steal_percent),
        })).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::outcome::Verdict;
    use crate::measure::outcome::tests::outcome;

    #[test]
    fn a_row_has_its_medians() {
        let row = "| 134 B | slow | 8.00 | 2.00..18.00 | 8000 | 8 | 16 | - | 400 | 0.0 | 6 | 50 | 0 |";
        assert!(table(&outcome()).lines().any(|line| line == row), "{}", table(&outcome()));
    }

    #[test]
    fn a_missed_target_is_told() {
        let target = |verdict| Judged {
            scenario: "134 B".to_owned(),
            target: "quick: all of it".to_owned(),
            figure: "0.500".to_owned(),
            verdict,
        };
        let check = |verdict, word: &str| {
            let end = format!("| 134 B | quick: all of it | 0.500 | {word} |\n");
            assert!(targets(&[target(verdict)]).ends_with(&end), "{end}");
        };
        check(Verdict::Holds, "holds");
        check(Verdict::Missed, "MISSED");
        check(Verdict::NotTold, "not told: the load was the limit");
        assert_eq!(targets(&[]), "");
    }
}
