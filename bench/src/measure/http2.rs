//! Hits over HTTP/2 in clear text, by prior knowledge.
//!
//! In: two sizes, asked for by h2load on 16 connections with 10 streams each. Out: the same figures as over HTTP/1.
//! Deliberately absent: TLS, whose cost is the same library's everywhere, and the floor, which speaks no HTTP/2.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::contender::{Kit, Protocol, caddy, varnish};
use super::drive::Load;
use super::page::{PROGRAMS, Page};
use super::rows::{VARNISH, of_caddy, of_h2o, of_haproxy, of_larder, of_nginx, of_nginx_files};
use super::runner::{Pace, Row, Scenario, run as measure};
use super::tls::asked_by_a_browser;
use harness::origin::body;

const SIZES: &[(&str, usize)] = &[("134 B", 134), ("8357 B", 8357)];
const LOAD: Load = Load::H2load { protocol: Protocol::Http2, connections: 16, streams: 10, rate: None };

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let caddy = kit.caddy()?;
    let scenario = |name, bytes| scenario(&kit, caddy.as_ref(), name, bytes);
    let mut scenarios: Vec<Scenario<'_>> = SIZES.iter().map(|(name, bytes)| scenario(name, *bytes)).collect();
    scenarios.push(asked_by_a_browser(scenario("134 B as a browser asks", 134)));
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    Page {
        name: "http2",
        title: "Hits over HTTP/2",
        how: format!(
            "One worker each, pinned to one core; {} in clear text on another; three interleaved rounds of 3 s, medians. \
             Every answer came from the cache. larder runs bench/full.toml, everything on.{} Where the load's core is near \
             100 % it was the limit, and CPU per request is what compares.",
            LOAD.told(),
            caddy::told(caddy.as_ref())
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &[])
}

fn scenario<'a>(kit: &'a Kit, caddy: Option<&PathBuf>, name: &str, bytes: usize) -> Scenario<'a> {
    let target = format!("/page/{bytes}");
    let file = vec![target.clone()];
    let mut rows = vec![
        of_larder(kit),
        of_nginx(),
        of_nginx_files(file.clone()),
        // Left to itself it asks the origin for every request with a cookie, such as a browser's.
        Row::new(VARNISH, |setup| varnish::without_cookies(setup, VARNISH)),
        of_haproxy(),
        of_h2o(file.clone()),
    ];
    rows.extend(of_caddy(caddy, file));
    let mut scenario = Scenario::hit(name, &target, body(bytes), rows);
    scenario.load = LOAD;
    scenario
}
