//! Small hits and their connections: one for each request, and 1, 64 and 1000 that are kept.
//!
//! In: 134 bytes from the cache. Out: the usual figures of each server, and larder's target for what accepting,
//! answering once and closing costs.
//! Deliberately absent: what an idle connection has in memory (idle.rs), TLS, whose handshake would hide the rest, and
//! HAProxy where each request has a connection: ab speaks HTTP/1.0, for which it ignores its cache.

use std::path::Path;

use anyhow::Result;

use super::contender::{Kit, floor};
use super::drive::Load;
use super::hit::floor_fields;
use super::page::{PROGRAMS, Page};
use super::rows::{
    LARDER, NGINX, of_floor, of_h2o, of_haproxy, of_larder, of_larder_before, of_nginx, of_nginx_files,
    of_varnish,
};
use super::runner::{Pace, Scenario, run as measure};
use harness::origin::body;

const TARGET: &str = "/page/134";
const BYTES: usize = 134;

const NEW_EACH: &str = "a connection each";
const NEW_EACH_OF_NGINX: f64 = 1.0;

const LOADS: &[(&str, Load)] = &[
    (NEW_EACH, Load::Ab { connections: 64 }),
    ("1 kept", Load::Wrk { connections: 1, script: None }),
    ("64 kept", Load::Wrk { connections: 64, script: None }),
    ("1000 kept", Load::Wrk { connections: 1000, script: None }),
];

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios: Vec<Scenario<'_>> = LOADS.iter().map(|(name, load)| scenario(&kit, name, *load)).collect();
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let judged = [outcome.cpu_at_most(NEW_EACH, LARDER, NEW_EACH_OF_NGINX, NGINX)?];
    let loads: Vec<String> =
        LOADS.iter().map(|(name, load)| format!("\"{name}\": {}", load.told())).collect();
    Page {
        name: "connections",
        title: "Small hits by connections",
        how: format!(
            "One worker each, pinned to one core, the load on another; {BYTES} bytes from the cache; three interleaved \
             rounds of 3 s, medians. {}. ab speaks HTTP/1.0, so the server closes each connection and HAProxy ignores its \
             cache; ab tells no p99.9. One connection waits for each answer, so that neither side is ever busy: CPU per request has each wake-up \
             in it, and nothing is done in batches. larder runs bench/full.toml, everything on. \"files\" are on tmpfs. \
             The floor is a bare epoll loop with a fixed answer.",
            loads.join("; ")
        ),
        programs: &[PROGRAMS, &[("ab", "-V")]].concat(),
    }
    .write(root, &outcome, &judged)
}

fn scenario<'a>(kit: &'a Kit, name: &str, load: Load) -> Scenario<'a> {
    let fixed = floor::answer("200 OK", &floor_fields(), &body(BYTES));
    let file = vec![TARGET.to_owned()];
    let mut rows = vec![
        of_floor(kit, fixed),
        of_larder(kit),
        of_nginx(),
        of_nginx_files(file.clone()),
        of_varnish(),
        of_h2o(file),
    ];
    if !matches!(load, Load::Ab { .. }) {
        rows.push(of_haproxy());
    }
    rows.extend(of_larder_before(kit));
    let mut scenario = Scenario::hit(name, TARGET, body(BYTES), rows);
    scenario.load = load;
    scenario
}
