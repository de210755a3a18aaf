//! Misses: what passes through, stored or not.
//!
//! In: an origin that costs next to nothing and counts, on the load's core. Out: the usual figures, and larder's
//! targets: the throughput of large answers beside nginx's plain `proxy_pass`, and the CPU time of small ones beside
//! its `proxy_cache`, which stores them as well. The origin's count shows for each run that every answer was a miss.
//! Whether a server stores is tried when it has started, and again after its last run: one whose store is full passes
//! on what it gets, and looks like one that does not store.
//! Deliberately absent: nginx storing 1 MB answers. It looks after its limit every ten seconds only, and has written
//! gigabytes into memory by then.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, Setup, floor, haproxy, nginx, varnish};
use super::curl::{Version, ask};
use super::drive::{Load, Request};
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{BEFORE, HAPROXY, LARDER, NGINX, VARNISH};
use super::runner::{Behind, Pace, Row, Scenario, run as measure};
use super::validity::OriginAsked;
use harness::origin::body;

const NGINX_PASS: &str = "nginx proxy_pass";

/// nginx's cache manager looks every 10 s for what is beyond the limit, and removes a few thousand files a second.
const NGINX_CLEARS_UP: Duration = Duration::from_secs(10);

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
              making room where there is none; nginx stores on tmpfs, and with proxy_pass not at all, nor in temporary files (proxy_max_temp_file_size 0); what its cache manager does in the 10 s after a run counts as that run's CPU time. larder runs bench/full.toml, everything \
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
        Row::new(LARDER, move |setup| treats(larder::full(kit, setup, LARDER, AccessLog::Off)?, setup, fate)),
        Row::new(NGINX_PASS, |setup| treats(nginx::proxy(setup, NGINX_PASS)?, setup, Fate::PassedOn)),
        Row::new(VARNISH, move |setup| treats(varnish::cache(setup, VARNISH, "")?, setup, fate)),
        Row::new(HAPROXY, move |setup| treats(haproxy::cache(setup, HAPROXY)?, setup, fate)),
    ];
    if let Some(before) = &kit.before {
        rows.push(Row::new(BEFORE, move |setup| {
            treats(larder::full_of(kit, before, setup, BEFORE, AccessLog::Off)?, setup, fate)
        }));
    }
    if let Target::Cpu(_) = kind.target {
        let nginx = Row::new(NGINX, move |setup| treats(nginx::cache(setup, NGINX, "")?, setup, fate));
        rows.push(nginx.clearing_up(NGINX_CLEARS_UP));
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

/// The server, once what becomes of its answers is seen; it is looked at again at last.
fn treats(contender: Contender, setup: &Setup<'_>, fate: Fate) -> Result<Contender> {
    let origin = setup.origin;
    tried("/page/tried/1", contender.address, origin, fate)?;
    Ok(contender.with_last_check(move |contender| tried("/page/tried/2", contender.address, origin, fate)))
}

/// Sees what becomes of an answer in how often the origin is asked for the same target, which no run asks for.
fn tried(target: &str, address: SocketAddr, origin: SocketAddr, fate: Fate) -> Result<()> {
    let before = floor::answered(origin)?;
    for _ in 0..2 {
        ask(address, Version::Http11, &Request::of(target))?;
    }
    let asked = floor::answered(origin)?.saturating_sub(before);
    let wanted = if fate == Fate::Stored { 1 } else { 2 };
    ensure!(asked == wanted, "the origin was asked {asked} times for the same target, not {wanted}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Answers each connection's one request, and to `COUNT` how many there were, as the floor does.
    fn counting_origin() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut asked = 0;
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; 1024];
                let read = stream.read(&mut request).unwrap();
                let answer = if request.get(..read) == Some(b"COUNT\n") {
                    asked.to_string()
                } else {
                    asked += 1;
                    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
                };
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_server_that_asks_the_origin_each_time_does_not_store() {
        let origin = counting_origin();
        assert!(tried("/a", origin, origin, Fate::PassedOn).is_ok());
        let refused = tried("/a", origin, origin, Fate::Stored).unwrap_err().to_string();
        assert!(refused.contains("2 times"), "{refused}");
    }
}
