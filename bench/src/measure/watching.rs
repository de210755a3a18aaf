//! What those who look on cost: the same hits with nobody, with ten pages of the dashboard, with `larder top`, and with `larder log --all`.
//!
//! In: 10 000 hits a second, sent when they are due. Out: CPU time per request of the whole process, so with the threads that drain samples
//! and write to streams, and larder's targets judged by it. What these threads take is measured alone as well, since a hundredth of a
//! request is less than two runs of one worker differ by. Those who look on only read: what a browser or a terminal makes of it is not
//! larder's work. They run on the load's core.
//! Deliberately absent: peers. None of them shows its requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::origin::body;
use parking_lot::Mutex;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;

use super::contender::larder::{self, AccessLog};
use super::contender::{Contender, Kit, LOAD_CORE, Protocol, Setup};
use super::drive::Load;
use super::metric::told;
use super::outcome::{Judged, Outcome};
use super::page::{More, PROGRAMS, Page};
use super::rows::LARDER;
use super::runner::{Pace, Row, Scenario, run as measure};

const NAME: &str = "134 B, 10 000/s";
const TARGET: &str = "/page/134";
const BYTES: usize = 134;
const LOAD: Load =
    Load::H2load { protocol: Protocol::Http1, connections: 64, streams: 1, rate: Some(10_000.0) };
/// More than the machine's noise takes of three.
const PACE: Pace = Pace { rounds: 7, run: Duration::from_secs(5), warm: Duration::from_secs(2) };

/// Who looks on: the row's name, how many streams, and their query.
const LOOKING: [(&str, usize, &str); 3] =
    [(TABS, 10, "tick=1&samples=0"), (TOP, 1, "tick=1&samples=0"), (LOG, 1, "all=true")];
const TABS: &str = "larder, ten tabs";
const TOP: &str = "larder, top";
const LOG: &str = "larder, log --all";

/// The most CPU per request beside nobody.
const LOG_OF_NOBODY: f64 = 1.15;
/// The most that figures add, in the threads that make and write them, as a share of what a request takes with nobody.
const FIGURES_ADD: f64 = 0.01;

/// The threads that collect what is seen and write it to streams.
const LOOKED_ON_BY: [&str; 2] = ["watch", "admin"];

/// What those threads took for each request that larder has answered, in microseconds, by the row's name.
type Aside = Arc<Mutex<BTreeMap<&'static str, f64>>>;

/// Measures, prints the table and writes it to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let aside = Aside::default();
    let outcome = measure(&kit, &[scenario(&kit, &aside)], PACE)?;
    let aside = aside.lock();
    let judged = judge(&outcome, &aside)?;
    let mut tables = format!(
        "\nThe threads {} alone, over all requests of each server:\n\n| server | us per request |\n|---|---|\n",
        LOOKED_ON_BY.map(|name| format!("`{name}`")).join(" and ")
    );
    for (name, us) in aside.iter() {
        let _ = writeln!(tables, "| {name} | {us:.3} |");
    }
    let more = More { tables, figures: json!({ "aside_us_per_request": &*aside }) };
    Page {
        name: "watching",
        title: "Who looks on",
        how: format!(
            "One worker, pinned to one core; {} on another; seven interleaved rounds of 5 s, medians. Every answer came from the cache. larder \
             runs bench/full.toml, everything on. CPU per request is that of the whole process. Those who look on read streams of \
             `/api/v1/live` on the load's core: ten with figures, one with figures, and one with every request. Workers do the same for \
             requests whether or not anybody reads figures, so what figures cost is judged by the threads that make and write them.",
            LOAD.told()
        ),
        programs: PROGRAMS,
    }
    .write_with(root, &outcome, more, &judged)
}

fn scenario<'a>(kit: &'a Kit, aside: &Aside) -> Scenario<'a> {
    let rows = [(LARDER, 0, "")].into_iter().chain(LOOKING).map(|(name, streams, query)| {
        let aside = Arc::clone(aside);
        Row::new(name, move |setup| watched(kit, setup, name, (streams, query), &aside))
    });
    let mut scenario = Scenario::hit(NAME, TARGET, body(BYTES), rows.collect());
    scenario.load = LOAD;
    scenario
}

fn judge(outcome: &Outcome, aside: &BTreeMap<&'static str, f64>) -> Result<Vec<Judged>> {
    let of = |name: &str| aside.get(name).copied().with_context(|| format!("no figure for {name}"));
    let whole = outcome.figures(NAME, LARDER)?.cpu_us();
    let mut judged = Vec::new();
    for name in [TABS, TOP] {
        let added = (of(name)? - of(LARDER)?) / whole;
        let target = format!("{name}: adds at most {FIGURES_ADD:.2} of {LARDER}'s CPU per request");
        judged.push(Judged::of_ratio(NAME, target, added, FIGURES_ADD));
    }
    judged.push(outcome.cpu_at_most(NAME, LOG, LOG_OF_NOBODY, LARDER)?);
    Ok(judged)
}

fn watched(
    kit: &Kit,
    setup: &Setup<'_>,
    name: &'static str,
    (streams, query): (usize, &str),
    aside: &Aside,
) -> Result<Contender> {
    let contender = larder::full(kit, setup, name, AccessLog::Off)?;
    let admin = contender.admin.context("larder has an admin address")?;
    let onlookers: Vec<_> = (0..streams).map(|_| Onlooker::begin(admin, query)).collect::<Result<_>>()?;
    let aside = Arc::clone(aside);
    let ended: Vec<_> = onlookers.iter().map(|onlooker| Arc::clone(&onlooker.has_ended)).collect();
    Ok(contender.with_beside(onlookers).with_last_check(move |contender| {
        let is_watched = ended.iter().all(|ended| !ended.load(Ordering::Relaxed));
        ensure!(is_watched, "a stream of {name} ended before the load did");
        let times = contender.server.named_threads_cpu_time();
        let seconds: f64 = times
            .iter()
            .filter(|(name, _)| LOOKED_ON_BY.contains(&name.as_str()))
            .map(|(_, took)| took.as_secs_f64())
            .sum();
        ensure!(seconds > 0.0, "the kernel does not tell what threads take");
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let requests = told(admin, "larder_requests_total")? as f64;
        aside.lock().insert(name, seconds * 1e6 / requests);
        Ok(())
    }))
}

/// One who reads a stream until it is dropped.
struct Onlooker {
    stream: TcpStream,
    has_ended: Arc<AtomicBool>,
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
        let has_ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&has_ended);
        let read = move || {
            let mut core = CpuSet::new();
            core.set(LOAD_CORE);
            // Where it cannot be pinned it costs the servers' core at worst, and the figures are too high.
            let _ = sched_setaffinity(None, &core);
            let mut bytes = vec![0; 256 * 1024];
            loop {
                match own.read(&mut bytes) {
                    Ok(1..) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
            told.store(true, Ordering::Relaxed);
        };
        Ok(Self { stream, has_ended, reading: Some(std::thread::spawn(read)) })
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
