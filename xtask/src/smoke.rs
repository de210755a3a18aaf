//! Every fuzz target for a short time, so that CI sees at once what a long run would see first.
//!
//! In: the targets of fuzz/Cargo.toml and their committed seeds. Out: failure when one of them crashes, with the
//! input kept by cargo-fuzz under fuzz/artifacts. New inputs go below fuzz/target: a smoke run leaves the checkout as
//! it was.
//! Deliberately absent: sanitizers. The crates hold next to no unsafe code, and without them the stable tool chain
//! does; what is looked for is panics and differences.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::children::run_within;

/// What building may take on top of the run itself.
const BUILD_MAX: Duration = Duration::from_secs(1200);

/// Builds and runs every target for `seconds`, half of that where the manifest says so.
pub(crate) fn run(root: &Path, seconds: u32) -> Result<()> {
    crate::tools::need(root, "fuzz")?;
    let Targets { all, half_time } = targets(root)?;
    for target in &all {
        let seconds = if half_time.contains(target) { seconds.div_ceil(2) } else { seconds };
        let fresh = root.join("fuzz/target/corpus").join(target);
        fs::create_dir_all(&fresh).with_context(|| fresh.display().to_string())?;
        let seeds = root.join("fuzz/corpus").join(target);
        ensure!(seeds.is_dir(), "fuzz/corpus/{target} is missing");
        let mut command = Command::new("cargo");
        command
            .args(["fuzz", "run", "--sanitizer", "none", target])
            // libFuzzer writes to the first folder and reads both.
            .arg(&fresh)
            .arg(&seeds)
            .arg("--")
            .args([
                &format!("-max_total_time={seconds}"),
                "-timeout=10",
                "-rss_limit_mb=2048",
                "-max_len=16384",
            ])
            // The finding is the message; a backtrace would push it out of sight.
            .env("RUST_BACKTRACE", "0")
            .current_dir(root);
        // libFuzzer is talkative; what it says is of interest only when it found something.
        let said = root.join("fuzz/target").join(format!("{target}.log"));
        let log = fs::File::create(&said).with_context(|| said.display().to_string())?;
        command.stdout(log.try_clone()?).stderr(log);
        let status = run_within(&mut command, BUILD_MAX + Duration::from_secs(u64::from(seconds)))?;
        if !status.success() {
            print_end(&said);
            bail!("fuzz target {target}: {status}; an input that fails is under fuzz/artifacts/{target}");
        }
        println!("fuzz: {target}: {seconds} s, nothing found");
    }
    Ok(())
}

fn print_end(said: &Path) {
    let text = fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().skip(lines.len().saturating_sub(60)) {
        println!("{line}");
    }
}

/// What fuzz/Cargo.toml says of the targets.
struct Targets {
    all: Vec<String>,
    /// Those that get half the time.
    half_time: Vec<String>,
}

fn targets(root: &Path) -> Result<Targets> {
    let text = fs::read_to_string(root.join("fuzz/Cargo.toml")).context("fuzz/Cargo.toml")?;
    read(&text).context("fuzz/Cargo.toml")
}

fn read(text: &str) -> Result<Targets> {
    let manifest: toml::Table = text.parse()?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).context("no [[bin]]")?;
    let all: Vec<String> =
        programs.iter().filter_map(|program| program.get("name")?.as_str().map(str::to_owned)).collect();
    let said = || manifest.get("package")?.get("metadata")?.get("half-time")?.as_array();
    let half_time = said().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned));
    let half_time: Vec<String> = half_time.collect();
    for name in &half_time {
        ensure!(all.contains(name), "half-time: there is no target {name}");
    }
    Ok(Targets { all, half_time })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest_and_half_the_time_is_for_those_it_names() {
        let bins = "[[bin]]\nname = \"one\"\n[[bin]]\nname = \"other\"\n";
        let named = |names: &str| read(&format!("[package.metadata]\nhalf-time = [{names}]\n{bins}"));
        let read_all = named("\"other\"").unwrap();
        assert_eq!(read_all.all, ["one", "other"]);
        assert_eq!(read_all.half_time, ["other"]);
        assert!(named("\"third\"").is_err());
        assert!(read(bins).unwrap().half_time.is_empty());
        assert!(read("").is_err());
    }
}
