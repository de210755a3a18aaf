//! The public HTTP cache suite against larder as it comes, without any configuration.
//!
//! In: the npm package pinned in tests/conformance, Node, and the binary of the dev profile. Out: the outcome of each
//! of its tests beside tests/conformance/expected.json, and docs/reference/conformance.md, which is made from that file
//! and the package alone. Any lasting difference fails, in both directions. A hundred tests run at once and they
//! measure seconds, so a test that differs is run once more, by itself, before it counts.
//! Deliberately absent: a pass mark. What is not passed on purpose has its reason in `reasons.rs`, and must have one.

mod expected;
mod page;
mod reasons;
mod score;
mod suite;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use harness::built;
use harness::children::{Server, free_port};
use score::{Kind, Outcome, Outcomes, Package};
use suite::{Installed, Telling};

const READY_MAX: Duration = Duration::from_secs(20);
/// More differences than this are no noise, and are not run again.
const RERUN_MAX: usize = 20;

/// What to do with a run.
pub(crate) enum Purpose {
    /// Compare with what is committed.
    Compare,
    /// Commit it: expected.json and the page.
    Write,
    /// One test only, with every message of both sides.
    Show(String),
}

/// Runs the suite.
pub(crate) fn run(root: &Path, purpose: Purpose) -> Result<()> {
    let suite = Installed::ensure(root)?;
    let package = Package::read(&suite.list()?).context("the suite's list of tests")?;
    match purpose {
        Purpose::Show(id) => show(root, &suite, &package, &id),
        Purpose::Write => {
            let found = measure(root, &suite, &package, &expected::read(root).unwrap_or_default())?;
            let version = suite.version()?;
            expected::write(root, &version, &found)?;
            page::write(root, &page::render(&package, &found, &version))?;
            for missing in reasons::breaches(&package, &found) {
                println!("conformance: {missing}");
            }
            report(&package, &found);
            Ok(())
        }
        Purpose::Compare => {
            let expected = expected::read(root)?;
            let found = measure(root, &suite, &package, &expected)?;
            let mut wrong: Vec<String> = expected::differences(&expected, &found)
                .iter()
                .map(|d| format!("{}: {}, expected {}", d.id, d.found, d.expected))
                .collect();
            wrong.extend(reasons::breaches(&package, &expected));
            if !page::is_current(root, &page::render(&package, &expected, &suite.version()?)) {
                wrong.push(format!("{} is stale", page::FILE));
            }
            for line in &wrong {
                println!("conformance: {line}");
            }
            ensure!(
                wrong.is_empty(),
                "{} differences; `make conformance ONLY=id` shows a test, `make conformance WRITE=1` commits the run",
                wrong.len()
            );
            report(&package, &found);
            Ok(())
        }
    }
}

/// larder in front of the suite's origin, as `larder run --origin` starts it.
struct Bench {
    larder: Server,
    _origin: Server,
    listen: SocketAddr,
}

impl Bench {
    fn start(root: &Path, suite: &Installed, telling: Telling) -> Result<Self> {
        let program = built::larder(root)?;
        let (origin, origin_address) = suite.origin(telling)?;
        let (listen, admin) = (free_port()?, free_port()?);
        let mut larder = Server::start(
            "larder",
            Command::new(program)
                .args(["run", "--origin", &format!("http://{origin_address}")])
                .args(["--listen", &listen.to_string(), "--admin", &admin.to_string()])
                .stdout(Stdio::null())
                // It tells of every origin connection that a test breaks on purpose.
                .stderr(Stdio::null()),
        )?;
        larder.wait_for(listen, READY_MAX)?;
        Ok(Self { larder, _origin: origin, listen })
    }
}

/// Runs everything, and once more what differs from `expected`.
fn measure(root: &Path, suite: &Installed, package: &Package, expected: &Outcomes) -> Result<Outcomes> {
    let mut bench = Bench::start(root, suite, Telling::Results)?;
    let mut results = suite.run(bench.listen, &[], Telling::Results)?;
    let found = package.judge(&results);
    // What only lacks its prerequisite is judged anew with it.
    let differing = expected::differences(expected, &found);
    let own = differing.iter().filter(|difference| difference.found != Outcome::DependencyFail);
    let again: Vec<&str> = own.map(|difference| difference.id).collect();
    if (1..=RERUN_MAX).contains(&again.len()) {
        println!("conformance: once more, each by itself: {}", again.join(", "));
        results.extend(suite.run(bench.listen, &again, Telling::Results)?);
    }
    bench.larder.still_runs().context("larder did not survive the suite")?;
    Ok(package.judge(&results))
}

fn show(root: &Path, suite: &Installed, package: &Package, id: &str) -> Result<()> {
    ensure!(package.tests().any(|test| test.id == id), "no test `{id}`");
    let bench = Bench::start(root, suite, Telling::Messages)?;
    let results = suite.run(bench.listen, &[id], Telling::Messages)?;
    println!("conformance: {id}: {}", results.get(id).unwrap_or(&serde_json::Value::Null));
    Ok(())
}

fn report(package: &Package, outcomes: &Outcomes) {
    let part = |kind, apart| {
        let (good, all) = package.score(kind, apart, outcomes);
        format!("{good} of {all}")
    };
    println!(
        "conformance: {} required, {} optimal, {} checks yes; surrogate suite, apart: {} required, {} optimal",
        part(Kind::Required, false),
        part(Kind::Optimal, false),
        part(Kind::Check, false),
        part(Kind::Required, true),
        part(Kind::Optimal, true),
    );
}
