//! Two workers on two cores: whether what is asked for most bounces between them.
//!
//! In: one hot key of two sizes, and ten thousand keys; larder and nginx, each with one worker and with two in the same
//! rounds. Out: CPU per request, and the cost with two workers over the cost with one. Where cores write to what they
//! share, this ratio grows with the heat of a key.
//! Deliberately absent: requests per second. With two cores in use the load has to share them, so rates and waits say
//! nothing here.

use std::path::Path;

use anyhow::Result;

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, Setup, Workers, nginx};
use super::drive::Load;
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::runner::{Pace, Row, Scenario, run as measure};
use crate::origin::body;

const KEYS: usize = 10_000;
const ONE_HOT: &[(&str, usize)] = &[("134 B, one key", 134), ("8357 B, one key", 8357)];
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
/// larder's ratio may be this much of nginx's: as much as two runs of one server differ.
const OF_NGINX: f64 = 1.05;

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let mut scenarios: Vec<Scenario<'_>> = ONE_HOT
        .iter()
        .map(|(name, bytes)| Scenario::hit(*name, &format!("/page/{bytes}"), body(*bytes), rows(&kit)))
        .collect();
    scenarios.push(spread(&kit));
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let judged = judge(&outcome)?;
    Page {
        name: "workers",
        title: "One worker and two",
        how: format!(
            "One worker on one core, or two on two cores; `wrk -t1 -c64` with keep-alive on the second core, which two \
             workers share with it: only CPU per request compares, requests/s and waits do not. Three interleaved rounds \
             of 3 s, medians. Every answer came from the cache. larder runs bench/full.toml, everything on. \"10 000 \
             keys\": asked for in a fixed order in which the share of the key in place k goes with 1/k \
             (bench/load/zipf.lua). The targets compare CPU per request with two workers over that with one: at most \
             {OF_NGINX} times nginx's ratio, since so much do two runs of one server differ. A key that bounced between \
             the cores would show as a ratio that is higher for one key than for many."
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

fn rows(kit: &Kit) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (workers, larder, nginx) in
        [(Workers::ONE, LARDER.one, NGINX.one), (Workers::TWO, LARDER.two, NGINX.two)]
    {
        rows.push(with(workers, larder, move |setup| larder::full(kit, setup, larder, AccessLog::Off)));
        rows.push(with(workers, nginx, move |setup| nginx::cache(setup, nginx, "")));
    }
    rows
}

/// A row with so many workers, whatever its scenario has.
fn with<'a>(workers: Workers, name: &str, start: impl Fn(&Setup<'_>) -> Result<Contender> + 'a) -> Row<'a> {
    Row::new(name, move |setup| start(&Setup { workers, ..*setup }))
}

fn spread(kit: &Kit) -> Scenario<'_> {
    let mut scenario = Scenario::hit(SPREAD, "/key/0/134", body(134), rows(kit));
    scenario.prime = Some(format!("/key/[0-{}]/134", KEYS - 1));
    scenario.load = Load::Wrk { connections: 64, script: Some("zipf.lua") };
    scenario
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    let names = ONE_HOT.iter().map(|(name, _)| *name).chain([SPREAD]);
    names
        .map(|scenario| {
            let (larder, nginx) = (ratio(outcome, scenario, &LARDER)?, ratio(outcome, scenario, &NGINX)?);
            Ok(judge_ratios(scenario, larder, nginx))
        })
        .collect()
}

/// CPU per request with two workers over that with one.
fn ratio(outcome: &Outcome, scenario: &str, pair: &Pair) -> Result<f64> {
    Ok(outcome.figures(scenario, pair.two)?.cpu_us() / outcome.figures(scenario, pair.one)?.cpu_us())
}

fn judge_ratios(scenario: &str, larder: f64, nginx: f64) -> Judged {
    Judged {
        scenario: scenario.to_owned(),
        target: format!(
            "{}: CPU per request with 2 workers over 1 at most {OF_NGINX} of {}'s {nginx:.3}",
            LARDER.server, NGINX.server
        ),
        figure: format!("{larder:.3}"),
        holds: larder <= nginx * OF_NGINX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_beyond_that_of_nginx_misses() {
        let check = |larder, nginx, holds: bool| {
            let judged = judge_ratios("134 B", larder, nginx);
            assert_eq!(judged.holds, holds, "{} {}", judged.target, judged.figure);
        };
        check(1.1, 1.1, true);
        check(1.15, 1.1, true);
        check(1.16, 1.1, false);
        check(f64::NAN, 1.1, false);
    }
}
