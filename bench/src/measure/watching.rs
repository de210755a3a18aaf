//! What those who look on cost: the same hits with nobody, with ten pages of the dashboard, with `larder top`, and with `larder log --all`.
//!
//! In: 10 000 hits a second, sent when they are due. Out: CPU time per request of the whole process, so with the threads that drain samples
//! and write to streams, and larder's targets judged by it. Those who look on only read: what a browser or a terminal makes of it is not
//! larder's work. They run on the load's core.
//! Deliberately absent: peers. None of them shows its requests.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::origin::body;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, LOAD_CORE, Protocol, Setup};
use super::drive::Load;
use super::outcome::{Judged, Outcome};
use super::page::{PROGRAMS, Page};
use super::rows::{LARDER, of_larder};
use super::runner::{Pace, Row, Scenario, run as measure};

const NAME: &str = "134 B, 10 000/s";
const TARGET: &str = "/page/134";
const BYTES: usize = 134;
const LOAD: Load =
    Load::H2load { protocol: Protocol::Http1, connections: 64, streams: 1, rate: Some(10_000.0) };
/// More than the machine's noise takes of three.
const PACE: Pace = Pace { rounds: 7, run: Duration::from_secs(5), warm: Duration::from_secs(2) };

/// Who looks on: the row's name, how many streams, their query, and the most CPU per request beside nobody.
const LOOKING: [(&str, usize, &str, f64); 3] = [
    ("larder, ten tabs", 10, "tick=1&samples=0", 1.01),
    ("larder, top", 1, "tick=1&samples=0", 1.01),
    ("larder, log --all", 1, "all=true", 1.15),
];

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let outcome = measure(&kit, &[scenario(&kit)], PACE)?;
    let judged = judge(&outcome)?;
    Page {
        name: "watching",
        title: "Who looks on",
        how: format!(
            "One worker, pinned to one core; {} on another; seven interleaved rounds of 5 s, medians. Every answer came from the cache. larder \
             runs bench/full.toml, everything on. CPU per request is that of the whole process. Those who look on read streams of \
             `/api/v1/live` on the load's core: ten with figures, one with figures, and one with every request.",
            LOAD.told()
        ),
        programs: PROGRAMS,
    }
    .write(root, &outcome, &judged)
}

fn scenario(kit: &Kit) -> Scenario<'_> {
    let mut rows = vec![of_larder(kit)];
    for (name, streams, query, _) in LOOKING {
        rows.push(Row::new(name, move |setup| watched(kit, setup, name, (streams, query))));
    }
    let mut scenario = Scenario::hit(NAME, TARGET, body(BYTES), rows);
    scenario.load = LOAD;
    scenario
}

fn judge(outcome: &Outcome) -> Result<Vec<Judged>> {
    LOOKING.iter().map(|(name, _, _, most)| outcome.cpu_at_most(NAME, name, *most, LARDER)).collect()
}

fn watched(kit: &Kit, setup: &Setup<'_>, name: &str, (streams, query): (usize, &str)) -> Result<Contender> {
    let contender = larder::full(kit, setup, name, AccessLog::Off)?;
    let admin = contender.admin.context("larder has an admin address")?;
    let onlookers: Vec<_> = (0..streams).map(|_| Onlooker::begin(admin, query)).collect::<Result<_>>()?;
    Ok(contender.with_beside(onlookers))
}

/// One who reads a stream until it is dropped.
struct Onlooker {
    stream: TcpStream,
    reading: Option<JoinHandle<()>>,
}

impl Onlooker {
    fn begin(admin: SocketAddr, query: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(admin).context("the admin address")?;
        write!(stream, "GET /api/v1/live?{query} HTTP/1.1\r\nHost: {admin}\r\n\r\n")?;
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).context("an answer of the admin address")?;
        ensure!(begin == *b"HTTP/1.1 200", "no stream of {query}: {}", String::from_utf8_lossy(&begin));
        let mut own = stream.try_clone()?;
        let read = move || {
            let mut core = CpuSet::new();
            core.set(LOAD_CORE);
            // Where it cannot be pinned it costs the servers' core at worst, and the figures are too high.
            let _ = sched_setaffinity(None, &core);
            let mut bytes = vec![0; 256 * 1024];
            while own.read(&mut bytes).is_ok_and(|count| count > 0) {}
        };
        Ok(Self { stream, reading: Some(std::thread::spawn(read)) })
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reading) = self.reading.take() {
            let _ = reading.join();
        }
    }
}
