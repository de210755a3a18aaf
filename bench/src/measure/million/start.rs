//! How soon a larder is there that has nothing in memory.
//!
//! In: a larder that is not started yet, and the authority by which its pages are known. Out: the time from the start of the program to the first
//! answer, to its lease, and to the first hit.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::target;
use crate::measure::asker::{Asker, OBJECT_BYTES, Was};
use crate::measure::contender::Launch;
use crate::measure::load::on_load_core;
use crate::measure::metric;
use crate::measure::turns::wait;

/// The longest wait for it.
const THERE_MAX: Duration = Duration::from_secs(60);
/// Between two attempts.
const ATTEMPTS_EVERY: Duration = Duration::from_millis(1);

/// When it was there.
pub(super) struct Started {
    pub(super) first_answer: Duration,
    pub(super) lease: Duration,
    pub(super) first_hit: Duration,
}

/// Starts it, asks until it answers from Redis, and ends it. Each time it is asked for another page, since an answer of the origin is stored.
pub(super) fn start(mut launch: Launch, host: SocketAddr, first: u64) -> Result<Started> {
    let admin = launch.admin.context("no admin address")?;
    let (address, begun) = (launch.address, Instant::now());
    let mut server = launch.start()?;
    let (mut first_answer, mut lease, mut number) = (None, None, first);
    loop {
        server.still_runs()?;
        ensure!(begun.elapsed() < THERE_MAX, "it is not there after {THERE_MAX:?}");
        if lease.is_none() && metric::told(admin, "larder_fleet_lease_seconds").is_ok_and(|left| left > 0) {
            lease = Some(begun.elapsed());
        }
        let name = target(number);
        let answered = on_load_core(async {
            let mut asker = Asker::connect_as(address, host, OBJECT_BYTES).await.ok()?;
            Some(asker.ask(&name).await)
        })?;
        let Some(was) = answered.transpose().context("while it starts")? else {
            wait(ATTEMPTS_EVERY);
            continue;
        };
        let answer = *first_answer.get_or_insert_with(|| begun.elapsed());
        if was == Was::Hit {
            let first_hit = begun.elapsed();
            // It has its lease, or it would have asked the origin.
            return Ok(Started { first_answer: answer, lease: lease.unwrap_or(first_hit), first_hit });
        }
        number += 1;
    }
}
