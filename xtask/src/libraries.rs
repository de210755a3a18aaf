//! The page of library choices tells the truth.
//!
//! In: the root manifest, the lock file, the packages of the dashboard and docs/design/libraries.md. Out: every direct dependency without a
//! row, every row without a dependency, every version that differs from the one that is used.
//! Deliberately absent: a judgement. Why a library was chosen is for the page and its reviewers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::ui;

const PAGE: &str = "docs/design/libraries.md";

/// Fails with every row that is missing, left over or stale.
pub(crate) fn run(root: &Path) -> Result<()> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let faults = faults(&read("Cargo.toml")?, &read("Cargo.lock")?, &ui::PACKAGES, &read(PAGE)?)?;
    ensure!(faults.is_empty(), "{PAGE}:\n  {}", faults.join("\n  "));
    println!("libraries: {PAGE} agrees with the lock file");
    Ok(())
}

fn faults(manifest: &str, lock: &str, vendored: &[ui::Package], page: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml")?;
    let lock: toml::Table = lock.parse().context("Cargo.lock")?;
    let direct = manifest
        .get("workspace")
        .and_then(|w| w.get("dependencies"))
        .and_then(toml::Value::as_table)
        .context("no [workspace.dependencies]")?;
    let mut rows: BTreeMap<&str, &str> = page.lines().filter_map(row).collect();
    let mut faults = Vec::new();
    for name in direct.iter().filter(|(_, value)| value.get("path").is_none()).map(|(name, _)| name) {
        let locked = versions(&lock, name);
        match rows.remove(name.as_str()) {
            None => faults.push(format!("{name} has no row")),
            // One that no crate of the workspace asks for yet is not in the lock file.
            Some(_) if locked.is_empty() => {}
            Some(version) if locked.iter().any(|v| v == version) => {}
            Some(version) => {
                faults.push(format!("{name} is {} in the lock file, not {version}", locked.join(", ")));
            }
        }
    }
    for package in vendored {
        match rows.remove(package.name) {
            None => faults.push(format!("{} has no row", package.name)),
            Some(version) if version == package.version => {}
            Some(version) => {
                faults.push(format!("{} {} is vendored, not {version}", package.name, package.version));
            }
        }
    }
    faults.extend(rows.keys().map(|name| format!("{name} is no direct dependency")));
    Ok(faults)
}

/// Name and version of a table row that begins with a name in backquotes.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
    Some((cells.next()?.strip_suffix('`')?, cells.next()?))
}

/// The locked versions of a crate, without build metadata.
fn versions(lock: &toml::Table, name: &str) -> Vec<String> {
    let packages = lock.get("package").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    packages
        .iter()
        .filter(|package| package.get("name").and_then(toml::Value::as_str) == Some(name))
        .filter_map(|package| package.get("version")?.as_str())
        .map(|version| version.split('+').next().unwrap_or(version).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check(page: &str, expected: usize) {
        let manifest = "[workspace.dependencies]\nours = { path = \"x\" }\nbytes = \"1\"\ntoml = \"1.2\"\n";
        let lock = "[[package]]\nname = \"bytes\"\nversion = \"1.12.1\"\n\
                    [[package]]\nname = \"toml\"\nversion = \"1.2.1+spec-1.1.0\"\n";
        let found = faults(manifest, lock, &[], page).unwrap();
        assert_eq!(found.len(), expected, "{found:?}");
    }

    #[test]
    fn rows_agree_with_the_lock_file() {
        check("| `bytes` | 1.12.1 | MIT |\n| `toml` | 1.2.1 | MIT |\n", 0);
        check("| `bytes` | 1.12.0 | MIT |\n| `toml` | 1.2.1 | MIT |\n", 1);
        check("| `toml` | 1.2.1 | MIT |\n", 1);
        check("| `bytes` | 1.12.1 |\n| `toml` | 1.2.1 |\n| `slab` | 0.4 |\n", 1);
    }
}
