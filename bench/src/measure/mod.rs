//! Measurements beside the peers, on one machine, in one run.
//!
//! In: larder as it is shipped and the peers as packaged. Out: a table on the terminal, bench/results/NAME.{json,md} and plots.
//! Servers share one core in turns and the load has another, so that CPU time per request is comparable.
//! A run that went wrong (a wrong status, a torn body, an error) writes nothing: figures of errors mislead.

mod asker;
mod connections;
pub(crate) mod contender;
mod curl;
mod disks;
mod drive;
mod files;
mod fleet;
mod fragments;
mod handshakes;
mod herd;
mod hit;
mod http2;
mod idle;
mod large;
mod latency;
mod load;
mod machine;
mod memory;
mod metric;
mod microcache;
mod million;
mod miss;
mod objects;
mod outage;
mod outcome;
mod page;
pub(crate) mod pauses;
mod placement;
mod plot;
mod purges;
mod receipts;
mod reclaim;
mod records;
mod redis;
pub(crate) mod report;
mod requests;
mod rows;
mod runner;
mod scan;
mod sharing;
mod slow_app;
mod tls;
mod tools;
mod turns;
mod validity;
mod versions;
mod watch;
mod watching;
pub(crate) mod wordpress;
mod workers;

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Every measurement by name, in the order in which `all` runs them.
pub(crate) const NAMES: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "tls",
    "handshakes",
    "connections",
    "miss",
    "workers",
    "latency",
    "watching",
    "memory",
    "idle",
    "scan",
    "microcache",
    "herd",
    "wordpress",
    "files",
    "placement",
    "large",
    "objects",
    "reclaim",
    "purges",
    "fragments",
    "versions",
    "records",
    "fleet",
    "outage",
    "million",
];

/// What the command line takes: every name, and `all`.
pub(crate) fn names() -> Vec<&'static str> {
    ["all"].into_iter().chain(NAMES.iter().copied()).collect()
}

/// Runs the measurement of this name, or `all` of them: one that fails does not keep the others from running.
///
/// # Errors
/// Of each that failed, after the last.
pub(crate) fn run(root: &Path, name: &str) -> Result<()> {
    let all = name == "all";
    let chosen: Vec<&str> = NAMES.iter().copied().filter(|one| all || name == *one).collect();
    // Before the first of them: what is missing should show now, and not after an hour.
    for name in &chosen {
        tools::need(root, name)?;
    }
    let mut failed = Vec::new();
    for name in chosen {
        let measure = match name {
            "hit" => hit::run,
            "requests" => requests::run,
            "http2" => http2::run,
            "tls" => tls::run,
            "handshakes" => handshakes::run,
            "connections" => connections::run,
            "miss" => miss::run,
            "workers" => workers::run,
            "latency" => latency::run,
            "watching" => watching::run,
            "memory" => memory::run,
            "idle" => idle::run,
            "scan" => scan::run,
            "microcache" => microcache::run,
            "herd" => herd::run,
            "files" => files::run,
            "placement" => placement::run,
            "large" => large::run,
            "objects" => objects::run,
            "reclaim" => reclaim::run,
            "purges" => purges::run,
            "fragments" => fragments::run,
            "versions" => versions::run,
            "records" => records::run,
            "fleet" => fleet::run,
            "outage" => outage::run,
            "million" => million::run,
            _ => wordpress::run,
        };
        if let Err(error) = measure(root).with_context(|| format!("bench {name}")) {
            if all {
                eprintln!("bench: {error:#}, going on with the next");
            }
            failed.push(format!("{error:#}"));
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(())
}
