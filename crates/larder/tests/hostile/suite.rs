//! Runs the cases of a suite side by side and tells all failures at once.
//!
//! In: named cases, each a future of its own runtime. Out: a panic that lists what failed, or a line about the
//! slowest. Descriptors are counted before and after, so that a suite also shows that nothing stays open.
//! `HOSTILE=part-of-a-name` runs some of the cases.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::hostile::stage::{Outcome, Walk};
use crate::hostile::transport::Transport;

/// Cases at once. Most of a case is waiting: a larder that drains listens for another 100 ms.
const PARALLEL: usize = 16;
/// No case has a reason to take longer.
const CASE_TIME: Duration = Duration::from_secs(20);

/// A case of any kind, ready to run.
pub(crate) struct Run {
    name: String,
    transport: Transport,
    start: Box<dyn Fn() -> Walk + Send + Sync>,
}

impl Run {
    /// Over the transport that is the current one.
    pub(crate) fn new<F>(name: impl Into<String>, walk: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + 'static,
    {
        let transport = Transport::current();
        let name = format!("{}{}", name.into(), transport.label());
        Self { name, transport, start: Box::new(move || Box::pin(walk())) }
    }

    fn run(&self) -> Outcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let run = || runtime.block_on(async { tokio::time::timeout(CASE_TIME, (self.start)()).await });
        self.transport.during(run).unwrap_or_else(|_| Err(format!("still running after {CASE_TIME:?}")))
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The least of several counts: threads of other tests that begin or end just now open files for a moment.
#[expect(clippy::disallowed_methods, reason = "no worker here: the thread of the test")]
fn descriptors_at_rest() -> usize {
    let count = |_| {
        std::thread::sleep(Duration::from_millis(5));
        descriptors()
    };
    (0..COUNTS).map(count).min().unwrap_or_default()
}

/// So many counts.
const COUNTS: usize = 10;

/// How long threads may take to end.
const END_MAX: Duration = Duration::from_secs(10);

/// Held by whatever runs: the descriptors of others would be counted as well.
static ONE_SUITE: Mutex<()> = Mutex::new(());

/// The turn of one suite.
pub(crate) struct Turn {
    before: usize,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for the one before it.
    pub(crate) fn take() -> Self {
        let turn = ONE_SUITE.lock();
        // The first runtime of a process opens what all of them share.
        drop(tokio::runtime::Builder::new_current_thread().enable_all().build());
        Self { before: descriptors_at_rest(), _turn: turn }
    }

    /// Ends it once nothing is open that was not when it began. The last larder's threads end a little after it, and the next suite
    /// would count what they close.
    #[expect(clippy::disallowed_methods, reason = "no worker here: the thread of the test")]
    pub(crate) fn end(self) -> Outcome {
        let ended = Instant::now();
        while descriptors() > self.before && ended.elapsed() < END_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        match descriptors() {
            after if after == self.before => Ok(()),
            after => Err(format!("{} descriptors before, {after} after", self.before)),
        }
    }
}

/// Runs all that `list` tells. It is asked within the turn, since what the cases share may open files, which another suite would count.
pub(crate) fn run_all(list: impl FnOnce() -> Vec<Run>) {
    let turn = Turn::take();
    let mut runs = list();
    if let Ok(part) = std::env::var("HOSTILE") {
        runs.retain(|run| run.name.contains(&part));
    }
    let (next, failures, times) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    if let Err(why) = run.run() {
                        failures.lock().push(format!("{}\n    {why}", run.name));
                    }
                    times.lock().push((began.elapsed(), run.name.as_str()));
                }
            });
        }
    });
    let mut times = times.into_inner();
    times.sort_unstable();
    let slowest: Vec<String> =
        times.iter().rev().take(5).map(|(took, name)| format!("{name} {took:.1?}")).collect();
    println!("{} cases; the slowest: {}", runs.len(), slowest.join(", "));
    let mut failures = failures.into_inner();
    failures.sort();
    failures.extend(turn.end().err());
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n\n{}\n",
        failures.len(),
        runs.len(),
        failures.join("\n\n")
    );
}
