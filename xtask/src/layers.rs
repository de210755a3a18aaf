//! Which crate may import which.
//!
//! In: what `cargo metadata` says of the workspace. Out: every import that goes up or sideways, in one list.
//! Each crate is in a layer and imports only from lower ones; a change to [`LAYERS`] is a change to the
//! architecture and belongs in one commit with ARCHITECTURE.md. Development dependencies obey the same rule, but for
//! the testkit, which the tests of any crate may use.
//! Deliberately absent: rules on crates from outside beyond the pure ones; those are in deny.toml.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// From the lowest layer up. A crate imports only from lower layers; two in one layer do not import each other.
const LAYERS: &[(&str, u8)] = &[
    ("larder-fleet", 0),
    ("larder-http", 0),
    ("larder-sitemap", 0),
    ("larder-observe", 1),
    ("larder-tls", 1),
    ("larder-assemble", 2),
    ("larder-cache", 2),
    ("larder-config", 2),
    ("larder-remote", 2),
    ("larder-tier", 2),
    ("larder-acme", 3),
    ("larder-disk", 3),
    ("larder-files", 3),
    ("larder-listen", 3),
    ("larder-origin", 3),
    ("larder-records", 3),
    ("larder-values", 3),
    ("larder-store", 4),
    ("larder-admin", 5),
    ("larder-proxy", 5),
    ("larder", 6),
];

/// For tests only: imported by tests alone, and itself above the lowest layer only.
const TESTKIT: &str = "larder-testkit";
const TESTKIT_LAYER: u8 = 2;

/// Programs around larder. They may import anything but each other, and no crate of larder may import them.
const PROGRAMS: &[&str] = &["bench", "fuzz-targets", "larder-floor", "models", "suites", "xtask"];

/// What those programs share.
const HARNESS: &str = "harness";

/// What must be built before anything else, and say why the rest cannot be: no crate of larder and no runtime below them.
const PLAIN: &[&str] = &["xtask", HARNESS];

/// Crates that decide and never do: none of these may appear in their dependencies.
const PURE: &[&str] =
    &["larder-assemble", "larder-cache", "larder-config", "larder-fleet", "larder-http", "larder-sitemap"];
const IMPURE: &[&str] = &["tokio", "hyper", "h2", "socket2", "mio", "reqwest"];

#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where its manifest is.
    pub(crate) folder: PathBuf,
    imports: Vec<Import>,
}

#[derive(Clone, Debug)]
struct Import {
    name: String,
    /// True for `[dev-dependencies]`.
    dev: bool,
    /// True for a crate of this workspace.
    ours: bool,
}

/// Fails with the list of imports that the layers forbid.
pub(crate) fn run(root: &Path) -> Result<()> {
    let packages = packages(root)?;
    let mut breaches = breaches(&packages);
    breaches.extend(without_a_crate(&packages));
    ensure!(breaches.is_empty(), "imports that go up or sideways:\n  {}", breaches.join("\n  "));
    println!("layers: {} crates, every import goes down", packages.len());
    Ok(())
}

/// Rows of the tables above that name no package.
fn without_a_crate(packages: &[Package]) -> Vec<String> {
    let layers = LAYERS.iter().map(|(name, _)| name);
    let rows = layers.chain(PROGRAMS).chain([&TESTKIT, &HARNESS]);
    let unknown = rows.filter(|name| packages.iter().all(|package| package.name != **name));
    unknown.map(|name| format!("xtask/src/layers.rs: there is no crate {name}")).collect()
}

/// Every package of the workspace, as cargo has them.
pub(crate) fn packages(root: &Path) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let listed = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    Ok(listed.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let imports = value["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    Package {
        name: text(&value["name"]),
        folder: Path::new(&text(&value["manifest_path"])).parent().map(Path::to_path_buf).unwrap_or_default(),
        imports: imports
            .iter()
            .map(|import| Import {
                name: text(&import["name"]),
                dev: import["kind"].as_str() == Some("dev"),
                ours: import["path"].is_string(),
            })
            .collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, layer)| *layer)
}

fn breaches(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(|package| package.imports.iter().filter_map(|i| breach(package, i))).collect()
}

/// Why `package` may not import `import`, or `None` where it may.
fn breach(package: &Package, import: &Import) -> Option<String> {
    let (from, to) = (package.name.as_str(), import.name.as_str());
    if !import.ours && PLAIN.contains(&from) {
        return IMPURE.contains(&to).then(|| format!("{from} -> {to}: {from} has no runtime"));
    }
    if PLAIN.contains(&from) {
        return (to != HARNESS).then(|| format!("{from} -> {to}: {from} is built without larder"));
    }
    if PROGRAMS.contains(&to) || to == HARNESS && !PROGRAMS.contains(&from) {
        return Some(format!("{from} -> {to}: {to} is a program around larder, which imports none"));
    }
    if PROGRAMS.contains(&from) {
        return None;
    }
    if !import.ours {
        let forbidden = PURE.contains(&from) && IMPURE.contains(&to) && !import.dev;
        return forbidden.then(|| format!("{from} -> {to}: {from} is pure: no sockets, no runtime"));
    }
    if to == TESTKIT {
        return (!import.dev).then(|| format!("{from} -> {to}: the testkit is for tests"));
    }
    let above = if from == TESTKIT { Some(TESTKIT_LAYER) } else { layer(from) };
    match (above, layer(to)) {
        (Some(above), Some(below)) if below < above => None,
        (Some(above), Some(below)) => Some(format!("{from} (layer {above}) -> {to} (layer {below})")),
        (None, _) => Some(format!("{from} -> {to}: {from} has no layer; give it one in xtask/src/layers.rs")),
        (_, None) => Some(format!("{from} -> {to}: {to} has no layer; give it one in xtask/src/layers.rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str, dev: bool, ours: bool, allowed: bool) {
        let import = Import { name: to.to_owned(), dev, ours };
        let package = Package { name: from.to_owned(), folder: PathBuf::new(), imports: vec![import] };
        let found = breaches(&[package]);
        assert_eq!(found.is_empty(), allowed, "{from} -> {to} (dev: {dev}): {found:?}");
    }

    #[test]
    fn imports_go_down() {
        check("larder-observe", "larder-http", false, true, true);
        check("larder-store", "larder-cache", false, true, true);
        check("larder-admin", "larder-listen", false, true, true);
        check("larder", "larder-proxy", false, true, true);
    }

    #[test]
    fn imports_that_go_up_or_sideways_are_found() {
        check("larder-http", "larder-observe", false, true, false);
        check("larder-cache", "larder-store", false, true, false);
        check("larder-listen", "larder-origin", false, true, false);
        check("larder-proxy", "larder-admin", false, true, false);
        check("larder-store", "larder-proxy", true, true, false);
    }

    #[test]
    fn tests_alone_use_the_testkit() {
        check("larder", "larder-testkit", true, true, true);
        check("larder", "larder-testkit", false, true, false);
        check("larder-listen", "larder-testkit", true, true, true);
        check("larder-testkit", "larder-http", false, true, true);
        check("larder-testkit", "larder-listen", false, true, false);
    }

    #[test]
    fn pure_crates_have_no_runtime() {
        check("larder-cache", "tokio", false, false, false);
        check("larder-cache", "http", false, false, true);
        check("larder-listen", "tokio", false, false, true);
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        check("larder-attic", "larder-http", false, true, false);
        check("larder", "larder-attic", false, true, false);
    }

    #[test]
    fn programs_around_larder_are_imported_by_none_and_the_checks_need_none_of_it() {
        check("larder", "xtask", true, true, false);
        check("larder", "harness", true, true, false);
        check("bench", "suites", false, true, false);
        check("bench", "harness", false, true, true);
        check("bench", "larder-store", false, true, true);
        check("bench", "tokio", false, false, true);
        check("xtask", "harness", false, true, true);
        check("xtask", "tokio", false, false, false);
        check("xtask", "larder-http", false, true, false);
        check("harness", "larder-http", false, true, false);
    }

    #[test]
    fn a_row_for_a_crate_that_does_not_exist_is_found() {
        let packages = |names: &[&str]| -> Vec<Package> {
            let package =
                |name: &&str| Package { name: (*name).to_owned(), folder: PathBuf::new(), imports: vec![] };
            names.iter().map(package).collect()
        };
        let all: Vec<&str> = LAYERS
            .iter()
            .map(|(name, _)| *name)
            .chain(PROGRAMS.iter().copied())
            .chain([TESTKIT, HARNESS])
            .collect();
        assert!(without_a_crate(&packages(&all)).is_empty());
        assert_eq!(without_a_crate(&packages(&all[1..])).len(), 1);
    }
}
