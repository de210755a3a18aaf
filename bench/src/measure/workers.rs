//! Two workers on two cores: whether what is asked for most bounces between them.
//!
//! In: one hot key of two sizes, and ten thousand keys; larder and nginx, each with one worker and with two in the same
//! rounds. Out: CPU per request, how evenly the workers shared it, and the cost with two workers over the cost with
//! one. Where cores write to what they share, this ratio grows with the heat of a key.
//! Deliberately absent: requests per second and waits. With two cores in use the load has to share them, so they say
//! nothing here, and the page does not have them.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, Setup, Workers, nginx};
use super::drive::Load;
use super::outcome::{Judged, Outcome, Verdict};
use super::page::targets;
use super::plot::{Panel, bars};
use super::report::{Report, round};
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::origin::body;

const KEYS: usize = 10_000;
/// By name, and the length of the page.
const ONE_HOT: &[(&str, usize)] = &[(SMALL_HOT, 134), ("8357 B, one key", 8357)];
const SMALL_HOT: &str = "134 B, one key";
const SPREAD: &str = "134 B, 10 000 keys";

/// A server's rows: with one worker, and with two.
struct Pair {
    server: &'static str,
    one: &'static str,
    two: &'static str,
}

const LARDER: Pair = Pair { server: "larder", one: "larder, 1 worker", two: "larder, 2 workers" };
const NGINX: Pair =
    Pair { server: "nginx", one: "nginx proxy_cache, 1 worker", two: "nginx proxy_cache, 2 workers" };
/// An older larder, where there is one.
const BEFORE: Pair =
    Pair { server: "larder, before", one: "larder before, 1 worker", two: "larder before, 2 workers" };
/// larder's ratio may be this much of another: as much as two runs of one server differ.
const TIE: f64 = 1.05;
/// Of the whole: a thread with less does not count as one that works.
const WORKS_MIN: f64 = 0.01;

/// What each thread of a server took of its CPU time, in a scenario.
struct Shares {
    scenario: String,
    server: &'static str,
    /// The greatest first; together 1 at most.
    shares: Vec<f64>,
}

type AllShares = Arc<Mutex<Vec<Shares>>>;

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let shares = AllShares::default();
    let one_hot = |(name, bytes): &(&str, usize)| {
        Scenario::hit(*name, &format!("/page/{bytes}"), body(*bytes), rows(&kit, name, &shares))
    };
    let mut scenarios: Vec<Scenario<'_>> = ONE_HOT.iter().map(one_hot).collect();
    scenarios.push(spread(&kit, &shares));
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    report(root, &outcome, &shares.lock())
}

fn rows<'a>(kit: &'a Kit, scenario: &str, shares: &AllShares) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (workers, larder, nginx) in
        [(Workers::ONE, LARDER.one, NGINX.one), (Workers::TWO, LARDER.two, NGINX.two)]
    {
        rows.push(with(workers, larder, scenario, shares, move |setup| {
            larder::full(kit, setup, larder, AccessLog::Off)
        }));
        if let Some(program) = &kit.before {
            let name = if workers == Workers::ONE { BEFORE.one } else { BEFORE.two };
            rows.push(with(workers, name, scenario, shares, move |setup| {
                larder::full_of(kit, program, setup, name, AccessLog::Off)
            }));
        }
        rows.push(with(workers, nginx, scenario, shares, move |setup| nginx::cache(setup, nginx, "")));
    }
    rows
}

/// A row with so many workers, whatever its scenario has, whose shares of the CPU time are noted at last.
fn with<'a>(
    workers: Workers,
    name: &'static str,
    scenario: &str,
    all: &AllShares,
    start: impl Fn(&Setup<'_>) -> Result<Contender> + 'a,
) -> Row<'a> {
    let (scenario, all) = (scenario.to_owned(), Arc::clone(all));
    Row::new(name, move |setup| {
        let (scenario, all) = (scenario.clone(), Arc::clone(&all));
        let contender = start(&Setup { workers, ..*setup })?;
        Ok(contender.with_last_check(move |contender| {
            let times = contender.server.threads_cpu_time();
            let shares = shares_of(times.iter().map(|time| time.as_secs_f64()).collect());
            ensure!(!shares.is_empty(), "no thread took any time");
            all.lock().push(Shares { scenario: scenario.clone(), server: name, shares });
            Ok(())
        }))
    })
}

/// The shares of these times in their sum, the greatest first, without those that are next to nothing.
fn shares_of(mut times: Vec<f64>) -> Vec<f64> {
    let sum: f64 = times.iter().sum();
    times.sort_by(|a, b| b.total_cmp(a));
    times.iter().map(|time| time / sum).filter(|share| *share >= WORKS_MIN).collect()
}

fn spread<'a>(kit: &'a Kit, shares: &AllShares) -> Scenario<'a> {
    let mut scenario = Scenario::hit(SPREAD, "/key/0/134", body(134), rows(kit, SPREAD, shares));
    scenario.prime = Some(format!("/key/[0-{}]/134", KEYS - 1));
    scenario.load = Load::Wrk { connections: 64, script: Some("zipf.lua") };
    scenario
}

/// larder's ratio beside nginx's in each scenario, and for one key beside that for many.
fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    let mut judged = Vec::new();
    for scenario in ONE_HOT.iter().map(|(name, _)| *name).chain([SPREAD]) {
        let (larder, nginx) = (ratio(outcome, scenario, &LARDER)?, ratio(outcome, scenario, &NGINX)?);
        judged.push(judge_ratios(scenario, larder, NGINX.server, nginx));
    }
    let (one, many) = (ratio(outcome, SMALL_HOT, &LARDER)?, ratio(outcome, SPREAD, &LARDER)?);
    judged.push(judge_ratios(SMALL_HOT, one, "its own for 10 000 keys,", many));
    Ok(judged)
}

/// CPU per request with two workers over that with one.
fn ratio(outcome: &Outcome, scenario: &str, pair: &Pair) -> Result<f64> {
    Ok(outcome.figures(scenario, pair.two)?.cpu_us() / outcome.figures(scenario, pair.one)?.cpu_us())
}

fn judge_ratios(scenario: &str, larder: f64, beside: &str, other: f64) -> Judged {
    Judged {
        scenario: scenario.to_owned(),
        target: format!(
            "{}: CPU per request with 2 workers over 1 at most {TIE} of that of {beside} {other:.3}",
            LARDER.server
        ),
        figure: format!("{larder:.3}"),
        verdict: Verdict::of(larder <= other * TIE),
    }
}

fn report(root: &Path, outcome: &Outcome, all: &[Shares]) -> Result<()> {
    let shares = |scenario: &str, server: &str| {
        let found = all.iter().find(|shares| shares.scenario == scenario && shares.server == server);
        found.map(|found| found.shares.as_slice()).unwrap_or_default()
    };
    let mut table =
        String::from("| | server | CPU us per request | % of it by thread |\n|---|---|---|---|\n");
    for measured in &outcome.measured {
        for row in &measured.rows {
            let percents: Vec<String> = shares(&measured.scenario, &row.server)
                .iter()
                .map(|share| format!("{:.0}", share * 100.0))
                .collect();
            let (scenario, server) = (&measured.scenario, &row.server);
            let _ =
                writeln!(table, "| {scenario} | {server} | {:.2} | {} |", row.cpu_us(), percents.join(", "));
        }
    }
    let judged = judge(outcome)?;
    table.push_str(&targets(&judged));
    let title = "CPU time per request, microseconds";
    let panels: Vec<Panel> = outcome
        .measured
        .iter()
        .map(|measured| Panel {
            title: measured.scenario.clone(),
            bars: measured.rows.iter().map(|row| (row.server.clone(), row.cpu_us())).collect(),
        })
        .collect();
    bars(&root.join("bench/results/workers-cpu.svg"), &format!("One worker and two: {title}"), &panels)?;
    let _ = writeln!(table, "\n![{title}](workers-cpu.svg)");
    let missed = judged.iter().filter(|judged| judged.missed()).count();
    Report {
        name: "workers",
        title: "One worker and two",
        table: &table,
        how: &how(),
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("wrk", "-v")],
        figures: json!({
            "scenarios": outcome.measured.iter().map(|measured| json!({
                "scenario": measured.scenario, "load": measured.load.replace('`', ""),
                "rows": measured.rows.iter().map(|row| json!({
                    "server": row.server, "cpu_us_per_request": round(row.cpu_us()),
                    "rounds": row.runs.iter().map(|run| round(run.cpu_us_per_request)).collect::<Vec<f64>>(),
                    "share_by_thread": shares(&measured.scenario, &row.server)
                        .iter().map(|share| round(*share)).collect::<Vec<f64>>(),
                })).collect::<Vec<Value>>(),
            })).collect::<Vec<Value>>(),
            "missed": missed,
            "targets": super::page::told(&judged),
        }),
    }
    .write(root)?;
    ensure!(missed == 0, "{missed} targets missed");
    Ok(())
}

fn how() -> String {
    let Pace { rounds, run, .. } = Pace::USUAL;
    format!(
        "One worker on one core, or two on two cores; `wrk -t1 -c64` with keep-alive on the second core, which two workers \
         share with it: only CPU per request compares, so requests/s and waits are not told. {rounds} interleaved rounds \
         of {} s, medians. Every answer came from the cache. larder runs bench/full.toml, everything on; nginx with two \
         workers has `reuseport`, so that connections spread over both, and `worker_cpu_affinity auto`. \"% of it by \
         thread\" has every thread with at least {:.0} % of the server's CPU time. \"10 000 keys\": asked for in a fixed \
         order in which the share of the key in place k goes with 1/k (bench/load/zipf.lua). The targets compare CPU per \
         request with two workers over that with one: at most {TIE} times nginx's ratio, since so much do two runs of one \
         server differ; and for one key at most {TIE} times that for many, for a key that bounced between the cores would \
         show there.",
        run.as_secs(),
        WORKS_MIN * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_beyond_the_other_and_a_tie_misses() {
        let check = |larder, other, holds: bool| {
            let judged = judge_ratios("134 B", larder, "nginx", other);
            assert_eq!(judged.verdict, Verdict::of(holds), "{} {}", judged.target, judged.figure);
        };
        check(1.1, 1.1, true);
        check(1.15, 1.1, true);
        check(1.16, 1.1, false);
        check(f64::NAN, 1.1, false);
    }

    #[test]
    fn threads_that_do_next_to_nothing_have_no_share() {
        assert_eq!(
            shares_of(vec![0.01, 1.0, 2.99]).iter().map(|s| round(*s)).collect::<Vec<_>>(),
            [0.75, 0.25]
        );
        assert!(shares_of(Vec::new()).is_empty());
    }
}
