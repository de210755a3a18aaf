//! Hits over TLS 1.3, over HTTP/1.1 and HTTP/2.
//!
//! In: bodies of four sizes over kept connections, which wrk and h2load open before the time begins. Out: the same figures as in
//! clear text, and larder's targets judged by them. Every server has one certificate of ECDSA over P-256. The cipher suite is what
//! it agrees on with the tool by itself.
//! Deliberately absent: handshakes (handshakes.rs), and Varnish, which has no TLS.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::contender::larder::{self, AccessLog};
use super::contender::{Kit, Protocol, caddy};
use super::drive::{Load, Request};
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{
    CADDY, H2O, HAPROXY, LARDER, NGINX, NGINX_FILES, of_caddy, of_h2o, of_haproxy, of_larder, of_nginx,
    of_nginx_files,
};
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::browser;
use harness::origin::body;

/// A size, and what larder's CPU per request may be of nginx proxy_cache's over HTTP/1.1.
const SIZES: &[(&str, usize, f64)] =
    &[("134 B", 134, 0.6), ("8357 B", 8357, 0.6), ("57 000 B", 57_000, 0.75), ("1 MB", 1_000_000, 0.75)];
/// The sizes that are also asked for over HTTP/2.
const HTTP2_SIZES: &[(&str, usize)] = &[("134 B", 134), ("8357 B", 8357)];
const OF_BEST: f64 = 1.05;
const OF_CLEAR: f64 = 1.4;
const HTTP2_OF_HAPROXY: f64 = 0.6;
const HTTP2_OF_H2O: f64 = 1.25;

const CLEAR: &str = "larder in clear text";
const PEERS: &[&str] = &[NGINX, NGINX_FILES, HAPROXY, H2O];

const HTTP2: Load = Load::H2load { protocol: Protocol::Http2, connections: 16, streams: 10, rate: None };

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let caddy = kit.caddy()?;
    let scenario = |name, bytes| scenario(&kit, caddy.as_ref(), name, bytes);
    let mut scenarios: Vec<Scenario<'_>> =
        SIZES.iter().map(|(size, bytes, _)| scenario(over_http1(size), *bytes)).collect();
    scenarios.push(asked_by_a_browser(scenario(over_http1(BROWSER), 134)));
    for (size, bytes) in HTTP2_SIZES {
        scenarios.push(Scenario { load: HTTP2, ..scenario(over_http2(size), *bytes) });
    }
    let browser = scenario(over_http2(BROWSER), 134);
    scenarios.push(asked_by_a_browser(Scenario { load: HTTP2, ..browser }));
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let peers: Vec<_> = PEERS.iter().copied().chain(caddy.as_ref().map(|_| CADDY)).collect();
    let judged = judge(&outcome, &peers)?;
    Page {
        name: "tls",
        title: "Hits over TLS",
        how: format!(
            "One worker each, pinned to one core; `wrk -t1 -c64` over HTTP/1.1 and {} over HTTP/2 on another, each with \
             kept connections; three interleaved rounds of 3 s, medians. TLS 1.3, a certificate of ECDSA over P-256. Every answer came from the cache. \
             larder runs bench/full.toml, everything on. \"files\" are on tmpfs.{} \"As a browser asks\": with the {} fields \
             that Chromium sends for a picture. Where the load's core is near 100 % it was the limit, and CPU per request \
             is what compares.",
            HTTP2.told(),
            caddy::told(caddy.as_ref()),
            browser::FIELDS.len()
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

const BROWSER: &str = "134 B as a browser asks";

fn over_http1(what: &str) -> String {
    format!("HTTP/1.1, {what}")
}

fn over_http2(what: &str) -> String {
    format!("HTTP/2, {what}")
}

fn scenario<'a>(kit: &'a Kit, caddy: Option<&PathBuf>, name: String, bytes: usize) -> Scenario<'a> {
    let target = format!("/page/{bytes}");
    let file = vec![target.clone()];
    let mut rows = vec![
        of_larder(kit),
        Row::new(CLEAR, move |setup| larder::full(kit, setup, CLEAR, AccessLog::Off)).in_clear(),
        of_nginx(),
        of_nginx_files(file.clone()),
        of_haproxy(),
        of_h2o(file.clone()),
    ];
    rows.extend(of_caddy(caddy, file));
    let mut scenario = Scenario::hit(name, &target, body(bytes), rows);
    scenario.request.secured = true;
    scenario
}

/// With the fields of a browser.
pub(super) fn asked_by_a_browser(scenario: Scenario<'_>) -> Scenario<'_> {
    let fields = browser::FIELDS.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    Scenario { request: Request { fields, ..scenario.request }, ..scenario }
}

fn judge(outcome: &Outcome, peers: &[&'static str]) -> Result<Vec<Judged>> {
    let mut judged = Vec::new();
    for (size, _, of_nginx) in SIZES {
        let scenario = over_http1(size);
        judged.push(outcome.cpu_at_most(&scenario, LARDER, *of_nginx, NGINX)?);
        judged.push(outcome.cpu_at_most_of_best(&scenario, LARDER, OF_BEST, peers)?);
    }
    judged.push(outcome.cpu_at_most(&over_http1("134 B"), LARDER, OF_CLEAR, CLEAR)?);
    for (size, _) in HTTP2_SIZES {
        let scenario = over_http2(size);
        judged.push(outcome.cpu_at_most(&scenario, LARDER, HTTP2_OF_HAPROXY, HAPROXY)?);
        judged.push(outcome.cpu_at_most(&scenario, LARDER, HTTP2_OF_H2O, H2O)?);
    }
    Ok(judged)
}
