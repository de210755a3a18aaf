//! Going through a scenario: origins up, larder up, step by step, and a last look when all is done.
//!
//! In: a file and a [`Larder`]. Out: nothing, or a [`Failure`]. Each scenario has its own runtime, origins, clock and
//! directory, so any number can run at the same time. The whole is bounded by 20 s of real time; larder's own calls
//! happen outside of the runtime and are trusted to end.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use larder_http::time::Clock;
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::format::Scenario;
use super::report::{Failure, Mismatch, Report};
use super::send::Crowd;
use super::{Larder, Started, load};
use crate::Error;
use crate::client::Connection;
use crate::origin::{Gates, Origin};
use crate::template::Context;

/// All of a scenario.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How long larder may take to let go of what it held for clients that have left.
const SETTLE_LIMIT: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 10_000 });
/// How often conditions are looked at that span several origins and metrics and so have no event in common.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What larder holds on behalf of clients and exchanges, and is to be nothing once they have ended.
const GAUGES: [&str; 5] = [
    "larder_flights",
    "larder_flights_waiting",
    "larder_origin_queue_length",
    "larder_origin_in_flight",
    "larder_connections_open",
];

/// What is counted twice, by different words: the sums of both sides are equal once all exchanges have ended.
const EQUAL_SUMS: [(&[&str], &[&str]); 4] = [
    (&["larder_requests_total"], &["larder_rule_requests_total"]),
    (&["larder_response_body_bytes_total"], &["larder_rule_body_bytes_total"]),
    (
        &["larder_cache_lookups_total{status=\"hit\"}"],
        &[
            "larder_rule_requests_total{result=\"memory\"}",
            "larder_rule_requests_total{result=\"disk\"}",
            "larder_rule_requests_total{result=\"file\"}",
            "larder_rule_requests_total{result=\"remote\"}",
            "larder_rule_requests_total{result=\"stale\"}",
        ],
    ),
    (
        &["larder_rule_forwarded_total"],
        &["larder_rule_requests_total{result=\"joined\"}", "larder_rule_requests_total{result=\"asked\"}"],
    ),
];

/// A single wait of a client or an origin for the other end.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(10);

const DEFAULT_CONFIG: &str = r#"
listen = ["127.0.0.1:0"]
admin = "127.0.0.1:0"
workers = 2

[origins.app]
servers = ["{origin}"]
{app}

[stores.default]
memory = "64MiB"

[[site]]
origin = "app"
"#;

/// Runs the scenarios beneath `dir` whose path contains `only`, at most `parallel` at a time, each with a larder of
/// its own.
///
/// # Panics
/// Where `dir` cannot be read.
pub fn run_all(
    dir: &Path,
    parallel: usize,
    only: Option<&str>,
    make: &(dyn Fn() -> Box<dyn Larder> + Sync),
) -> Report {
    let files = load::find(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let wanted = |file: &Path| only.is_none_or(|only| file.to_string_lossy().contains(only));
    let files: Vec<_> = files.into_iter().filter(|file| wanted(file)).collect();
    let (next, report) = (AtomicUsize::new(0), Mutex::new(Report::default()));
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, files.len().max(1)) {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = catch_unwind(AssertUnwindSafe(|| run_file(file, make().as_mut())));
                    let panicked =
                        |_| Err(failure(file, "", None, vec![Mismatch::new("run", "an end", "a panic")]));
                    let run = run.unwrap_or_else(panicked);
                    let mut report = report.lock();
                    match run {
                        Ok(()) => report.passed += 1,
                        Err(failed) => report.failed.push(*failed),
                    }
                }
            });
        }
    });
    let mut report = report.into_inner();
    report.failed.sort_by(|a, b| a.file.cmp(&b.file));
    report
}

/// Runs one scenario.
///
/// # Errors
/// What is not as the file states, or what is wrong with the file.
pub fn run_file(path: &Path, larder: &mut dyn Larder) -> Result<(), Box<Failure>> {
    let broken = |rule: &str, error: Error| {
        failure(path, rule, None, vec![Mismatch::new("scenario", "can be run", error.to_string())])
    };
    let scenario = load::load(path).map_err(|error| broken("", error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| broken(&scenario.rule, error.into()))?;
    let mut world = World::new(&scenario, &runtime, larder).map_err(|error| broken(&scenario.rule, error))?;
    let went = world.go(&scenario).map_err(|(step, mismatches)| {
        let mut failed = failure(path, &scenario.rule, step, mismatches);
        failed.response = std::mem::take(&mut world.last_response);
        for (name, origin) in &world.origins {
            let log = origin.log().to_string();
            if !log.is_empty() {
                failed.origin_log.push_str(&format!("  {name} ({}):\n{log}", origin.addr()));
            }
        }
        failed
    });
    let quiet = went.and_then(|()| {
        let left = world.settle();
        if left.is_empty() { Ok(()) } else { Err(failure(path, &scenario.rule, None, left)) }
    });
    // Clients leave first, so that nothing keeps larder from stopping.
    world.leave();
    let stopped = world.larder.stop();
    drop(world);
    runtime.shutdown_background();
    quiet?;
    stopped.map_err(|why| failure(path, &scenario.rule, None, vec![Mismatch::new("larder", "stops", why)]))
}

fn failure(
    path: &Path,
    rule: &str,
    step: Option<(usize, String)>,
    mismatches: Vec<Mismatch>,
) -> Box<Failure> {
    Box::new(Failure {
        file: path.to_owned(),
        rule: rule.to_owned(),
        step,
        mismatches,
        response: String::new(),
        origin_log: String::new(),
    })
}

/// A step's number and action, and what was wrong with it.
type Wrong = (Option<(usize, String)>, Vec<Mismatch>);

/// Everything that a scenario holds while it runs.
pub(super) struct World<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) larder: &'a mut dyn Larder,
    pub(super) origins: BTreeMap<String, Origin>,
    pub(super) gates: Gates,
    pub(super) clock: Clock,
    pub(super) start: SystemTime,
    pub(super) deadline: Instant,
    tmp: tempfile::TempDir,
    pub(super) at: Option<Started>,
    pub(super) kept: BTreeMap<String, Connection>,
    pub(super) crowds: BTreeMap<String, Crowd>,
    pub(super) last_response: String,
    pub(super) last_stated: u64,
    /// What steps have told it to keep of their answers.
    pub(super) remembered: BTreeMap<String, String>,
}

impl<'a> World<'a> {
    fn new(scenario: &Scenario, runtime: &'a Runtime, larder: &'a mut dyn Larder) -> Result<Self, Error> {
        let (gates, clock) = (Gates::default(), Clock::default());
        let mut scripts: BTreeMap<String, Vec<_>> = BTreeMap::from([("origin".to_owned(), Vec::new())]);
        for script in &scenario.origin {
            scripts.entry(script.name.clone()).or_default().push(script.clone());
        }
        let _entered = runtime.enter();
        let mut origins = BTreeMap::new();
        for (name, scripts) in scripts {
            origins.insert(name, Origin::start(scripts, gates.clone(), clock.clone(), WAIT_LIMIT)?);
        }
        let tmp = tempfile::tempdir()?;
        for file in &scenario.file {
            let path = tmp.path().join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap_or(tmp.path()))?;
            std::fs::write(path, &file.content)?;
        }
        Ok(Self {
            runtime,
            larder,
            origins,
            gates,
            clock,
            start: SystemTime::now(),
            deadline: Instant::now() + TIME_LIMIT,
            tmp,
            at: None,
            kept: BTreeMap::new(),
            crowds: BTreeMap::new(),
            last_response: String::new(),
            last_stated: 0,
            remembered: BTreeMap::new(),
        })
    }

    fn go(&mut self, scenario: &Scenario) -> Result<(), Wrong> {
        let lines = |lines: &Option<String>| lines.clone().unwrap_or_default();
        let text = match &scenario.config {
            Some(config) => config.clone(),
            None => DEFAULT_CONFIG.replace("{app}", &lines(&scenario.app)) + &lines(&scenario.site),
        };
        let started = self.larder.start(&self.config(&text));
        self.at = Some(started.map_err(|why| (None, vec![Mismatch::new("larder", "starts", why)]))?);
        for (n, step) in scenario.step.iter().enumerate() {
            let mismatches = self
                .step(step)
                .unwrap_or_else(|error| vec![Mismatch::new("step", "can be done", error.to_string())]);
            if !mismatches.is_empty() {
                return Err((Some((n + 1, step.to_string())), mismatches));
            }
        }
        let mismatches = self.at_the_end();
        if mismatches.is_empty() { Ok(()) } else { Err((None, mismatches)) }
    }

    pub(super) fn config(&self, text: &str) -> String {
        let mut text = text.replace("{tmp}", &self.tmp.path().to_string_lossy());
        for (name, origin) in &self.origins {
            text = text.replace(&format!("{{{name}}}"), &origin.url());
        }
        text
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context { clock: &self.clock, start: self.start, request: None }
    }

    pub(super) fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let deadline = tokio::time::Instant::from_std(self.deadline);
        self.runtime
            .block_on(async { tokio::time::timeout_at(deadline, work).await })
            .map_err(|_| Error::TimedOut("the scenario's 20 s"))
    }

    pub(super) fn origin_requests(&self) -> u64 {
        self.origins.values().map(|origin| origin.log().count()).sum()
    }

    /// Clients close what they have open.
    fn leave(&mut self) {
        self.kept.clear();
        self.crowds.clear();
    }

    /// Sums that differ although they are of the same.
    fn unequal(&self) -> impl Iterator<Item = Mismatch> {
        let sum = |series: &[&str]| -> f64 { series.iter().filter_map(|one| self.larder.metric(one)).sum() };
        EQUAL_SUMS.iter().filter_map(move |(one, other)| {
            let (expected, got) = (sum(one), sum(other));
            let differs = expected != got;
            differs.then(|| Mismatch::new(format!("sum of {other:?}"), expected.to_string(), got.to_string()))
        })
    }

    /// Lets everybody go, clients and origins, and looks whether larder then holds anything on their behalf, and has counted all of
    /// them alike.
    fn settle(&mut self) -> Vec<Mismatch> {
        self.leave();
        self.gates.release_all();
        let until = Instant::now() + SETTLE_LIMIT;
        loop {
            let held = GAUGES.iter().filter_map(|&gauge| Some((gauge, self.larder.metric(gauge)?)));
            let held: Vec<Mismatch> = held
                .filter(|&(_, value)| value != 0.0)
                .map(|(gauge, value)| {
                    Mismatch::new(format!("{gauge} when all have left"), "0", value.to_string())
                })
                .chain(self.unequal())
                .collect();
            if held.is_empty() || Instant::now() > until {
                return held;
            }
            self.runtime.block_on(async { tokio::time::sleep(LOOK_EVERY).await });
        }
    }

    /// What no scenario has to state.
    fn at_the_end(&self) -> Vec<Mismatch> {
        let mut out = Vec::new();
        for (name, origin) in &self.origins {
            for complaint in origin.log().complaints() {
                out.push(Mismatch::new(format!("request to {name}"), "scripted and well-formed", complaint));
            }
        }
        let requests = self.origin_requests();
        if requests != self.last_stated {
            let stated = self.last_stated.to_string();
            out.push(Mismatch::new("origin_requests when all is done", stated, requests.to_string()));
        }
        for name in self.crowds.keys() {
            out.push(Mismatch::new(format!("clients {name}"), "finished or aborted", "left alone"));
        }
        out
    }
}
