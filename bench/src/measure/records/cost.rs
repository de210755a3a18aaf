//! What a look-up takes of Redis, beside a plain `GET` of as many bytes.
//!
//! In: a Redis with all records, and a larder that has none of them in memory; the same Redis and redis-benchmark. Out: the CPU time of Redis
//! for each, by its own account: that of the commands, and all of it with reading, writing and waking. Both have as many connections.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::{BYTES, PAGES, target};
use crate::measure::asker::{Asker, Was};
use crate::measure::contender::{LOAD_CORE, pinned};
use crate::measure::load::on_load_core;
use crate::measure::redis::Place;
use harness::children::output_within;

pub(super) const LOOK_UP: &str = "a look-up of larder";
pub(super) const GET: &str = "a plain GET";
/// Requests at once.
pub(super) const CONNECTIONS: u64 = 64;
const GETS: u64 = 40_000;
/// Commands that are fewer do not belong to it.
const OF_EACH_MIN: f64 = 0.05;
const GETS_MAX: Duration = Duration::from_secs(60);

/// What one of them takes.
#[derive(Clone)]
pub(super) struct Cost {
    pub(super) what: &'static str,
    /// CPU time of the process.
    pub(super) cpu_us: f64,
    /// The same of its commands alone.
    pub(super) command_us: f64,
    /// Commands for each, by their names.
    pub(super) commands: Vec<(String, f64)>,
}

/// Of the look-ups of a larder with nothing in memory: each page once.
pub(super) fn of_look_ups(place: &Place, (address, host): (SocketAddr, SocketAddr)) -> Result<Cost> {
    cost(place, (LOOK_UP, PAGES), || {
        on_load_core(async move {
            let mut tasks = Vec::new();
            for first in 0..CONNECTIONS {
                let mut asker = Asker::connect_as(address, host, BYTES).await?;
                tasks.push(tokio::spawn(async move {
                    for number in (first..PAGES).step_by(CONNECTIONS as usize) {
                        let was = asker.ask(&target(number)).await?;
                        ensure!(was == Was::Hit, "{} did not come from Redis", target(number));
                    }
                    Ok(())
                }));
            }
            for task in tasks {
                task.await??;
            }
            Ok(())
        })?
    })
}

/// Of plain `GET`s, of as many keys as there are pages.
pub(super) fn of_gets(place: &Place) -> Result<Cost> {
    let Place::UnixSocket(path) = place else { bail!("it is reached by a Unix socket here") };
    let value = vec![b'x'; BYTES];
    for number in 0..PAGES {
        place.ask(&[b"SET", format!("plain:{number:012}").as_bytes(), &value])?;
    }
    cost(place, (GET, GETS), || {
        let mut command = pinned(LOAD_CORE);
        command.arg("redis-benchmark").arg("-s").arg(path).args(["-c", &CONNECTIONS.to_string(), "-q"]);
        command.args(["-n", &GETS.to_string(), "-r", &PAGES.to_string(), "GET", "plain:__rand_int__"]);
        output_within(&mut command, GETS_MAX).map(drop)
    })
}

/// What Redis takes for each of so many.
fn cost(
    place: &Place,
    (what, count): (&'static str, u64),
    work: impl FnOnce() -> Result<()>,
) -> Result<Cost> {
    let before = (place.cpu_time()?, place.commands()?);
    work()?;
    let after = (place.cpu_time()?, place.commands()?);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = |sum: u64| sum as f64 / count as f64;
    let (mut commands, mut command_us) = (Vec::new(), 0);
    for (name, now) in after.1 {
        let then = before.1.get(&name).copied().unwrap_or_default();
        let calls = each(now.calls.saturating_sub(then.calls));
        // Not what this program asks for itself, nor what comes once a second.
        if calls >= OF_EACH_MIN {
            command_us += now.us.saturating_sub(then.us);
            commands.push((name, calls));
        }
    }
    let cpu_us = each(u64::try_from(after.0.saturating_sub(before.0).as_micros())?);
    Ok(Cost { what, cpu_us, command_us: each(command_us), commands })
}
