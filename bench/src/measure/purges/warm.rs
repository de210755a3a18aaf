//! Whether `larder warm` keeps up with a load tool that asks for the same list.
//!
//! In: ten thousand URLs, and an empty larder for each run. Out: how long `larder warm` took for the list and how long h2load, with
//! as many requests under way at once; and this program's own client, which does nothing but ask. All run on the load's core, where the origin is.
//! The origin has to have been asked once for each URL. h2load hands the list to each of its connections, so there is a list and an h2load for each of them.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::LARDER;
use super::hits::answer;
use crate::measure::asker::ask_all_for;
use crate::measure::contender::larder::{self, AccessLog};
use crate::measure::contender::{Kit, LOAD_CORE, floor, pinned};
use crate::measure::report::median;
use harness::children::output_within;

pub(super) const URLS: usize = 10_000;
/// Requests under way at once, as `larder warm` has it by default.
pub(super) const AT_ONCE: usize = 8;
const ROUNDS: usize = 5;
const BODY_BYTES: usize = 134;
/// Longest run.
const RUN_MAX: Duration = Duration::from_secs(60);

/// How long each took, in every round.
pub(super) struct Warm {
    pub(super) warm_s: Vec<f64>,
    pub(super) h2load_s: Vec<f64>,
    /// This program's own client.
    pub(super) own_s: Vec<f64>,
}

impl Warm {
    /// `larder warm` over h2load.
    pub(super) fn ratio(&self) -> f64 {
        median(self.warm_s.clone()) / median(self.h2load_s.clone())
    }
}

/// Measures all in turns.
pub(super) fn run(kit: &Kit) -> Result<Warm> {
    let mut warm = Warm { warm_s: Vec::new(), h2load_s: Vec::new(), own_s: Vec::new() };
    for _ in 0..ROUNDS {
        warm.warm_s.push(once(kit, by_warm).context("larder warm")?);
        warm.h2load_s.push(once(kit, by_h2load).context("h2load")?);
        warm.own_s.push(once(kit, by_own_client).context("the own client")?);
    }
    println!("larder warm: {:.2} of h2load's time", warm.ratio());
    Ok(warm)
}

fn by_own_client(_kit: &Kit, _folder: &Path, address: SocketAddr) -> Result<()> {
    let target = |number| format!("/key/{number}/134");
    let hits = ask_all_for(address, (AT_ONCE, BODY_BYTES), URLS as u64, target)?;
    ensure!(hits == 0, "{hits} hits while nothing was stored");
    Ok(())
}

type Run = fn(&Kit, &Path, SocketAddr) -> Result<()>;

/// How long one of them takes to ask an empty larder for every URL.
fn once(kit: &Kit, run: Run) -> Result<f64> {
    let origin = floor::origin(kit, &answer())?;
    let mut contender = larder::full(kit, &kit.setup(origin.address), LARDER, AccessLog::Off)?;
    let folder = tempfile::tempdir_in(kit.scratch())?;
    let urls: Vec<String> =
        (0..URLS).map(|number| format!("http://{}/key/{number}/134\n", contender.address)).collect();
    fs::write(folder.path().join("list"), urls.concat())?;
    for (number, part) in urls.chunks(URLS / AT_ONCE).enumerate() {
        fs::write(folder.path().join(format!("list-{number}")), part.concat())?;
    }
    let began = Instant::now();
    run(kit, folder.path(), contender.address)?;
    let took = began.elapsed();
    contender.server.still_runs()?;
    let asked = floor::answered(origin.address)?;
    ensure!(asked == URLS as u64, "the origin was asked {asked} times");
    Ok(took.as_secs_f64())
}

fn by_warm(kit: &Kit, folder: &Path, address: SocketAddr) -> Result<()> {
    let mut command = pinned(LOAD_CORE);
    command.arg(&kit.larder).args(["warm", "--at-once", &AT_ONCE.to_string(), "--json"]);
    command.args(["--through", &address.to_string(), "--file"]).arg(folder.join("list"));
    output_within(&mut command, RUN_MAX)?;
    Ok(())
}

/// All at once, each with a connection and a part of the list.
fn by_h2load(_kit: &Kit, folder: &Path, _address: SocketAddr) -> Result<()> {
    let start = |number: usize| -> Result<Child> {
        let mut command = Command::new("taskset");
        command.args(["-c", &LOAD_CORE.to_string(), "h2load", "--h1", "-t1", "-c1", "-m1"]);
        command.arg("-n").arg((URLS / AT_ONCE).to_string());
        command.arg("-i").arg(folder.join(format!("list-{number}")));
        Ok(command.stdout(Stdio::null()).spawn()?)
    };
    let running = (0..AT_ONCE).map(start).collect::<Result<Vec<Child>>>()?;
    for mut child in running {
        let status = child.wait()?;
        ensure!(status.success(), "{status}");
    }
    Ok(())
}
