//! What larders share through Redis: how long the first request for a page takes that another larder has fetched, and what a look-up costs Redis.
//!
//! In: pages of 8 KiB, which one larder has fetched and put into a Redis; a second larder with nothing in memory. Out: the time of the first
//! request for each page there, which is answered from Redis, and of the second, which is a hit in memory. Beside them the first at a
//! larder that shares nothing, from an origin which takes no time; and the same pages by nginx with srcache from the same Redis. Requests go
//! one after the other over one connection, so each wait is the server's own. Then what look-ups take of Redis (`cost`).
//! Deliberately absent: how many requests a second larder answers from Redis. Each page is asked for there once, and is in memory then.

mod cost;
mod peer;
mod report;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::asker::{Asker, Was, ask_all_for, object_of};
use super::contender::{Kit, LOAD_CORE, floor};
use super::load::on_load_core;
use super::metric;
use super::redis::{By, Redis};
use super::sharing::{Wanted, start};

const PAGES: u64 = 4000;
const BYTES: usize = 8192;
const ROUNDS: usize = 5;

const FROM_REDIS: &str = "from Redis, stored by another larder";
const IN_MEMORY: &str = "a hit in memory";
const FROM_ORIGIN: &str = "from an origin that takes no time";
const BY_NGINX: &str = "from Redis, by nginx with srcache";

/// Waits of one kind in one round, sorted.
struct Waits {
    what: &'static str,
    all: Vec<Duration>,
}

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object_of(BYTES))?;
    let redis = Redis::start(kit.scratch(), By::UnixSocket, LOAD_CORE)?;
    let sharing = |name: &str| start(&kit, origin.address, Wanted::new(name, Some(&redis)));
    // All are known by the authority of the first.
    let host = {
        let first = sharing("first")?;
        ask_all_for(first.address, (8, BYTES), PAGES, target)?;
        first.until_written()?;
        let not_shared = metric::told(first.admin, "larder_records_not_shared_total")?;
        ensure!(not_shared == 0, "{not_shared} pages were not shared");
        first.address
    };
    let nginx = peer::filled(&kit.setup(origin.address), &redis.place)?;
    let (mut waits, mut costs) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        let second = sharing(&format!("second-{number}"))?;
        waits.push(pass((second.address, host), FROM_REDIS, Was::Hit)?);
        waits.push(pass((second.address, host), IN_MEMORY, Was::Hit)?);
        drop(second);
        let alone = start(&kit, origin.address, Wanted::new("alone", None))?;
        waits.push(pass((alone.address, host), FROM_ORIGIN, Was::Other)?);
        drop(alone);
        waits.push(pass((nginx.address, nginx.address), BY_NGINX, Was::Hit)?);
        let third = sharing(&format!("third-{number}"))?;
        costs.push(cost::of_look_ups(&redis.place, (third.address, host))?);
        costs.push(cost::of_gets(&redis.place)?);
    }
    report::report(root, &waits, &costs)
}

fn target(number: u64) -> String {
    format!("/page/{number}")
}

/// Every page once, one after the other; all of them as they have to be.
fn pass((address, host): (SocketAddr, SocketAddr), what: &'static str, expected: Was) -> Result<Waits> {
    let all: Result<Vec<Duration>> = on_load_core(async move {
        let mut asker = Asker::connect_as(address, host, BYTES).await?;
        let mut all = Vec::with_capacity(usize::try_from(PAGES)?);
        for number in 0..PAGES {
            let target = target(number);
            let begun = Instant::now();
            let was = asker.ask(&target).await?;
            all.push(begun.elapsed());
            ensure!(was == expected, "{what}: {target} was another answer than that");
        }
        Ok(all)
    })?;
    let mut all = all?;
    all.sort_unstable();
    Ok(Waits { what, all })
}
