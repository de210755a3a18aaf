//! One runner for everything that is measured by a load tool: it starts the servers of a scenario, checks what they
//! answer, warms them up, lets them take turns for three rounds, and stops them.
//!
//! In: [`Scenario`]s, each a request, what has to come back, a load, and a row per server. Out: an
//! [`Outcome`] with every run. The servers take turns within each round, so that a slow
//! moment of the machine meets all of them; idle ones cost nothing meanwhile.
//! A run counts only where status and whole body are right before and after it, the tool saw no error, the bytes it
//! received are those of the answer, and the origin was asked as often as the scenario allows. Otherwise nothing is
//! reported at all: figures of errors mislead.
//! Deliberately absent: looking into each answer of a run, which would make the load the limit.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::contender::{Contender, Kit, Protocol, Setup, Workers, floor};
use super::drive::{Driven, Load, Request, drive};
use super::load::allow_descriptors;
use super::outcome::{Figures, Measured, Outcome, Run};
use crate::children::output_within;
use crate::origin::Origin;

/// Longest check of one answer, and longest filling of a cache.
const CHECK_MAX: Duration = Duration::from_secs(60);
/// Most that a head may have for the received bytes to be those of the answer.
const HEAD_BYTES_MAX: f64 = 6144.0;

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
    /// It counts health checks as well.
    Fixed(Vec<u8>),
}

/// How often the origin may be asked during a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginAsked {
    /// Every answer is a hit.
    Never,
    /// Every answer is a miss: once for each, or more often.
    Each,
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
}

impl<'a> Row<'a> {
    /// `start` starts the server for a given setup.
    pub(crate) fn new(name: &str, start: impl Fn(&Setup<'_>) -> Result<Contender> + 'a) -> Self {
        Self { name: name.to_owned(), start: Box::new(start) }
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
    Fixed(Contender),
}

impl Origins {
    fn start(kit: &Kit, behind: &Behind) -> Result<Self> {
        Ok(match behind {
            Behind::Counting => Self::Counting(Origin::start()?),
            Behind::Fixed(answer) => Self::Fixed(floor::origin(kit, answer)?),
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
        // An origin for each: its count is of this server alone.
        let origin = Origins::start(kit, &scenario.behind)?;
        let setup = Setup {
            workers: scenario.workers,
            protocol: scenario.load.protocol(),
            ..kit.setup(origin.address())
        };
        let contender = (row.start)(&setup).with_context(|| row.name.clone())?;
        if let Some(target) = &scenario.prime {
            prime(contender.address, setup.protocol, target).with_context(|| row.name.clone())?;
        }
        verify(&contender, scenario).with_context(|| row.name.clone())?;
        drive(&kit.root, &scenario.load, &scenario.request, contender.address, pace.warm)
            .with_context(|| row.name.clone())?;
        running.push((contender, origin));
    }
    let mut figures: Vec<Figures> = scenario.rows.iter().map(|row| Figures::new(&row.name)).collect();
    for round in 1..=pace.rounds {
        for ((contender, origin), figures) in running.iter_mut().zip(&mut figures) {
            let run = one_run(kit, scenario, contender, origin, pace.run)
                .with_context(|| figures.server.clone())?;
            println!(
                "{}, round {round}, {}: {:.2} us CPU per request, {:.0} requests/s, p99 {:.0} us",
                scenario.name,
                figures.server,
                run.cpu_us_per_request,
                run.driven.requests_per_s,
                run.driven.p99_us
            );
            figures.resident_bytes = contender.server.resident_bytes();
            figures.runs.push(run);
        }
    }
    Ok(Measured { scenario: scenario.name.clone(), load: scenario.load.told(), rows: figures })
}

fn one_run(
    kit: &Kit,
    scenario: &Scenario<'_>,
    contender: &mut Contender,
    origin: &Origins,
    length: Duration,
) -> Result<Run> {
    verify(contender, scenario)?;
    let asked = origin.asked()?;
    let (cpu, origin_cpu, began) = (contender.server.cpu_time(), origin.cpu_time(), Instant::now());
    let mut driven = drive(&kit.root, &scenario.load, &scenario.request, contender.address, length)?;
    let cpu = contender.server.cpu_time().saturating_sub(cpu);
    let origin_cpu = origin.cpu_time().saturating_sub(origin_cpu);
    driven.load_percent += 100.0 * origin_cpu.as_secs_f64() / began.elapsed().as_secs_f64();
    let origin_requests = origin.asked()?.saturating_sub(asked);
    verify(contender, scenario)?;
    contender.server.still_runs()?;
    right_bytes(&driven, scenario)?;
    right_kind(scenario.origin_asked, origin_requests, driven.requests)?;
    Ok(Run { driven, cpu_us_per_request: cpu.as_secs_f64() * 1e6 / driven.requests, origin_requests })
}

/// That what was received is what the answers have: a body of another kind shows even where the status is right.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn right_bytes(driven: &Driven, scenario: &Scenario<'_>) -> Result<()> {
    let body = scenario.expected.body.len() as f64;
    // What was still on its way when the time was up is received as well, and is no request.
    let cut_off = scenario.load.in_flight_max() as f64 * (body + HEAD_BYTES_MAX) / driven.requests;
    let received = driven.bytes_per_request;
    ensure!(
        received >= body * 0.98 && received <= body + HEAD_BYTES_MAX + cut_off,
        "{received:.0} bytes for an answer, whose body has {body}"
    );
    Ok(())
}

/// That the origin was asked as often as hits or misses have it.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn right_kind(allowed: OriginAsked, asked: u64, answers: f64) -> Result<()> {
    match allowed {
        OriginAsked::Never => {
            ensure!(asked == 0, "the origin was asked {asked} times during the run: not all were hits");
        }
        OriginAsked::Each => {
            let enough = asked as f64 >= answers;
            ensure!(enough, "the origin was asked {asked} times for {answers} answers: not all were misses");
        }
    }
    Ok(())
}

fn verify(contender: &Contender, scenario: &Scenario<'_>) -> Result<()> {
    let (status, body) = ask(contender.address, scenario.load.protocol(), &scenario.request)?;
    let expected = &scenario.expected;
    ensure!(status == expected.status, "status {status}, not {}", expected.status);
    ensure!(body == expected.body, "a wrong body of {} bytes, not {}", body.len(), expected.body.len());
    Ok(())
}

/// One request by curl: status and body.
pub(crate) fn ask(address: SocketAddr, protocol: Protocol, request: &Request) -> Result<(u16, Vec<u8>)> {
    let file = tempfile::NamedTempFile::new()?;
    let mut command = curl(protocol);
    for field in &request.fields {
        command.args(["-H", field]);
    }
    command.arg("-g").arg("-o").arg(file.path()).args(["-w", "%{http_code}"]);
    let printed = output_within(command.arg(format!("http://{address}{}", request.target)), CHECK_MAX)?;
    Ok((printed.trim().parse().context("curl's status")?, std::fs::read(file.path())?))
}

/// Fetches every target that curl makes of `target`; none may be answered with an error.
fn prime(address: SocketAddr, protocol: Protocol, target: &str) -> Result<()> {
    let mut command = curl(protocol);
    command.args(["-o", "/dev/null", "-w", "%{http_code}\n"]).arg(format!("http://{address}{target}"));
    let statuses = output_within(&mut command, CHECK_MAX)?;
    let error = statuses.lines().find(|status| !status.starts_with(['2', '3']));
    ensure!(error.is_none(), "status {} while the cache was filled", error.unwrap_or_default());
    Ok(())
}

fn curl(protocol: Protocol) -> Command {
    let mut command = Command::new("curl");
    command.args(["-q", "-sS", "--path-as-is"]);
    if protocol == Protocol::Http2 {
        command.arg("--http2-prior-knowledge");
    }
    command
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::origin::body;

    fn driven(bytes_per_request: f64) -> Driven {
        Driven {
            requests: 1000.0,
            requests_per_s: 1000.0,
            p50_us: 1.0,
            p99_us: 1.0,
            p999_us: None,
            bytes_per_request,
            load_percent: 50.0,
        }
    }

    #[test]
    fn a_body_of_another_length_refuses_a_run() {
        let scenario = Scenario::hit("8 KB", "/page/8357", body(8357), Vec::new());
        for (received, right) in [(8357.0, true), (8600.0, true), (340.0, false), (57_300.0, false)] {
            assert_eq!(right_bytes(&driven(received), &scenario).is_ok(), right, "{received}");
        }
    }

    #[test]
    fn a_miss_among_hits_and_a_hit_among_misses_refuse_a_run() {
        let check = |allowed, asked, right: bool| {
            assert_eq!(right_kind(allowed, asked, 1000.0).is_ok(), right, "{asked}");
        };
        check(OriginAsked::Never, 0, true);
        check(OriginAsked::Never, 1, false);
        check(OriginAsked::Each, 1000, true);
        check(OriginAsked::Each, 1064, true);
        check(OriginAsked::Each, 999, false);
    }

    #[test]
    fn the_origin_is_asked_by_curl_and_fills_are_checked() {
        let origin = Origin::start().unwrap();
        let request = Request::of("/page/57");
        assert_eq!(ask(origin.address, Protocol::Http1, &request).unwrap(), (200, body(57)));
        prime(origin.address, Protocol::Http1, "/key/[0-9]/134").unwrap();
        assert_eq!(origin.asked(), 11);
        let nobody = crate::children::free_port().unwrap();
        assert!(prime(nobody, Protocol::Http1, "/").is_err());
    }
}
