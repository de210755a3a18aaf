//! Every fuzz target for a while: seconds in a test run, as long as it is told in a long one.
//!
//! In: the targets of fuzz/Cargo.toml and their committed seeds. Out: failure when one of them crashes, with the
//! input below fuzz/artifacts. A short run begins with the seeds alone, draws from a fixed number, and leaves the checkout as
//! it was: it finds the same each time. A long run draws anew, and what it found of new paths is kept below fuzz/kept for the
//! next one. All targets are built at once and run side by side, one for each core.
//! Deliberately absent: sanitizers. The crates hold next to no unsafe code, and without them the stable tool chain
//! does; what is looked for is panics and differences.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::children::run_within;
use parking_lot::Mutex;

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

/// Builds every target, so that a run that follows has nothing to build.
pub(crate) fn build_all(root: &Path) -> Result<()> {
    crate::tools::need(root, "fuzz")?;
    build(root).map(drop)
}

/// Builds every target and runs each for `seconds`.
pub(crate) fn run(root: &Path, seconds: u32, drawing: Drawing) -> Result<()> {
    crate::tools::need(root, "fuzz")?;
    let targets = targets(root)?;
    let programs = build(root)?;
    let left = Mutex::new(targets.iter());
    let next = || left.lock().next();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<anyhow::Error> = std::thread::scope(|scope| {
        let work = || {
            let mut failed = Vec::new();
            while let Some(target) = next() {
                failed.extend(run_one(root, &programs, target, seconds, drawing).err());
            }
            failed
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    let failed: Vec<String> = failed.iter().map(|error| format!("{error:#}")).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    println!("fuzz: {} targets, {seconds} s each, nothing found", targets.len());
    Ok(())
}

/// Where the programs of all targets are.
fn build(root: &Path) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["fuzz", "build", "--sanitizer", "none"]).current_dir(root);
    let status = run_within(&mut command, BUILD_MAX)?;
    ensure!(status.success(), "the fuzz targets could not be built: {status}");
    // cargo-fuzz names the machine's own kind as the target of the build, and cargo then has a folder for it.
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let host =
        said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    Ok(root.join("fuzz/target").join(host).join("release"))
}

fn run_one(root: &Path, programs: &Path, target: &str, seconds: u32, drawing: Drawing) -> Result<()> {
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = root.join(name).join(target);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    };
    let seeds = root.join("fuzz/corpus").join(target);
    ensure!(seeds.is_dir(), "fuzz/corpus/{target} is missing");
    // libFuzzer writes new inputs to the first folder and reads both.
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let fresh = match drawing {
        Drawing::Fixed => scratch.path().to_path_buf(),
        Drawing::Kept => folder("fuzz/kept")?,
    };
    let artifacts = folder("fuzz/artifacts")?;
    let mut command = Command::new(programs.join(target));
    command.args([&fresh, &seeds]).args([
        &format!("-max_total_time={seconds}"),
        &format!("-artifact_prefix={}/", artifacts.display()),
        &format!("-seed={}", u8::from(drawing == Drawing::Fixed)),
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-max_len=16384",
    ]);
    // The finding is the message; a backtrace would push it out of sight.
    command.env("RUST_BACKTRACE", "0").current_dir(root);
    // libFuzzer is talkative; what it says is of interest only when it found something.
    let said = root.join("fuzz/target").join(format!("{target}.log"));
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

fn targets(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join("fuzz/Cargo.toml")).context("fuzz/Cargo.toml")?;
    read(&text).context("fuzz/Cargo.toml")
}

fn read(text: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = text.parse()?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).context("no [[bin]]")?;
    Ok(programs.iter().filter_map(|program| program.get("name")?.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest() {
        let bins = "[[bin]]\nname = \"one\"\n[[bin]]\nname = \"other\"\n";
        assert_eq!(read(bins).unwrap(), ["one", "other"]);
        assert!(read("").is_err());
    }
}
