//! Hits in memory: what an answer costs beyond the floor, beside nginx, Varnish, HAProxy and H2O.
//!
//! In: bodies of four sizes, asked for by 64 connections with keep-alive. Out: CPU time per request, requests per
//! second, waits and memory of each server, and larder's targets judged by them.
//! Deliberately absent: latency at equal load, which needs an open loop (latency.rs).

use std::path::Path;

use anyhow::Result;

use super::contender::larder::{self, AccessLog};
use super::contender::{Kit, floor, nginx};
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{
    FLOOR, H2O, LARDER, NGINX, VARNISH, of_floor, of_h2o, of_haproxy, of_larder, of_larder_before, of_nginx,
    of_nginx_files, of_varnish,
};
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::origin::body;

/// A size, and what larder's CPU per request may be of each peer's: nginx proxy_cache, Varnish.
struct Size {
    name: &'static str,
    bytes: usize,
    of_nginx: f64,
    of_varnish: f64,
}

const SIZES: &[Size] = &[
    Size { name: "134 B", bytes: 134, of_nginx: 0.65, of_varnish: 0.5 },
    Size { name: "8357 B", bytes: 8357, of_nginx: 0.65, of_varnish: 0.6 },
    Size { name: "57 000 B", bytes: 57_000, of_nginx: 0.85, of_varnish: 0.6 },
    Size { name: "1 MB", bytes: 1_000_000, of_nginx: 0.5, of_varnish: 1.0 },
];
const OF_FLOOR: f64 = 1.25;
/// The floor's answers are as long as larder's, give or take this share.
const FLOOR_BYTES: f64 = 0.03;
const OF_H2O: f64 = 1.0;
const LOG_OF_NONE: f64 = 1.1;

const LOGGED: &str = "larder, access log";
const NGINX_OPEN_FILES: &str = "nginx proxy_cache, open_file_cache";

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios: Vec<Scenario<'_>> = SIZES.iter().map(|size| scenario(&kit, size)).collect();
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let judged = judge(&outcome)?;
    Page {
        name: "hit",
        title: "Hits in memory",
        how: "One worker each, pinned to one core; `wrk -t1 -c64` with keep-alive on another; three interleaved rounds of \
              3 s, medians. Every answer came from the cache. larder runs bench/full.toml, everything on; with \"access \
              log\" it writes a line of JSON for each request to a file in memory. \"files\" are on tmpfs. The floor is a \
              bare epoll loop with a fixed answer."
            .to_owned(),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

fn scenario<'a>(kit: &'a Kit, size: &Size) -> Scenario<'a> {
    let (content, target) = (body(size.bytes), format!("/page/{}", size.bytes));
    let fixed = floor::answer("200 OK", &floor_fields(), &content);
    let mut rows = vec![
        of_floor(kit, fixed),
        of_larder(kit),
        Row::new(LOGGED, move |setup| larder::full(kit, setup, LOGGED, AccessLog::On)),
        of_nginx(),
        Row::new(NGINX_OPEN_FILES, |setup| nginx::cache(setup, NGINX_OPEN_FILES, nginx::OPEN_FILES)),
        of_nginx_files(vec![target.clone()]),
        of_varnish(),
        of_haproxy(),
        of_h2o(vec![target.clone()]),
    ];
    rows.extend(of_larder_before(kit));
    Scenario::hit(size.name, &target, content, rows)
}

/// The fields of an answer of larder's: the floor sends as many bytes as it does.
pub(super) fn floor_fields() -> Vec<String> {
    [
        "Content-Type: text/plain",
        "Cache-Control: max-age=3600",
        "ETag: \"86\"",
        "Date: Thu, 01 Jan 2026 00:00:00 GMT",
        "Age: 1",
        "Cache-Status: larder; hit; ttl=3599",
        "Via: 1.1 larder",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    let mut judged = Vec::new();
    for size in SIZES {
        outcome.same_bytes(size.name, LARDER, FLOOR_BYTES, FLOOR)?;
        for (server, share, beside) in [
            (LARDER, OF_FLOOR, "floor"),
            (LARDER, size.of_nginx, NGINX),
            (LARDER, size.of_varnish, VARNISH),
            (LARDER, OF_H2O, H2O),
            (LOGGED, LOG_OF_NONE, LARDER),
        ] {
            judged.push(outcome.cpu_at_most(size.name, server, share, beside)?);
        }
    }
    Ok(judged)
}
