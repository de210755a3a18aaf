//! How soon a larder is there that has nothing in memory.
//!
//! In: a larder that is not started yet, the authority by which its pages are known, and pages that lie in Redis. Out: the time from the start of the
//! program to the moment when it listens, to its lease, and to the first hit. It is asked for nothing before it has its lease: what it answers then
//! comes from the origin.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

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
    pub(super) listens: Duration,
    pub(super) lease: Duration,
    pub(super) first_hit: Duration,
}

/// Starts it, asks until it answers from Redis, and ends it.
pub(super) fn start(
    mut launch: Launch,
    host: SocketAddr,
    mut targets: impl Iterator<Item = String> + Send,
) -> Result<Started> {
    let admin = launch.admin.context("no admin address")?;
    let (address, begun) = (launch.address, Instant::now());
    let mut server = launch.start()?;
    let there = |what: &str, holds: &dyn Fn() -> bool| -> Result<Duration> {
        while !holds() {
            if begun.elapsed() > THERE_MAX {
                bail!("{what} after {THERE_MAX:?}");
            }
            wait(ATTEMPTS_EVERY);
        }
        Ok(begun.elapsed())
    };
    let listens = there("it does not listen", &|| TcpStream::connect(address).is_ok())?;
    let lease = there("it has no lease", &|| {
        metric::told(admin, "larder_fleet_lease_seconds").is_ok_and(|left| left > 0)
    })?;
    server.still_runs()?;
    let first_hit = on_load_core(async {
        let mut asker = Asker::connect_as(address, host, OBJECT_BYTES).await?;
        loop {
            let target = targets.next().context("none of these pages came from Redis")?;
            if asker.ask(&target).await? == Was::Hit {
                return anyhow::Ok(begun.elapsed());
            }
        }
    })??;
    Ok(Started { listens, lease, first_hit })
}
