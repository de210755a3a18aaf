//! One runner for everything that is measured by a load tool: it starts the servers of a scenario, checks what they
//! answer, warms them up, lets them take turns for three rounds, and stops them.
//!
//! In: [`Scenario`]s, each a request, what has to come back, a load, and a row per server. Out: an
//! [`Outcome`] with every run. The servers take turns within each round, another one first each time, so that a slow
//! moment of the machine meets all of them; who is not on turn stands still (turns.rs).
//! A run counts only where status and whole body are right before and after it, the tool saw no error, and what
//! validity.rs asks for is true. Otherwise nothing is reported at all: figures of errors mislead. Only a run in which the
//! hypervisor took too much of a core is made again, a few times.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::contender::{Contender, Kit, Setup, Workers, floor};
use super::curl::{Answer, ask, fill};
use super::drive::{Load, Request, drive};
use super::load::allow_descriptors;
use super::machine::Moment;
use super::outcome::{Figures, Measured, Outcome, Run};
use super::turns::{TakesTurns, wait};
use super::validity::{OriginAsked, STEAL_PERCENT_MAX, connections_kept, right_bytes, right_kind};
use harness::origin::Origin;

/// How often a run is made until the hypervisor leaves it alone.
const TRIES_MAX: usize = 4;

/// How often and how long.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) run: Duration,
    pub(crate) warm: Duration,
}

impl Pace {
    /// Three rounds of 3 s, after 1 s that is not counted.
    pub(crate) const USUAL: Self =
        Self { rounds: 3, run: Duration::from_secs(3), warm: Duration::from_secs(1) };
}

/// What stands behind the servers.
pub(crate) enum Behind {
    /// The origin of this program (origin.rs): the answer follows from the target, and requests are counted.
    Counting,
    /// The floor on the load's core, with this answer to everything: cheap enough to be asked for every request.
    /// It leaves health checks out of its count.
    Fixed(Vec<u8>),
}

/// What has to come back.
#[derive(Clone)]
pub(crate) struct Expected {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// One question, put to several servers.
pub(crate) struct Scenario<'a> {
    /// As the table has it, and by which figures are found: `134 B`.
    pub(crate) name: String,
    pub(crate) behind: Behind,
    /// A target that is fetched before anything else, perhaps with curl's ranges: `/key/[0-9999]/134`.
    pub(crate) prime: Option<String>,
    pub(crate) request: Request,
    pub(crate) expected: Expected,
    pub(crate) load: Load,
    pub(crate) origin_asked: OriginAsked,
    pub(crate) workers: Workers,
    pub(crate) rows: Vec<Row<'a>>,
}

type Start<'a> = Box<dyn Fn(&Setup<'_>) -> Result<Contender> + 'a>;

/// One server in a scenario.
pub(crate) struct Row<'a> {
    name: String,
    start: Start<'a>,
    clears_up: Duration,
    /// In place of the scenario's.
    target: Option<String>,
    /// Not over TLS, whatever the scenario says.
    in_clear: bool,
}

impl<'a> Row<'a> {
    /// `start` starts the server for a given setup.
    pub(crate) fn new(name: &str, start: impl Fn(&Setup<'_>) -> Result<Contender> + 'a) -> Self {
        Self {
            name: name.to_owned(),
            start: Box::new(start),
            clears_up: Duration::ZERO,
            target: None,
            in_clear: false,
        }
    }

    /// It is asked for another target than the others, for the same answer.
    pub(crate) fn asking(self, target: impl Into<String>) -> Self {
        Self { target: Some(target.into()), ..self }
    }

    /// It is asked in clear text, beside others over TLS.
    pub(crate) fn in_clear(self) -> Self {
        Self { in_clear: true, ..self }
    }

    /// For so long after each run the server clears up behind it, which counts as its CPU time: what it does later
    /// belongs to what it was asked for as well.
    pub(crate) fn clearing_up(self, clears_up: Duration) -> Self {
        Self { clears_up, ..self }
    }

    /// What it is asked.
    fn request(&self, scenario: &Scenario<'_>) -> Request {
        let mut request = scenario.request.clone();
        request.secured &= !self.in_clear;
        match &self.target {
            Some(target) => Request { target: target.clone(), ..request },
            None => request,
        }
    }
}

impl<'a> Scenario<'a> {
    /// A hit on `target` by keep-alive connections, one worker, answered 200 with this body. What differs is changed
    /// by the caller.
    pub(crate) fn hit(name: impl Into<String>, target: &str, body: Vec<u8>, rows: Vec<Row<'a>>) -> Self {
        Self {
            name: name.into(),
            behind: Behind::Counting,
            prime: None,
            request: Request::of(target),
            expected: Expected { status: 200, body },
            load: Load::Wrk { connections: 64, script: None },
            origin_asked: OriginAsked::Never,
            workers: Workers::ONE,
            rows,
        }
    }
}

/// Measures all scenarios, one after the other.
///
/// # Errors
/// A server that does not start, or a run that does not count.
pub(crate) fn run(kit: &Kit, scenarios: &[Scenario<'_>], pace: Pace) -> Result<Outcome> {
    allow_descriptors()?;
    let mut outcome = Outcome::default();
    for scenario in scenarios {
        outcome.measured.push(measure(kit, scenario, pace).with_context(|| scenario.name.clone())?);
    }
    Ok(outcome)
}

/// The origin of a scenario, while it runs.
enum Origins {
    Counting(Origin),
    Fixed(Box<Contender>),
}

impl Origins {
    fn start(kit: &Kit, behind: &Behind) -> Result<Self> {
        Ok(match behind {
            Behind::Counting => Self::Counting(Origin::start()?),
            Behind::Fixed(answer) => Self::Fixed(Box::new(floor::origin(kit, answer)?)),
        })
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Counting(origin) => origin.address,
            Self::Fixed(origin) => origin.address,
        }
    }

    fn asked(&self) -> Result<u64> {
        match self {
            Self::Counting(origin) => Ok(origin.asked()),
            Self::Fixed(origin) => floor::answered(origin.address),
        }
    }

    /// What the origin took of the load's core so far.
    fn cpu_time(&self) -> Duration {
        match self {
            // No hit asks it.
            Self::Counting(_) => Duration::ZERO,
            Self::Fixed(origin) => origin.server.cpu_time(),
        }
    }
}

fn measure(kit: &Kit, scenario: &Scenario<'_>, pace: Pace) -> Result<Measured> {
    let mut running = Vec::with_capacity(scenario.rows.len());
    for row in &scenario.rows {
        let (contender, origin) = begin(kit, scenario, row, pace).with_context(|| row.name.clone())?;
        running.push((TakesTurns::new(contender)?, origin, row, Figures::new(&row.name)));
    }
    for round in 1..=pace.rounds {
        for (contender, origin, row, figures) in &mut running {
            let mut contender = contender.turn().with_context(|| row.name.clone())?;
            let run = one_run(kit, scenario, row, &mut contender, origin, pace.run)
                .with_context(|| row.name.clone())?;
            println!(
                "{}, round {round}, {}: {:.2} us CPU per request, {:.0} requests/s, p99 {:.0} us",
                scenario.name, row.name, run.cpu_us_per_request, run.driven.requests_per_s, run.driven.p99_us
            );
            figures.resident_bytes = contender.resident_bytes();
            figures.runs.push(run);
        }
        // Another one comes first in the next round: whom a server follows may matter to it.
        let first = running.len().min(1);
        running.rotate_left(first);
    }
    // Back into the order of the table.
    let turned = pace.rounds.checked_rem(running.len()).unwrap_or(0);
    running.rotate_right(turned);
    let mut rows = Vec::with_capacity(running.len());
    for (mut contender, _origin, row, figures) in running {
        contender.turn()?.check_at_last().with_context(|| row.name.clone())?;
        rows.push(figures);
    }
    Ok(Measured { scenario: scenario.name.clone(), load: scenario.load.told(), rows })
}

/// A server with an origin of its own, whose count is of this server alone: filled, seen to be right, and warm.
fn begin(kit: &Kit, scenario: &Scenario<'_>, row: &Row<'_>, pace: Pace) -> Result<(Contender, Origins)> {
    let origin = Origins::start(kit, &scenario.behind)?;
    let setup = Setup {
        workers: scenario.workers,
        protocol: scenario.load.protocol(),
        certificates: row.request(scenario).secured.then(|| kit.certificates()),
        ..kit.setup(origin.address())
    };
    let contender = (row.start)(&setup)?;
    if let Some(target) = &scenario.prime {
        let prime = Request { target: target.clone(), ..row.request(scenario) };
        fill(contender.address, scenario.load.version(), &prime)?;
    }
    let request = row.request(scenario);
    verify(&contender, scenario, &request)?;
    drive(&kit.root, &scenario.load, &request, (contender.address, kit.certificates()), pace.warm)?;
    Ok((contender, origin))
}

fn one_run(
    kit: &Kit,
    scenario: &Scenario<'_>,
    row: &Row<'_>,
    contender: &mut Contender,
    origin: &Origins,
    length: Duration,
) -> Result<Run> {
    let mut steal_percent = 0.0;
    for _ in 0..TRIES_MAX {
        let run = one_try(kit, scenario, row, contender, origin, length)?;
        steal_percent = run.steal_percent;
        if steal_percent <= STEAL_PERCENT_MAX {
            return Ok(run);
        }
        println!("{}, {}: the hypervisor took {steal_percent:.1} %, once more", scenario.name, row.name);
    }
    bail!(
        "the hypervisor took {steal_percent:.1} % of a core, and too much in {TRIES_MAX} runs: no quiet machine"
    )
}

fn one_try(
    kit: &Kit,
    scenario: &Scenario<'_>,
    row: &Row<'_>,
    contender: &mut Contender,
    origin: &Origins,
    length: Duration,
) -> Result<Run> {
    let (load, request) = (&scenario.load, row.request(scenario));
    let before = verify(contender, scenario, &request)?;
    let asked = origin.asked()?;
    let (cpu, origin_cpu, moment) = (contender.cpu_time(), origin.cpu_time(), Moment::now()?);
    let mut driven = drive(&kit.root, load, &request, (contender.address, kit.certificates()), length)?;
    let (passed, origin_cpu) = (moment.passed()?, origin.cpu_time().saturating_sub(origin_cpu));
    let origin_requests = origin.asked()?.saturating_sub(asked);
    wait(row.clears_up);
    let cpu = contender.cpu_time().saturating_sub(cpu);
    let after = verify(contender, scenario, &request)?;
    contender.server.still_runs()?;
    right_bytes(&driven, load, [&before, &after])?;
    right_kind(scenario.origin_asked, origin_requests, driven.requests, load)?;
    connections_kept(&passed, load, scenario.origin_asked, driven.requests)?;
    driven.load_percent += 100.0 * origin_cpu.as_secs_f64() * driven.requests_per_s / driven.requests;
    Ok(Run {
        driven,
        cpu_us_per_request: cpu.as_secs_f64() * 1e6 / driven.requests,
        origin_requests,
        steal_percent: passed.steal_percent,
    })
}

/// One answer, which has to be the expected one.
fn verify(contender: &Contender, scenario: &Scenario<'_>, request: &Request) -> Result<Answer> {
    let request = Request { target: once(&request.target), ..request.clone() };
    let answer = ask(contender.address, scenario.load.version(), &request)?;
    let expected = &scenario.expected;
    ensure!(answer.status == expected.status, "status {}, not {}", answer.status, expected.status);
    let right = answer.body == expected.body;
    ensure!(right, "a wrong body of {} bytes, not {}", answer.body.len(), expected.body.len());
    Ok(answer)
}

/// The target with its `NEW`, which stands for what nobody asked for before (bench/load/distinct.lua), made so: the
/// second answer of one target would be a hit, with another head than those of the run.
fn once(target: &str) -> String {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    target.replacen("NEW", &format!("looked-at-{number}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_nobody_asked_for_is_another_each_time() {
        assert_eq!(once("/page/134"), "/page/134");
        let (first, second) = (once("/page/NEW/134"), once("/page/NEW/134"));
        assert!(
            first != second && first.starts_with("/page/looked-at-") && first.ends_with("/134"),
            "{first}"
        );
    }
}
