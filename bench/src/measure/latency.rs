//! How long a hit waits when every server has the same to do.
//!
//! In: two sizes; first what each server reaches at most, then requests at half of what the slowest reaches, sent when
//! they are due (an open loop). Out: p50, p99 and p99.9 at that rate, and larder's target: no worse than the best peer.
//! A server that did not keep up with the rate refuses the whole measurement, for its load was another one.
//! Deliberately absent: the wait of a request that was due while its connection waited for an answer; h2load counts from
//! the moment when it sends. At half load this is rare, and the rate that was reached shows it. Nor are arrivals spread:
//! all connections of h2load are due at once, so what is measured is a burst of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::contender::{Kit, Protocol, floor};
use super::drive::Load;
use super::hit::floor_fields;
use super::outcome::{Judged, Measured, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{
    H2O, HAPROXY, LARDER, NGINX, NGINX_FILES, VARNISH, of_floor, of_h2o, of_haproxy, of_larder,
    of_larder_before, of_nginx, of_nginx_files, of_varnish,
};
use super::runner::{Pace, Scenario, run as measure};
use harness::origin::body;

const SIZES: &[(&str, usize)] = &[("134 B", 134), ("8357 B", 8357)];
const PEERS: &[&str] = &[NGINX, NGINX_FILES, VARNISH, HAPROXY, H2O];
/// larder's p99 may be this much of the best peer's: as much as two runs of one server differ.
const OF_BEST: f64 = 1.05;

const CONNECTIONS: usize = 64;
/// Of what the slowest reaches.
const SHARE: f64 = 0.5;
/// Of the rate that is asked for, a server reaches at least this.
const KEPT_UP: f64 = 0.95;
/// For what each reaches at most.
const SHORT: Pace = Pace { rounds: 1, run: Duration::from_secs(2), warm: Duration::from_secs(1) };

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let most: Vec<Scenario<'_>> =
        SIZES.iter().map(|(name, bytes)| scenario(&kit, &at_most(name), *bytes, None)).collect();
    let mut most = measure(&kit, &most, SHORT)?;
    let mut equal = Vec::with_capacity(SIZES.len());
    let mut rates = Vec::with_capacity(SIZES.len());
    for (name, bytes) in SIZES {
        let rate = SHARE * slowest(&most, &at_most(name))?;
        equal.push(scenario(&kit, name, *bytes, Some(rate)));
        rates.push(rate);
    }
    let mut outcome = measure(&kit, &equal, Pace::USUAL)?;
    for (measured, rate) in outcome.measured.iter().zip(&rates) {
        kept_up(measured, *rate)?;
    }
    outcome.measured.append(&mut most.measured);
    let judged = SIZES
        .iter()
        .map(|(name, _)| outcome.p99_at_most(name, LARDER, OF_BEST, best_peer(&outcome, name)?))
        .collect::<Result<Vec<Judged>>>()?;
    Page {
        name: "latency",
        title: "Waits at equal load",
        how: format!(
            "One worker each, pinned to one core; h2load with {CONNECTIONS} connections kept alive on another. \"at most\": \
             each connection asks as soon as it has its answer, one run of {} s. The others: an open loop at {SHARE} of what \
             the slowest server reached there, the same rate for all, three interleaved rounds of 3 s, medians; every \
             server reached at least {KEPT_UP} of that rate in every round. larder's p99 is judged by that of the best peer, \
             the floor not counted: at most {OF_BEST} times it, since so much do two runs of one server differ. Every answer came from the cache. larder runs bench/full.toml, everything on. h2load counts a wait \
             from the moment when it sent a request, and its connections are due at the same moments: \
             {CONNECTIONS} requests come at once, and a wait is mostly that of those ahead. What other programs and the hypervisor take of the cores is in the \
             waits of whoever runs then.",
            SHORT.run.as_secs()
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

/// The name of the scenario that finds out what each reaches.
fn at_most(name: &str) -> String {
    format!("{name}, at most")
}

fn scenario<'a>(kit: &'a Kit, name: &str, bytes: usize, rate: Option<f64>) -> Scenario<'a> {
    let (content, target) = (body(bytes), format!("/page/{bytes}"));
    let fixed = floor::answer("200 OK", &floor_fields(), &content);
    let file = vec![target.clone()];
    let mut rows = vec![
        of_floor(kit, fixed),
        of_larder(kit),
        of_nginx(),
        of_nginx_files(file.clone()),
        of_varnish(),
        of_haproxy(),
        of_h2o(file),
    ];
    rows.extend(of_larder_before(kit));
    let mut scenario = Scenario::hit(name, &target, content, rows);
    scenario.load = Load::H2load { protocol: Protocol::Http1, connections: CONNECTIONS, streams: 1, rate };
    scenario
}

/// What the slowest server reaches, in requests per second.
fn slowest(outcome: &Outcome, scenario: &str) -> Result<f64> {
    let mut least = outcome.figures(scenario, LARDER)?.rate();
    for peer in PEERS {
        least = least.min(outcome.figures(scenario, peer)?.rate());
    }
    Ok(least)
}

/// The peer with the lowest p99.
fn best_peer(outcome: &Outcome, scenario: &str) -> Result<&'static str> {
    let mut best: Option<(&'static str, f64)> = None;
    for peer in PEERS {
        let p99 = outcome.figures(scenario, peer)?.p99_us();
        if best.is_none_or(|(_, least)| p99 < least) {
            best = Some((peer, p99));
        }
    }
    best.map(|(peer, _)| peer).context("no peers")
}

/// That every server had the load that it was to have, in each of its rounds.
fn kept_up(measured: &Measured, rate: f64) -> Result<()> {
    for row in &measured.rows {
        let (reached, _) = row.spread(|run| run.driven.requests_per_s);
        ensure!(
            reached >= KEPT_UP * rate,
            "{}, {}: {reached:.0} requests/s of {rate:.0} that were due, in its slowest round",
            measured.scenario,
            row.server
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::measure::outcome::tests::outcome;

    #[test]
    fn a_server_that_does_not_keep_up_refuses_the_measurement() {
        // `quick` reaches 1000 requests per second in its slowest round, 4000 in the middle one; `slow` twice as many.
        let outcome = outcome();
        let measured = outcome.measured.first().unwrap();
        assert!(kept_up(measured, 1000.0).is_ok());
        assert!(kept_up(measured, 1050.0).is_ok());
        let refused = kept_up(measured, 1075.0).unwrap_err().to_string();
        assert!(refused.contains("quick"), "{refused}");
    }
}
