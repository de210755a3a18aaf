//! The inner loop: format, lints and tests of the crates that a change touches.
//!
//! In: what git says of the working tree beside its last commit. Out: the verdict of rustfmt on everything, of clippy and of
//! the tests on those crates alone.
//! Deliberately absent: the crates that import a changed one, and the programs from outside. `make test` has them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::layers::packages;

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
    let of = |names: &[&String]| -> Vec<String> {
        names.iter().flat_map(|name| ["-p".to_owned(), (*name).clone()]).collect()
    };
    let all: Vec<&String> = touched.iter().collect();
    if all.is_empty() {
        println!("quick: no crate has changed since the last commit");
        return Ok(());
    }
    // One by one: a crate has the features that it asks for itself, whatever else has changed.
    for name in &all {
        let named = of(&[name]);
        let mut clippy = vec!["clippy", "-q", "--locked", "--all-targets"];
        clippy.extend(named.iter().map(String::as_str));
        clippy.extend(["--", "-D", "warnings"]);
        cargo(root, &clippy)?;
        let mut test = vec!["test", "-q", "--locked"];
        if NOT_QUICK.contains(&name.as_str()) {
            println!("quick: {name}: its units alone; `make test` runs it as a program");
            test.push("--lib");
        }
        test.extend(named.iter().map(String::as_str));
        cargo(root, &test)?;
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
    // Tests wait more than they work: as many threads as CI has.
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root).env("RUST_TEST_THREADS", threads.to_string());
    let status = command.status().context("cargo")?;
    ensure!(status.success(), "cargo {}: {status}", arguments.join(" "));
    Ok(())
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
