//! Misses: what passes through, stored or not.
//!
//! In: an origin that costs next to nothing and counts, on the load's core. Out: the usual figures, and larder's
//! targets: the throughput of large answers beside nginx's plain `proxy_pass`, and the CPU time of small ones beside
//! its `proxy_cache`, which stores them as well. That every answer was a miss, the origin's count says for each run;
//! that a server stores, or does not, is tried when it has started.
//! Deliberately absent: nginx storing 1 MB answers. It looks after its limit every ten seconds only, and has written
//! gigabytes into memory by then.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, Protocol, Setup, floor, haproxy, nginx, varnish};
use super::drive::{Load, Request};
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::runner::{Behind, OriginAsked, Pace, Row, Scenario, ask, run as measure};
use crate::children::output_within;
use crate::origin::body;

const LARDER: &str = "larder";
const NGINX: &str = "nginx proxy_cache";
const NGINX_PASS: &str = "nginx proxy_pass";
const VARNISH: &str = "Varnish";
const HAPROXY: &str = "HAProxy";

const ASK_MAX: Duration = Duration::from_secs(60);

/// What becomes of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It may not be stored, and is asked for under one target: what a cache learns of it helps.
    PassedOn,
    /// It is stored, each under a target of its own.
    Stored,
}

impl Fate {
    fn cache_control(self) -> &'static str {
        match self {
            Self::PassedOn => "no-store",
            Self::Stored => "max-age=3600",
        }
    }

    /// The script that varies the targets.
    fn script(self) -> Option<&'static str> {
        (self == Self::Stored).then_some("distinct.lua")
    }
}

/// Against what a scenario is judged.
#[derive(Clone, Copy)]
enum Target {
    /// Share of the throughput of nginx's `proxy_pass`.
    Throughput(f64),
    /// Share of the CPU per request of nginx's `proxy_cache`.
    Cpu(f64),
}

struct Kind {
    name: &'static str,
    bytes: usize,
    fate: Fate,
    target: Target,
}

const KINDS: &[Kind] = &[
    Kind { name: "1 MB, no-store", bytes: 1_000_000, fate: Fate::PassedOn, target: Target::Throughput(0.9) },
    Kind { name: "1 MB, stored", bytes: 1_000_000, fate: Fate::Stored, target: Target::Throughput(0.9) },
    Kind { name: "1 KB, stored", bytes: 1000, fate: Fate::Stored, target: Target::Cpu(1.1) },
    Kind { name: "134 B, stored", bytes: 134, fate: Fate::Stored, target: Target::Cpu(1.1) },
];

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let scenarios: Vec<Scenario<'_>> = KINDS.iter().map(|kind| scenario(&kit, kind)).collect();
    let outcome = measure(&kit, &scenarios, Pace::USUAL)?;
    let judged = judge(&outcome)?;
    Page {
        name: "miss",
        title: "Misses",
        how: "One worker each, pinned to one core; `wrk -t1 -c64` with keep-alive on another, and there too the origin, \
              which is the floor: a bare epoll loop with a fixed answer, asked over connections that are kept. Three \
              interleaved rounds of 3 s, medians. Every answer was a miss: the origin was asked at least once for each. \
              Of 1 MB answers, requests/s are megabytes per second. \"no-store\": one target, whose answer may not be \
              stored. \"stored\": a target of its own for each request (bench/load/distinct.lua), each stored, the oldest \
              making room where there is none; nginx stores on tmpfs, and with proxy_pass not at all. larder runs bench/full.toml, everything \
              on. The column \"load's core\" has wrk and the origin: near 100 they were the limit, and requests/s of \
              faster servers look alike."
            .to_owned(),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

fn scenario<'a>(kit: &'a Kit, kind: &Kind) -> Scenario<'a> {
    let (content, fate) = (body(kind.bytes), kind.fate);
    let target = format!("/page/NEW/{}", kind.bytes);
    let mut rows = vec![
        Row::new(LARDER, move |setup| {
            let server = larder::full(kit, setup, LARDER, AccessLog::Off)?;
            right_status(&cache_status(server.address, TRIED)?, fate)?;
            Ok(server)
        }),
        Row::new(NGINX_PASS, |setup| treats(nginx::proxy(setup, NGINX_PASS)?, setup, Fate::PassedOn)),
        Row::new(VARNISH, move |setup| treats(varnish::cache(setup, VARNISH, "")?, setup, fate)),
        Row::new(HAPROXY, move |setup| treats(haproxy::cache(setup, HAPROXY)?, setup, fate)),
    ];
    if let Target::Cpu(_) = kind.target {
        rows.push(Row::new(NGINX, move |setup| treats(nginx::cache(setup, NGINX, "")?, setup, fate)));
    }
    let fields = ["Content-Type: text/plain".to_owned(), format!("Cache-Control: {}", fate.cache_control())];
    let answer = floor::answer("200 OK", &fields, &content);
    let mut scenario = Scenario::hit(kind.name, &target, content, rows);
    scenario.behind = Behind::Fixed(answer);
    scenario.load = Load::Wrk { connections: 64, script: fate.script() };
    scenario.origin_asked = OriginAsked::Each;
    scenario
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    let judged = |kind: &Kind| match kind.target {
        Target::Throughput(share) => outcome.rate_at_least(kind.name, LARDER, share, NGINX_PASS),
        Target::Cpu(share) => outcome.cpu_at_most(kind.name, LARDER, share, NGINX),
    };
    KINDS.iter().map(judged).collect()
}

/// A target that no run asks for.
const TRIED: &str = "/page/tried/1";

/// The server, once what becomes of its answers is seen in how often it asks the origin for the same target.
fn treats(contender: Contender, setup: &Setup<'_>, fate: Fate) -> Result<Contender> {
    let before = floor::answered(setup.origin)?;
    for _ in 0..2 {
        ask(contender.address, Protocol::Http1, &Request::of(TRIED))?;
    }
    let asked = floor::answered(setup.origin)?.saturating_sub(before);
    let wanted = if fate == Fate::Stored { 1 } else { 2 };
    ensure!(asked == wanted, "the origin was asked {asked} times for the same target, not {wanted}");
    Ok(contender)
}

/// That this Cache-Status is of a miss with this end. larder is not judged by the origin's count, for its health checks
/// are in it.
fn right_status(said: &str, fate: Fate) -> Result<()> {
    let parameters: Vec<&str> = said.split(';').map(str::trim).collect();
    let has = |parameter| parameters.contains(&parameter);
    ensure!(has("fwd=uri-miss"), "no miss: `{said}`");
    ensure!(has("stored") == (fate == Fate::Stored), "stored where it may not be, or not stored: `{said}`");
    Ok(())
}

/// The Cache-Status of one answer.
fn cache_status(address: SocketAddr, target: &str) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "-o", "/dev/null", "-D", "-"]).arg(format!("http://{address}{target}"));
    let head = output_within(&mut command, ASK_MAX)?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let field = fields.find(|(name, _)| name.eq_ignore_ascii_case("cache-status"));
    Ok(field.context("no Cache-Status")?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_kind_refuses_a_server() {
        let check = |said, fate, right: bool| assert_eq!(right_status(said, fate).is_ok(), right, "{said}");
        check("larder; fwd=uri-miss; fwd-status=200; stored", Fate::Stored, true);
        check("larder; fwd=uri-miss; fwd-status=200; stored", Fate::PassedOn, false);
        check("larder; fwd=uri-miss; fwd-status=200", Fate::PassedOn, true);
        check("larder; fwd=uri-miss; fwd-status=200", Fate::Stored, false);
        check("larder; hit; ttl=10", Fate::Stored, false);
        check("larder; fwd=bypass; fwd-status=200", Fate::PassedOn, false);
    }
}
