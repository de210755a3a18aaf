//! Every fuzz target for a while: seconds in a test run, as long as it is told in a long one.
//!
//! In: the targets, by their committed seeds. Out: failure when one of them crashes, with the
//! input below fuzz/artifacts. A short run begins with the seeds alone, draws from a fixed number, and leaves the checkout as
//! it was: it finds the same each time. A long run draws anew, and what it found of new paths is kept below fuzz/kept for the
//! next one. All targets are one program, run side by side: one for each core, in a short run two. Only the
//! workspace's crates are instrumented (fuzz/instrumented); their libraries are those of the tests.
//! Deliberately absent: sanitizers. The crates hold next to no unsafe code, and without them the stable tool chain
//! does; what is looked for is panics and differences. And cargo-fuzz: it builds all libraries anew, and a program a
//! target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::children::{output_within, run_within};
use harness::install::{self, From, Tool};
use parking_lot::Mutex;

/// libFuzzer is C++.
const TOOLS: &[Tool] = &[Tool { program: "c++", from: From::Apt("g++"), targets: &["fuzz"] }];

/// Longest build of all targets.
const BUILD_MAX: Duration = Duration::from_secs(1200);
/// What a target may take beyond its time: reading its seeds, and an input that is just being read.
const GRACE: Duration = Duration::from_secs(120);

/// How a run draws, and what it begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// From a fixed number and the committed seeds.
    Fixed,
    /// Anew, and from what earlier runs have kept as well.
    Kept,
}

impl Drawing {
    /// What one input may take. A short run is one of CI, where tests come first.
    fn input_seconds(self) -> u32 {
        match self {
            Self::Fixed => 60,
            Self::Kept => 10,
        }
    }

    /// How many targets run at once for each core. With two, who waits for a run waits half as long, and it tries less.
    fn targets_per_core(self) -> usize {
        match self {
            Self::Fixed => 2,
            Self::Kept => 1,
        }
    }
}

/// Builds every target, so that a short run that follows has nothing to build.
pub(crate) fn build_all(root: &Path) -> Result<()> {
    install::ensure_for(root, "fuzz", TOOLS)?;
    build(root, Drawing::Fixed).map(drop)
}

/// Builds every target and runs each of them, or only one, for `seconds`.
pub(crate) fn run(root: &Path, only: Option<&str>, seconds: u32, drawing: Drawing) -> Result<()> {
    install::ensure_for(root, "fuzz", TOOLS)?;
    let mut targets = targets(root)?;
    if let Some(only) = only {
        ensure!(targets.iter().any(|name| name == only), "`{only}` is none of {}", targets.join(", "));
        targets.retain(|name| name == only);
    }
    let program = build(root, drawing)?;
    let left = Mutex::new(targets.iter());
    let next = || left.lock().next();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<anyhow::Error> = std::thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            while let Some(target) = next() {
                failed.extend(run_one(root, &program, target, seconds, drawing).err());
            }
            failed
        };
        let workers: Vec<_> = (0..cores * drawing.targets_per_core()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let failed: Vec<String> = failed.iter().map(|error| format!("{error:#}")).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    println!("fuzz: {} targets, {seconds} s each, nothing found", targets.len());
    Ok(())
}

/// The program of all targets.
///
/// For a short run it is built with the profile, packages and features of every other dev build, and shares their
/// libraries: that takes a quarter of the time, and the program tries a third of the inputs. For a long run it is
/// optimised.
fn build(root: &Path, drawing: Drawing) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--workspace", "--locked", "--test", "engine", "--features", "fuzz-targets/engine"])
        .args(["--profile", if drawing == Drawing::Kept { "release" } else { "dev" }])
        .args(["--message-format", "json-render-diagnostics"])
        .env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/instrumented"))
        .current_dir(root);
    let said = output_within(&mut command, BUILD_MAX).context("the fuzz targets could not be built")?;
    engine_of(&said).context("cargo names no program of the fuzz targets")
}

/// The executable among cargo's messages, a JSON object a line.
fn engine_of(messages: &str) -> Option<PathBuf> {
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let program = message.get("executable")?.as_str()?;
        (message.get("target")?.get("name")? == "engine").then(|| PathBuf::from(program))
    };
    messages.lines().find_map(executable)
}

fn run_one(root: &Path, program: &Path, target: &str, seconds: u32, drawing: Drawing) -> Result<()> {
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = root.join(name).join(target);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    };
    let seeds = root.join("fuzz/corpus").join(target);
    // libFuzzer writes new inputs to the first folder and reads both.
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let fresh = match drawing {
        Drawing::Fixed => scratch.path().to_path_buf(),
        Drawing::Kept => folder("fuzz/kept")?,
    };
    let artifacts = folder("fuzz/artifacts")?;
    let mut command = Command::new(program);
    command.args([&fresh, &seeds]).args([
        &format!("-max_total_time={seconds}"),
        &format!("-artifact_prefix={}/", artifacts.display()),
        &format!("-seed={}", u8::from(drawing == Drawing::Fixed)),
        &format!("-timeout={}", drawing.input_seconds()),
        "-rss_limit_mb=2048",
        "-max_len=16384",
    ]);
    // The finding is the message; a backtrace would push it out of sight.
    command.env("RUST_BACKTRACE", "0").env("LARDER_TARGET", target).current_dir(root);
    // libFuzzer is talkative; what it says is of interest only when it found something.
    let logs = root.join("target/fuzz");
    fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
    let said = logs.join(format!("{target}.log"));
    let log = fs::File::create(&said).with_context(|| said.display().to_string())?;
    command.stdout(log.try_clone()?).stderr(log);
    let status = run_within(&mut command, GRACE + Duration::from_secs(u64::from(seconds)))?;
    if !status.success() {
        bail!(
            "fuzz target {target}: {status}; an input that fails is below {}\n{}",
            artifacts.display(),
            end_of(&said)
        );
    }
    Ok(())
}

/// The last lines of a log.
fn end_of(said: &Path) -> String {
    let text = fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(60)..).unwrap_or_default().join("\n")
}

/// The names of all targets: each has a folder of seeds, which a test of the targets holds.
fn targets(root: &Path) -> Result<Vec<String>> {
    let corpus = root.join("fuzz/corpus");
    let folders = fs::read_dir(&corpus).with_context(|| corpus.display().to_string())?;
    let mut names: Vec<String> =
        folders.flatten().filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    ensure!(!names.is_empty(), "{}: no target has seeds", corpus.display());
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_one_that_cargo_names() {
        let library = r#"{"reason":"compiler-artifact","target":{"name":"fuzz_targets"},"executable":null}"#;
        let other = r#"{"reason":"compiler-artifact","target":{"name":"corpus"},"executable":"/t/corpus-1"}"#;
        let engine =
            r#"{"reason":"compiler-artifact","target":{"name":"engine"},"executable":"/t/engine-2"}"#;
        let said = [library, other, engine, "not json"].join("\n");
        assert_eq!(engine_of(&said), Some(PathBuf::from("/t/engine-2")));
        assert_eq!(engine_of(library), None);
    }
}
