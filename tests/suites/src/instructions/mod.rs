//! Instructions per request, counted by callgrind: what noise cannot move.
//!
//! In: the scenarios of `scenario.rs`, and the figures in bench/instructions.json. Out: a table of both; a scenario
//! that is further than its margin ([`MARGIN_PERCENT`]) from its committed figure fails, below it as well: a win that nobody writes
//! down is room for a later loss that nobody sees. Only requests count: not the start, the first requests and the end.
//! Counts follow from the compiler and the processor. Where one of these is another than the figures were taken with, the table is for reading, and the
//! closing line says NOT JUDGED. A refresh belongs in the commit that changed the compiler. The versions of C's
//! library and of valgrind move them little, so they do not end the gate; a failure names them where they differ. The
//! release profile is counted: CI builds it anyway, for the commands of the README, while the one with link-time
//! optimisation takes minutes more; whoever makes a hit dearer makes it dearer in both.
//! Deliberately absent: time. Cache misses, system calls and the kernel's share are for the benches.

mod callgrind;
mod http1;
mod http2;
mod origin;
mod scenario;
mod stream;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use harness::children::run_within;
use harness::install::{self, From, Tool};
use parking_lot::Mutex;
use scenario::Scenario;

const TOOLS: &[Tool] = &[
    Tool { program: "valgrind", from: From::Apt("valgrind"), targets: &["instructions"] },
    Tool { program: "strip", from: From::Apt("binutils"), targets: &["instructions"] },
];

const FIGURES: &str = "bench/instructions.json";

/// How far a figure may be from the committed one.
const MARGIN_PERCENT: f64 = 3.0;

/// The same for scenarios with purges. Every ten seconds a walk forgets the purges that no response needs any more, which takes about
/// 3000 instructions for each. The number of walks depends on how long the run takes.
const MARGIN_OF_PURGES_PERCENT: f64 = 10.0;

/// Requests before those that count, and those: enough that a background task's second more or less is lost in them.
const BEFORE: u64 = 300;
const COUNTED: u64 = 1200;

/// Longest run of `strip`.
const STRIP_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// Counts every scenario, and compares or, with `write`, rewrites the figures.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    if let Err(error) = install::ensure_for(root, "instructions", TOOLS) {
        println!("instructions: NOT JUDGED, NOT COUNTED: {error:#}");
        return Ok(());
    }
    let program = build(root)?;
    let tools = Tools::here()?;
    let committed = if write { Figures::default() } else { Figures::read(root)? };
    let scenarios = scenario::all(root)?;
    println!("{:<42} {:>12} {:>10} {:>10}", "scenario", "instructions", "committed", "difference");
    let counted = count_all(&program, &scenarios)?;
    for scenario in &scenarios {
        let instructions = counted.get(scenario.name).copied().unwrap_or_default();
        println!("{}", row(scenario.name, instructions, committed.of.get(scenario.name).copied()));
    }
    if write {
        Figures { tools, of: counted }.write(root)?;
        println!("instructions: {} scenarios, written to {FIGURES}", scenarios.len());
        return Ok(());
    }
    let margin = |name: &str| {
        let scenario = scenarios.iter().find(|scenario| scenario.name == name);
        scenario.map_or(MARGIN_PERCENT, Scenario::margin_percent)
    };
    println!("instructions: {}", judge(&tools, &counted, (&committed, &margin))?);
    Ok(())
}

/// The release binary without its line tables, which callgrind would read at each start.
fn build(root: &Path) -> Result<PathBuf> {
    let build = ["build", "-q", "--release", "--locked", "-p", "larder"];
    let status = Command::new("cargo").args(build).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "larder could not be built");
    let built = root.join("target/release/larder");
    let program = root.join("target/tools/larder-counted");
    fs::create_dir_all(root.join("target/tools")).context("target/tools")?;
    let status = run_within(Command::new("strip").arg("-o").arg(&program).arg(built), STRIP_MAX)?;
    ensure!(status.success(), "strip: {status}");
    Ok(program)
}

/// Counts every scenario, one for each core at a time: what is counted is one process's own, whatever runs beside it.
fn count_all(program: &Path, scenarios: &[Scenario]) -> Result<BTreeMap<String, u64>> {
    let left = Mutex::new(scenarios.iter());
    let next = || left.lock().next();
    let work = || -> Result<Vec<(String, u64)>> {
        let mut counted = Vec::new();
        while let Some(scenario) = next() {
            let instructions = count(program, scenario).with_context(|| scenario.name.to_owned())?;
            counted.push((scenario.name.to_owned(), instructions));
        }
        Ok(counted)
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = BTreeMap::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow::anyhow!("a count panicked"))??);
        }
        Ok(all)
    })
}

/// Instructions of one request of `scenario`.
fn count(program: &Path, scenario: &Scenario) -> Result<u64> {
    Ok(scenario::play(program, scenario, (BEFORE, COUNTED))? / COUNTED)
}

/// Where these differ, counts do, and nothing is judged.
const DECISIVE: [&str; 2] = ["rustc", "processor"];

/// What counts depend on, other than larder itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tools(BTreeMap<String, String>);

impl Tools {
    fn here() -> Result<Self> {
        let first = |program: &str, argument: &str| -> Result<String> {
            let output = Command::new(program).arg(argument).output().with_context(|| program.to_owned())?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().next().unwrap_or_default().trim().to_owned())
        };
        // Routines like memcpy are chosen by what the processor can do; valgrind passes that on, up to AVX2.
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let wide = if processor.split_whitespace().any(|flag| flag == "avx2") { " with AVX2" } else { "" };
        Ok(Self(BTreeMap::from([
            ("rustc".to_owned(), first("rustc", "--version")?),
            ("valgrind".to_owned(), first("valgrind", "--version")?),
            ("libc".to_owned(), last_word(&first("ldd", "--version")?).to_owned()),
            ("processor".to_owned(), format!("{}{wide}", std::env::consts::ARCH)),
        ])))
    }

    /// What is different there, among what is decisive or among the rest.
    fn differences(&self, there: &Self, decisive: bool) -> Vec<String> {
        let asked = self.0.iter().filter(|(name, _)| DECISIVE.contains(&name.as_str()) == decisive);
        let differing = asked.filter(|(name, here)| there.0.get(*name) != Some(*here));
        differing
            .map(|(name, here)| {
                let there = there.0.get(name).map_or("not said", String::as_str);
                format!("{name}: committed with `{there}`, here is `{here}`")
            })
            .collect()
    }
}

/// `2.36` of `ldd (Debian GLIBC 2.36-9+deb12u14) 2.36`: without the number of the distribution's patches.
fn last_word(line: &str) -> &str {
    line.rsplit(' ').next().unwrap_or_default()
}

/// The committed figures: instructions per request by the scenario's name.
#[derive(Default)]
struct Figures {
    tools: Tools,
    of: BTreeMap<String, u64>,
}

impl Figures {
    fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FIGURES)).context(FIGURES)?;
        let value: Value = serde_json::from_str(&text).context(FIGURES)?;
        let object = |name: &str| {
            value.get(name).and_then(Value::as_object).with_context(|| format!("{FIGURES}: no `{name}`"))
        };
        let tools = object("counted_with")?.iter();
        let tools =
            tools.filter_map(|(name, tool)| Some((name.clone(), tool.as_str()?.to_owned()))).collect();
        let of = object("instructions_per_request")?.iter();
        let of: Result<_> = of
            .map(|(name, figure)| {
                let figure = figure.as_u64().filter(|figure| *figure > 0);
                Ok((name.clone(), figure.with_context(|| format!("{FIGURES}: no figure for `{name}`"))?))
            })
            .collect();
        let of = of?;
        Ok(Self { tools: Tools(tools), of })
    }

    fn write(&self, root: &Path) -> Result<()> {
        let value = json!({ "counted_with": self.tools.0, "instructions_per_request": self.of });
        fs::write(root.join(FIGURES), serde_json::to_string_pretty(&value)? + "\n").context(FIGURES)
    }
}

fn row(name: &str, counted: u64, committed: Option<u64>) -> String {
    let beside = committed.map_or_else(
        || format!("{:>10} {:>10}", "none", ""),
        |committed| format!("{committed:>10} {:>+8.2} %", percent(counted, committed)),
    );
    format!("{name:<42} {counted:>12} {beside}").trim_end().to_owned()
}

fn percent(counted: u64, committed: u64) -> f64 {
    (counted as f64 - committed as f64) * 100.0 / committed.max(1) as f64
}

/// Fails where a count is beyond the margin on either side of its figure, where a scenario has none, and where a
/// figure belongs to no scenario; never where the figures come from another compiler or processor. Else: the closing
/// line.
fn judge(
    tools: &Tools,
    counted: &BTreeMap<String, u64>,
    (committed, margin): (&Figures, &dyn Fn(&str) -> f64),
) -> Result<String> {
    let refresh = "refresh the figures with `make instructions WRITE=1`";
    let others = tools.differences(&committed.tools, true);
    if !others.is_empty() {
        return Ok(format!("NOT JUDGED: {}; {refresh} in the commit that changed it", others.join("; ")));
    }
    let unknown: Vec<&str> = counted
        .keys()
        .filter(|name| !committed.of.contains_key(*name))
        .chain(committed.of.keys().filter(|name| !counted.contains_key(*name)))
        .map(String::as_str)
        .collect();
    ensure!(unknown.is_empty(), "{FIGURES} and the scenarios differ in: {}; {refresh}", unknown.join(", "));
    let moved = |(name, count): (&String, &u64)| {
        let percent = percent(*count, committed.of.get(name).copied().unwrap_or_default());
        let margin = margin(name);
        (format!("\n  {name}: {percent:+.2} % where {margin} % are allowed"), percent, margin)
    };
    let moved: Vec<(String, f64, f64)> = counted.iter().map(moved).collect();
    let beyond = |side: f64| -> String {
        let beyond = moved.iter().filter(|(_, percent, margin)| percent * side > *margin);
        beyond.map(|(row, ..)| row.as_str()).collect()
    };
    let mut wrong = Vec::new();
    let (dearer, cheaper) = (beyond(1.0), beyond(-1.0));
    if !dearer.is_empty() {
        wrong.push(format!(
            "above the committed figures:{dearer}\nMake it cheaper again, or say in the commit \
             why it has to cost that and {refresh}"
        ));
    }
    if !cheaper.is_empty() {
        wrong.push(format!("below the committed figures:{cheaper}\nSo that what was won is kept: {refresh}"));
    }
    if !wrong.is_empty() {
        wrong.extend(tools.differences(&committed.tools, false));
        bail!("{}", wrong.join("\n"));
    }
    let percents = || moved.iter().map(|(_, percent, _)| *percent);
    let (least, most) = (percents().fold(f64::MAX, f64::min), percents().fold(f64::MIN, f64::max));
    Ok(format!(
        "{} scenarios, from {least:+.2} % to {most:+.2} % beside the committed figures",
        counted.len()
    ))
}

#[cfg(test)]
mod tests;
