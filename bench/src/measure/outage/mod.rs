//! A Redis that hangs behind a larder under half of its load: what do hits and misses wait?
//!
//! In: a larder that shares its responses, hits in memory at half of the rate that it reaches, and a few misses beside them. Out: the waits of
//! both before the Redis is stopped (SIGSTOP) and during it, in turns. It goes on between two rounds, until larder has found it well.
//! A hit or a miss without its whole answer refuses the measurement.
//! Deliberately absent: a Redis that refuses, which costs a miss nothing, and the end of a lease. The proofs have both.

mod misses;
mod report;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use super::asker::{ask_all_for, object_of};
use super::contender::{Kit, LOAD_CORE, Protocol, floor};
use super::drive::{Driven, Load, Request, drive};
use super::metric;
use super::redis::{By, Redis};
use super::sharing::{Larder, Wanted, start, until};
use misses::Miss;

const BYTES: usize = 8357;
const TARGET: &str = "/hit";
const CONNECTIONS: usize = 64;
const ROUNDS: usize = 5;
const RUN: Duration = Duration::from_secs(4);
/// Of the rate that larder reaches.
const SHARE: f64 = 0.5;
/// Of the rate that is asked for, it reaches at least this.
const KEPT_UP: f64 = 0.95;

/// One round, or what came of one part of it.
struct Part {
    hits: Driven,
    misses: Vec<Miss>,
}

/// What was measured.
struct Measured {
    /// Hits a second, as they were due.
    rate: f64,
    before: Vec<Part>,
    during: Vec<Part>,
}

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object_of(BYTES))?;
    let redis = Redis::start(kit.scratch(), By::UnixSocket, LOAD_CORE)?;
    let larder = start(&kit, origin.address, Wanted::new("web-1", Some(&redis)))?;
    ask_all_for(larder.address, (1, BYTES), 1, |_| TARGET.to_owned())?;
    let most = hits(&kit, &larder, None, Duration::from_secs(3))?.requests_per_s;
    let rate = SHARE * most;
    let mut measured = Measured { rate, before: Vec::new(), during: Vec::new() };
    for round in 0..ROUNDS {
        measured.before.push(part(&kit, &larder, rate, &format!("before-{round}"))?);
        let still = redis.stand_still()?;
        measured.during.push(part(&kit, &larder, rate, &format!("during-{round}"))?);
        drop(still);
        until("larder does not find Redis well", || {
            let is_up = |name| Ok::<bool, anyhow::Error>(metric::told(larder.admin, name)? == 1);
            Ok(is_up("larder_remote_server_up")? && is_up("larder_fleet_server_up")?)
        })?;
    }
    report::report(root, &measured)
}

/// Hits and misses at the same time.
fn part(kit: &Kit, larder: &Larder, rate: f64, name: &str) -> Result<Part> {
    let (hits, misses) = std::thread::scope(|scope| {
        let missing = scope.spawn(|| misses::ask(larder.address, BYTES, RUN, name));
        let hits = hits(kit, larder, Some(rate), RUN);
        let misses = missing.join().map_err(|_| anyhow!("the one that misses has panicked"))?;
        anyhow::Ok((hits?, misses?))
    })?;
    let reached = hits.requests_per_s;
    ensure!(reached >= KEPT_UP * rate, "{name}: {reached:.0} requests/s of {rate:.0} that were due");
    Ok(Part { hits, misses })
}

fn hits(kit: &Kit, larder: &Larder, rate: Option<f64>, length: Duration) -> Result<Driven> {
    let load = Load::H2load { protocol: Protocol::Http1, connections: CONNECTIONS, streams: 1, rate };
    drive(&kit.root, &load, &Request::of(TARGET), (larder.address, kit.certificates()), length)
}
