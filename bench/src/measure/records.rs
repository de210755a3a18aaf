//! What larders share through Redis: how long the first request for a page takes that another larder has fetched.
//!
//! In: pages of 8 KiB, which one larder has fetched and put into a Redis; a second larder with nothing in memory. Out: the time of the first
//! request for each page there, which is answered from Redis, and of the second, which is a hit in memory. Beside them the first at a
//! larder that shares nothing, from an origin which takes no time. Requests go one after the other over one connection, so each wait is the
//! server's own.
//! Deliberately absent: throughput, which one request at a time does not show.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::asker::{Asker, Was, ask_all_for, object_of};
use super::contender::{Kit, LOAD_CORE, Launch, floor, larder};
use super::load::{on_load_core, quantile};
use super::metric;
use super::report::{Report, median, round};
use harness::children::{Server, pause};

const PAGES: u64 = 4000;
const BYTES: usize = 8192;
const ROUNDS: usize = 5;
const READY_MAX: Duration = Duration::from_secs(20);
/// What the first request may take beyond a hit in memory, half of the time.
const BEYOND_A_HIT: Duration = Duration::from_micros(150);

const FROM_REDIS: &str = "from Redis, stored by another larder";
const IN_MEMORY: &str = "a hit in memory";
const FROM_ORIGIN: &str = "from an origin that takes no time";

/// Waits of one kind in one round, sorted.
struct Waits {
    what: &'static str,
    all: Vec<Duration>,
}

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let origin = floor::origin(&kit, &object_of(BYTES))?;
    let redis = Redis::start(kit.scratch())?;
    let sharing = format!("redis = \"unix://{}\"\n", redis.socket.display());
    let start = |name: &str, store: &str| -> Result<(Launch, Server)> {
        let fleet = if store.is_empty() { String::new() } else { format!("[fleet]\nname = \"{name}\"\n") };
        let config = format!(
            "[log]\naccess = \"off\"\n[origins.app]\nservers = \"http://{}\"\n{fleet}\
             [stores.default]\nmemory = \"256MiB\"\n{store}[[site]]\norigin = \"app\"\n",
            origin.address
        );
        let mut launch = larder::configured(&kit.larder, &kit.setup(origin.address), name, &config)?;
        let mut server = launch.start()?;
        server.wait_for(launch.address, READY_MAX)?;
        let admin = launch.admin.context("no admin address")?;
        if !store.is_empty() {
            until("it has no lease", || Ok(metric::told(admin, "larder_fleet_lease_seconds")? > 0))?;
        }
        Ok((launch, server))
    };
    // All are known by the authority of the first.
    let host = {
        let (launch, _server) = start("first", &sharing)?;
        ask_all_for(launch.address, (8, BYTES), PAGES, target)?;
        let admin = launch.admin.context("no admin address")?;
        until("not everything is written", || Ok(metric::told(admin, "larder_remote_queue_bytes")? == 0))?;
        launch.address
    };
    let mut waits = Vec::new();
    for number in 0..ROUNDS {
        let (launch, _server) = start(&format!("second-{number}"), &sharing)?;
        waits.push(pass((&launch, host), FROM_REDIS, Was::Hit)?);
        waits.push(pass((&launch, host), IN_MEMORY, Was::Hit)?);
        let (launch, _server) = start("alone", "")?;
        waits.push(pass((&launch, host), FROM_ORIGIN, Was::Other)?);
    }
    report(root, &waits)
}

fn target(number: u64) -> String {
    format!("/page/{number}")
}

fn until(what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds()? {
        ensure!(begun.elapsed() < READY_MAX, "{what} after {READY_MAX:?}");
        pause();
    }
    Ok(())
}

/// Every page once, one after the other; all of them as they have to be.
fn pass((launch, host): (&Launch, SocketAddr), what: &'static str, expected: Was) -> Result<Waits> {
    let address = launch.address;
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

/// Prints the table and writes page and figures.
///
/// # Errors
/// The target is missed; everything has been written then.
fn report(root: &Path, waits: &[Waits]) -> Result<()> {
    let micros = |what: &str, share: f64| -> Vec<f64> {
        let of = waits.iter().filter(|waits| waits.what == what);
        of.map(|waits| quantile(&waits.all, share).as_secs_f64() * 1e6).collect()
    };
    let mut table = String::from("| | p50 us | p99 us | p50 of the rounds |\n|---|---|---|---|\n");
    let mut rows: Vec<Value> = Vec::new();
    for what in [IN_MEMORY, FROM_REDIS, FROM_ORIGIN] {
        let (p50, p99) = (median(micros(what, 0.5)), median(micros(what, 0.99)));
        let all: Vec<String> = micros(what, 0.5).iter().map(|value| format!("{value:.0}")).collect();
        let _ = writeln!(table, "| {what} | {p50:.0} | {p99:.0} | {} |", all.join(", "));
        rows.push(json!({ "what": what, "p50_us": round(p50), "p99_us": round(p99) }));
    }
    let beyond = median(micros(FROM_REDIS, 0.5)) - median(micros(IN_MEMORY, 0.5));
    let most = BEYOND_A_HIT.as_secs_f64() * 1e6;
    let holds = beyond <= most;
    let _ = writeln!(
        table,
        "\nTarget: from Redis at most {most:.0} us beyond a hit in memory, p50: {beyond:.0} us, {}.",
        if holds { "holds" } else { "MISSED" }
    );
    Report {
        name: "records",
        title: "A page that another larder has fetched",
        table: &table,
        how: &format!(
            "{PAGES} pages of {BYTES} bytes, one request at a time over one connection, each page once in a pass. One worker, pinned to one core; \
             the client, the origin and Redis on another. Redis is reached by a Unix socket. A new larder in each of {ROUNDS} rounds; medians of the \
             rounds. The origin is the floor, which answers each read with one fixed answer."
        ),
        programs: &[("rustc", "--version"), ("redis-server", "--version")],
        figures: json!({ "rows": rows, "beyond_us": round(beyond), "holds": holds }),
    }
    .write(root)?;
    ensure!(holds, "from Redis it takes {beyond:.0} us more than a hit in memory");
    Ok(())
}

/// A Redis on a Unix socket, on the load's core.
struct Redis {
    socket: PathBuf,
    _folder: TempDir,
    _server: Server,
}

impl Redis {
    fn start(scratch: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().tempdir_in(scratch)?;
        let socket = folder.path().join("redis.sock");
        let mut command = Command::new("taskset");
        command.args(["-c", &LOAD_CORE.to_string(), "redis-server", "--port", "0", "--save", ""]);
        command.arg("--unixsocket").arg(&socket).args(["--logfile", "redis.log"]);
        let server = Server::start("redis-server", command.current_dir(folder.path()))?;
        until("redis-server has no socket", || Ok(socket.exists()))?;
        Ok(Self { socket, _folder: folder, _server: server })
    }
}
