//! The inner loop: format, what the sources and pages must hold to, and lints and tests of the crates that a change touches.
//!
//! In: what git says of the working tree beside its last commit. Out: the verdict of rustfmt and of the
//! checks that read sources on everything, of clippy and of the tests on those crates alone.
//! Deliberately absent: the crates that import a changed one, and the programs from outside. `make test` has them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::layers::packages;
use crate::{alerts, calls, circles, layers, libraries, modules, names, promises, sentences, words};

/// What reads sources and pages alone, and takes seconds for all of them.
const READING: &[fn(&Path) -> Result<()>] = &[
    layers::run,
    modules::run,
    circles::run,
    calls::run,
    names::run,
    words::run,
    sentences::run,
    libraries::run,
    promises::run,
    alerts::run,
];

/// Folders of packages whose tests take minutes, or want a machine for themselves.
const NOT_QUICK: &[&str] = &["larder"];

/// Checks what has changed since the last commit.
pub(crate) fn run(root: &Path) -> Result<()> {
    let began = Instant::now();
    let changed = changed(root)?;
    let mut touched = BTreeSet::new();
    for package in packages(root)? {
        let folder = package.folder.strip_prefix(root).unwrap_or(&package.folder).to_path_buf();
        if changed.iter().any(|file| innermost(root, Path::new(file)) == folder) {
            touched.insert(package.name);
        }
    }
    cargo(root, &["fmt", "--all", "--check"])?;
    for check in READING {
        check(root)?;
    }
    let all: Vec<&String> = touched.iter().collect();
    if all.is_empty() {
        println!("quick: no crate has changed since the last commit");
        return Ok(());
    }
    // One by one: a crate has the features that it asks for itself, whatever else has changed.
    for name in &all {
        let mut of_tests = vec!["-q", "--locked", "-p", name.as_str()];
        if NOT_QUICK.contains(&name.as_str()) {
            println!("quick: {name}: its units alone; `make test` runs it as a program");
            of_tests.push("--lib");
        }
        cargo(root, &[&["test", "--no-run"], of_tests.as_slice()].concat())?;
        // Tests wait more than they compute, so the lints are looked for beside them.
        let clippy =
            ["clippy", "-q", "--locked", "--all-targets", "-p", name.as_str(), "--", "-D", "warnings"];
        let mut lints = command(root, &clippy);
        let lints = lints.stderr(Stdio::piped()).spawn().context("cargo")?;
        let tested = cargo(root, &[&["test"], of_tests.as_slice()].concat());
        let lints = lints.wait_with_output().context("cargo")?;
        eprint!("{}", String::from_utf8_lossy(&lints.stderr));
        tested?;
        ensure!(lints.status.success(), "cargo {}: {}", clippy.join(" "), lints.status);
    }
    let names: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
    println!("quick: {} in {} s", names.join(", "), began.elapsed().as_secs());
    Ok(())
}

/// The folder of the nearest manifest above `file`, below `root`.
fn innermost(root: &Path, file: &Path) -> std::path::PathBuf {
    let above = file.ancestors().skip(1);
    let mut with_manifest = above.filter(|folder| root.join(folder).join("Cargo.toml").is_file());
    with_manifest.next().unwrap_or(Path::new("")).to_path_buf()
}

/// Files that differ from the last commit, and new ones.
fn changed(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for arguments in [&["diff", "--name-only", "HEAD"][..], &["ls-files", "--others", "--exclude-standard"]] {
        let output = Command::new("git").args(arguments).current_dir(root).output().context("git")?;
        ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr).trim());
        files.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned));
    }
    Ok(files)
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let status = command(root, arguments).status().context("cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    Ok(())
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    // Tests wait more than they work: as many threads as CI has.
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root).env("RUST_TEST_THREADS", threads.to_string());
    command
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_manifest() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["", "bench", "bench/floor"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
            std::fs::write(root.path().join(folder).join("Cargo.toml"), "").unwrap();
        }
        let folder = |file: &str| innermost(root.path(), Path::new(file)).display().to_string();
        assert_eq!(folder("bench/src/main.rs"), "bench");
        assert_eq!(folder("bench/floor/src/main.rs"), "bench/floor");
        assert_eq!(folder("docs/page.md"), "");
    }
}
