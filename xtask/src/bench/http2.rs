//! Hits over HTTP/2 in clear text, by prior knowledge.
//!
//! In: two sizes, asked for by h2load on 16 connections with 10 streams each. Out: the same figures as over HTTP/1.
//! Deliberately absent: TLS, whose cost is the same library's everywhere, and the floor, which speaks no HTTP/2.

use std::path::Path;

use anyhow::Result;

use super::contender::larder::{self, AccessLog};
use super::contender::{Kit, Protocol, h2o, haproxy, nginx, varnish};
use super::drive::Load;
use super::page::{PROGRAMS, Page};
use super::runner::{Pace, Row, Scenario, run as measure};
use crate::origin::body;

const SIZES: &[(&str, usize)] = &[("134 B", 134), ("8357 B", 8357)];
const LOAD: Load = Load::H2load { protocol: Protocol::Http2, connections: 16, streams: 10, rate: None };

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios: Vec<Scenario<'_>> =
        SIZES.iter().map(|(name, bytes)| scenario(&kit, name, *bytes)).collect();
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    Page {
        name: "http2",
        title: "Hits over HTTP/2",
        how: format!(
            "One worker each, pinned to one core; {} in clear text on another; three interleaved rounds of 3 s, medians. \
             Every answer came from the cache. larder runs bench/full.toml, everything on. Where the load's core is near \
             100 % it was the limit, and CPU per request is what compares.",
            LOAD.told()
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &[])
}

fn scenario<'a>(kit: &'a Kit, name: &str, bytes: usize) -> Scenario<'a> {
    let target = format!("/page/{bytes}");
    let file = vec![target.clone()];
    let rows = vec![
        Row::new("larder", move |setup| larder::full(kit, setup, "larder", AccessLog::Off)),
        Row::new("nginx proxy_cache", |setup| nginx::cache(setup, "nginx proxy_cache", "")),
        Row::new("Varnish", |setup| varnish::cache(setup, "Varnish", "")),
        Row::new("HAProxy", |setup| haproxy::cache(setup, "HAProxy")),
        Row::new("H2O files", move |setup| h2o::files(setup, "H2O files", &file)),
    ];
    let mut scenario = Scenario::hit(name, &target, body(bytes), rows);
    scenario.load = LOAD;
    scenario
}
