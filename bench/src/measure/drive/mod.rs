//! Load from the tools that everybody knows: wrk, ab and h2load, each pinned to the load's core.
//!
//! In: a [`Load`], a [`Request`] and an address. Out: a [`Driven`]: how many requests, how fast, how long each waited,
//! how many bytes came back for one, and how busy the load's core was. A tool that saw any error is an error here.
//! Deliberately absent: clients that look into each answer (load.rs), for these tools only count.

mod ab;
mod h2load;
mod handshakes;
mod histogram;
mod wrk;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::contender::{LOAD_CORE, Protocol, pinned};
use super::curl::Version;
use harness::children::output_within;
use larder_testkit::certificates::Certificates;

pub(crate) use handshakes::{Handshake, LAST_REQUEST};

/// How much longer than told a tool may run: it connects before, and sums up after.
const OVERTIME_MAX: Duration = Duration::from_secs(60);

/// The share of the handshakes due that have to be made.
const HANDSHAKES_KEPT_UP: f64 = 0.95;

/// What is asked for, again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Path and query.
    pub(crate) target: String,
    /// Field lines without their ends, `Name: value`.
    pub(crate) fields: Vec<String>,
    /// Over TLS. No tool looks at the certificate.
    pub(crate) secured: bool,
}

impl Request {
    /// A request without fields of its own.
    pub(crate) fn of(target: impl Into<String>) -> Self {
        Self { target: target.into(), fields: Vec::new(), secured: false }
    }

    /// The target as a server at `address` has it.
    pub(super) fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.secured { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.target)
    }
}

/// Who asks, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// wrk with keep-alive, each connection asking as soon as it has its answer. `script` is a file in bench/load
    /// that varies the requests; none asks for the same each time.
    Wrk { connections: usize, script: Option<&'static str> },
    /// ab, which opens a connection for each request.
    Ab { connections: usize },
    /// h2load: `connections`, each with so many requests at once. With `rate`, requests per second of all connections
    /// together, sent when they are due and not when the last one is answered.
    H2load { protocol: Protocol, connections: usize, streams: usize, rate: Option<f64> },
    /// A connection over TLS for each request, one after the other.
    Handshakes(Handshake),
    /// h2load over HTTP/1.1 at a rate of requests per second, beside so many full handshakes per second.
    BesideHandshakes { connections: usize, per_s: f64, handshakes_per_s: f64 },
}

impl Load {
    /// What the listener has to speak.
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::H2load { protocol, .. } => *protocol,
            Self::Wrk { .. } | Self::Ab { .. } | Self::Handshakes(_) | Self::BesideHandshakes { .. } => {
                Protocol::Http1
            }
        }
    }

    /// As a request says it: ab speaks HTTP/1.0, whose answers have another head.
    pub(crate) fn version(&self) -> Version {
        match (self, self.protocol()) {
            (Self::Ab { .. }, _) => Version::Http10,
            (_, Protocol::Http1) => Version::Http11,
            (_, Protocol::Http2) => Version::Http2,
        }
    }

    /// Connections that it opens, once each; `None` where each request has one of its own.
    pub(crate) fn connections_kept(&self) -> Option<usize> {
        match self {
            Self::Wrk { connections, .. } | Self::H2load { connections, .. } => Some(*connections),
            Self::Ab { .. } | Self::Handshakes(_) | Self::BesideHandshakes { .. } => None,
        }
    }

    /// Requests that may be under way when the time is up.
    pub(crate) fn in_flight_max(&self) -> usize {
        match self {
            Self::Wrk { connections, .. }
            | Self::Ab { connections }
            | Self::BesideHandshakes { connections, .. } => *connections,
            Self::Handshakes(_) => 1,
            Self::H2load { connections, streams, .. } => connections * streams,
        }
    }

    /// As one would type it.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Wrk { connections, script: None } => format!("`wrk -t1 -c{connections}`"),
            Self::Wrk { connections, script: Some(script) } => {
                format!("`wrk -t1 -c{connections} -s bench/load/{script}`")
            }
            Self::Ab { connections } => format!("`ab -c {connections}` (a connection for each request)"),
            Self::H2load { protocol, connections, streams, rate } => {
                let h1 = if *protocol == Protocol::Http1 { " --h1" } else { "" };
                let rps = rate.map(|rate| format!(", {rate:.0} requests/s in all")).unwrap_or_default();
                format!("`h2load{h1} -c{connections} -m{streams}`{rps}")
            }
            Self::Handshakes(kind) => kind.told().to_owned(),
            Self::BesideHandshakes { connections, per_s, handshakes_per_s } => format!(
                "`h2load --h1 -c{connections}`, {per_s:.0} requests/s in all, beside {handshakes_per_s:.0} full handshakes/s"
            ),
        }
    }
}

/// What a tool brought.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Driven {
    pub(crate) requests: f64,
    pub(crate) requests_per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// `None` where the tool does not tell.
    pub(crate) p999_us: Option<f64>,
    /// Bytes received for one request, heads included.
    pub(crate) bytes_per_request: f64,
    /// How busy the tool kept its core, in percent; the runner adds what an origin there took.
    pub(crate) load_percent: f64,
}

/// Sends `request` to `address` for `length`.
///
/// # Errors
/// The tool cannot be run, runs on far beyond its time, or saw an error: a connection refused or closed, a time-out, a
/// status above 399.
pub(crate) fn drive(
    root: &Path,
    load: &Load,
    request: &Request,
    (address, certificates): (SocketAddr, &Certificates),
    length: Duration,
) -> Result<Driven> {
    match load {
        Load::Wrk { connections, script } => {
            wrk::drive(root, *connections, *script, request, address, length)
        }
        Load::Ab { connections } => watched(|| ab::drive(*connections, request, address, length)),
        Load::H2load { connections, streams, rate, .. } => {
            let shape = h2load::Shape { connections: *connections, streams: *streams, rate: *rate };
            watched(|| h2load::drive(load.protocol(), &shape, request, address, length))
        }
        Load::Handshakes(kind) => handshakes::drive(*kind, None, certificates, (address, request), length),
        Load::BesideHandshakes { connections, per_s, handshakes_per_s } => {
            let shape = h2load::Shape { connections: *connections, streams: 1, rate: Some(*per_s) };
            let handshakes = || {
                let kind = handshakes::Handshake::Full;
                handshakes::drive(kind, Some(*handshakes_per_s), certificates, (address, request), length)
            };
            std::thread::scope(|scope| {
                let beside = scope.spawn(handshakes);
                let driven = watched(|| h2load::drive(load.protocol(), &shape, request, address, length));
                let beside = beside.join().map_err(|_| anyhow!("the handshakes panicked"))??;
                ensure!(
                    beside.requests_per_s >= HANDSHAKES_KEPT_UP * handshakes_per_s,
                    "{:.0} handshakes/s of {handshakes_per_s:.0}",
                    beside.requests_per_s
                );
                driven
            })
        }
    }
    .with_context(|| load.told())
}

/// What `drive` brings, with how busy its tool was, which it does not tell itself.
fn watched(drive: impl FnOnce() -> Result<Driven>) -> Result<Driven> {
    let (before, began) = (children_ticks(), Instant::now());
    let mut driven = drive()?;
    // USER_HZ is 100 on every Linux: a tick is 10 ms.
    let busy_s = (children_ticks() - before) / 100.0;
    driven.load_percent = 100.0 * busy_s / began.elapsed().as_secs_f64();
    Ok(driven)
}

/// The beginning of a tool's command.
fn tool(name: &str) -> Command {
    let mut command = pinned(LOAD_CORE);
    command.arg(name);
    command
}

/// What a tool prints that was told to end after `length`.
fn output(command: &mut Command, length: Duration) -> Result<String> {
    output_within(command, length + OVERTIME_MAX)
}

/// User and system time of ended children, in ticks. Servers still run, so what is added meanwhile is the tool's.
fn children_ticks() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    ticks(13) + ticks(14)
}

/// What `share` of the sorted values do not exceed; `share` in 0..=1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            assert_eq!(percentile(&values, share).to_bits(), f64::to_bits(expected));
        }
        assert!(percentile(&[], 0.5).is_nan());
    }
}
