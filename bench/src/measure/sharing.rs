//! Larders that share what they store, or only purge together, through one Redis.
//!
//! In: the origin, a name, the Redis, and the lines of the site that a measurement is about. Out: a larder with one worker on the servers' core,
//! which has its lease. All else of its config is the same in each measurement.
//! Deliberately absent: more than one store, and a log of purges elsewhere.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::contender::{Kit, Launch, larder};
use super::metric;
use super::redis::Redis;
use harness::children::{Server, pause};

/// The longest wait for something that has to happen.
pub(super) const READY_MAX: Duration = Duration::from_secs(20);

/// A running larder.
pub(super) struct Larder {
    pub(super) address: SocketAddr,
    pub(super) admin: SocketAddr,
    _server: Server,
    /// Its files.
    _launch: Launch,
}

/// How it is to be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// `None`: it is alone.
    pub(super) redis: Option<&'a Redis>,
    /// In memory, as the config has it.
    pub(super) memory: &'a str,
    /// Of the fleet, as the config has it. No purge is complete before a new log is as old as that.
    pub(super) lease: &'a str,
    /// Lines of its only site.
    pub(super) site: &'a str,
}

impl<'a> Wanted<'a> {
    /// With a memory that holds all of most measurements.
    pub(super) fn new(name: &'a str, redis: Option<&'a Redis>) -> Self {
        Self { name, redis, memory: "256MiB", lease: "10m", site: "" }
    }
}

/// A larder that is not started yet.
pub(super) fn configured(kit: &Kit, origin: SocketAddr, wanted: Wanted<'_>) -> Result<Launch> {
    let Wanted { name, redis, memory, lease, site } = wanted;
    let (fleet, store) = match redis {
        Some(redis) => (
            format!("[fleet]\nname = \"{name}\"\nlease = \"{lease}\"\n"),
            format!("redis = \"{}\"\n", redis.place.url()),
        ),
        None => Default::default(),
    };
    let config = format!(
        "[log]\naccess = \"off\"\n[origins.app]\nservers = \"http://{origin}\"\n{fleet}\
         [stores.default]\nmemory = \"{memory}\"\n{store}[[site]]\norigin = \"app\"\n{site}\n"
    );
    larder::configured(&kit.larder, &kit.setup(origin), name, &config)
}

/// Starts it, and waits until it listens and has its lease.
pub(super) fn start(kit: &Kit, origin: SocketAddr, wanted: Wanted<'_>) -> Result<Larder> {
    let mut launch = configured(kit, origin, wanted)?;
    let mut server = launch.start()?;
    server.wait_for(launch.address, READY_MAX)?;
    let (address, admin) = (launch.address, launch.admin.context("no admin address")?);
    if wanted.redis.is_some() {
        // The admin address may listen a little later.
        let left = || metric::told(admin, "larder_fleet_lease_seconds");
        until("it has no lease", || Ok(left().is_ok_and(|left| left > 0)))?;
    }
    Ok(Larder { address, admin, _server: server, _launch: launch })
}

impl Larder {
    /// Waits until all that it shares lies in Redis.
    pub(super) fn until_written(&self) -> Result<()> {
        until("not everything is written", || Ok(metric::told(self.admin, "larder_remote_queue_bytes")? == 0))
    }
}

/// Looks again and again until that is so.
pub(super) fn until(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        ensure!(begun.elapsed() < READY_MAX, "{what} after {READY_MAX:?}");
        pause();
    }
    Ok(())
}
