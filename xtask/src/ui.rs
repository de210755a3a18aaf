//! The modules of others that the dashboard is built on: taken from their packages, and compared with them.
//!
//! In: npm, the packages in [`PACKAGES`], crates/larder-admin/ui/vendor. Out: the files of that folder, or the verdict that they are what the
//! packages have. Imports by a package's name become relative, because a browser cannot resolve a name, and what sets a global becomes a module.
//! Nothing else is changed. Where npm is not there, or reaches no packages, the sums that are committed beside the files are compared in
//! place of the packages. Nobody needs npm to build larder.
//! Deliberately absent: a lock file. There are three packages, and none of them has a dependency.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use harness::children::output_within;
use serde_json::Value;

const FOLDER: &str = "crates/larder-admin/ui/vendor";
const SUMS: &str = "SHA256SUMS";

/// Longest fetch of a package.
const FETCH_MAX: Duration = Duration::from_secs(120);
/// Longest run of a program that reads files alone.
const LOCAL_MAX: Duration = Duration::from_secs(30);

/// A package, with the one version that is taken of it.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Of its archive, as npm writes it.
    integrity: &'static str,
    files: &'static [File],
}

/// A file of a package, and what becomes of it.
struct File {
    /// In the package.
    from: &'static str,
    /// In the folder.
    to: &'static str,
    change: Change,
}

enum Change {
    /// Imports by name become relative.
    Imports,
    /// The global of this name becomes what the module exports.
    Global(&'static str),
    Nothing,
}

/// What an import by name becomes.
const IMPORTS: [(&str, &str); 2] = [("\"preact\"", "\"./preact.js\""), ("\"htm\"", "\"./htm.js\"")];

pub(crate) const PACKAGES: [Package; 3] = [
    Package {
        name: "preact",
        version: "11.2.0",
        integrity: "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        files: &[
            File { from: "dist/preact.mjs", to: "preact.js", change: Change::Imports },
            File { from: "hooks/dist/hooks.mjs", to: "preact-hooks.js", change: Change::Imports },
            File { from: "LICENSE", to: "LICENSE-preact", change: Change::Nothing },
        ],
    },
    Package {
        name: "htm",
        version: "3.1.1",
        integrity: "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        files: &[
            File { from: "dist/htm.module.js", to: "htm.js", change: Change::Imports },
            File { from: "preact/index.module.js", to: "htm-preact.js", change: Change::Imports },
            File { from: "LICENSE", to: "LICENSE-htm", change: Change::Nothing },
        ],
    },
    Package {
        name: "uplot",
        version: "1.6.32",
        integrity: "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        files: &[
            File { from: "dist/uPlot.iife.min.js", to: "uplot.js", change: Change::Global("uPlot") },
            File { from: "dist/uPlot.min.css", to: "uplot.css", change: Change::Nothing },
            File { from: "LICENSE", to: "LICENSE-uplot", change: Change::Nothing },
        ],
    },
];

/// Writes the folder anew.
pub(crate) fn vendor(root: &Path) -> Result<()> {
    let files = packed()?;
    let folder = root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| FOLDER.to_owned())?;
    }
    fs::create_dir_all(&folder).with_context(|| FOLDER.to_owned())?;
    for (name, text) in &files {
        fs::write(folder.join(name), text).with_context(|| (*name).to_owned())?;
    }
    let mut names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    let sums =
        output_within(Command::new("sha256sum").arg("--").args(&names).current_dir(&folder), LOCAL_MAX)?;
    fs::write(folder.join(SUMS), sums).context(SUMS)?;
    println!("ui: {} files in {FOLDER}", files.len());
    Ok(())
}

/// Fails where the folder is not what the packages have.
pub(crate) fn check(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    names(&folder)?;
    output_within(
        Command::new("sha256sum").args(["--check", "--strict", "--quiet", SUMS]).current_dir(&folder),
        LOCAL_MAX,
    )
    .with_context(|| format!("{FOLDER} differs from its {SUMS}: cargo xtask ui vendor"))?;
    let files = match fetched() {
        Ok(archives) => unpacked(&archives)?,
        Err(why) => {
            println!("ui: {FOLDER} has its sums; not compared with the packages: {why:#}");
            return Ok(());
        }
    };
    for (name, text) in files {
        let own = fs::read_to_string(folder.join(name)).with_context(|| name.to_owned())?;
        ensure!(own == text, "{FOLDER}/{name} is not what its package has: cargo xtask ui vendor");
    }
    println!("ui: {FOLDER} is what the packages have");
    Ok(())
}

/// Fails with a file that is no package's, or missing, or without a sum.
fn names(folder: &Path) -> Result<()> {
    let mut wanted: Vec<_> = PACKAGES.iter().flat_map(|package| package.files).map(|file| file.to).collect();
    wanted.sort_unstable();
    let sums = fs::read_to_string(folder.join(SUMS)).context(SUMS)?;
    let summed: Vec<_> = sums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    ensure!(summed == wanted, "{SUMS} has {}, and not {}", summed.join(", "), wanted.join(", "));
    for entry in fs::read_dir(folder).with_context(|| FOLDER.to_owned())? {
        let name = entry?.file_name();
        let is_known = wanted.iter().any(|known| name == **known) || name == SUMS;
        ensure!(is_known, "{FOLDER}/{} is of no package", name.display());
    }
    Ok(())
}

/// The files as they belong into the folder.
fn packed() -> Result<Vec<(&'static str, String)>> {
    unpacked(&fetched()?)
}

/// The archives of all packages, as npm brings them.
fn fetched() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for package in &PACKAGES {
        let spec = format!("{}@{}", package.name, package.version);
        let mut npm = Command::new("npm");
        npm.args(["pack", "--json", "--ignore-scripts", "--loglevel=error", &spec]).current_dir(&folder);
        let told = output_within(&mut npm, FETCH_MAX).with_context(|| format!("npm pack {spec}"))?;
        let told: Value = serde_json::from_str(&told).with_context(|| format!("npm pack {spec}"))?;
        let of = |name: &str| told.pointer(&format!("/0/{name}")).and_then(Value::as_str);
        let archive = of("filename").with_context(|| format!("npm pack {spec}: no file"))?;
        if of("integrity") != Some(package.integrity) {
            // Worse than a package that cannot be had, so it is no reason to compare the sums alone.
            fs::write(folder.path().join(WRONG), &spec)?;
        }
        fs::rename(folder.path().join(archive), folder.path().join(package.name))?;
    }
    Ok(folder)
}

/// Names a package whose archive is another one than was pinned.
const WRONG: &str = "wrong";

fn unpacked(archives: &tempfile::TempDir) -> Result<Vec<(&'static str, String)>> {
    if let Ok(spec) = fs::read_to_string(archives.path().join(WRONG)) {
        bail!("{spec} is not the archive whose integrity is pinned");
    }
    let mut files = Vec::new();
    for package in &PACKAGES {
        for file in package.files {
            let mut tar = Command::new("tar");
            tar.arg("-xOzf").arg(archives.path().join(package.name)).arg(format!("package/{}", file.from));
            let text = output_within(&mut tar, LOCAL_MAX)
                .with_context(|| format!("{} of {}", file.from, package.name))?;
            files.push((file.to, changed(&text, &file.change)));
        }
    }
    Ok(files)
}

/// The text as it belongs into the folder: without the name of a source map, which is not there.
fn changed(text: &str, change: &Change) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("//# sourceMappingURL="));
    let mut text = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    text.push('\n');
    match change {
        Change::Nothing => {}
        Change::Imports => {
            for (name, relative) in IMPORTS {
                text = text.replace(name, relative);
            }
        }
        Change::Global(name) => text.push_str(&format!("export default {name};\n")),
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_become_paths_and_a_global_becomes_a_module() {
        let module = "import{h as a}from\"preact\";import b from\"htm\";\n//# sourceMappingURL=a.mjs.map";
        let expected = "import{h as a}from\"./preact.js\";import b from\"./htm.js\";\n";
        assert_eq!(changed(module, &Change::Imports), expected);
        assert_eq!(changed("var a=1;\n", &Change::Global("a")), "var a=1;\nexport default a;\n");
        assert_eq!(changed("MIT\n\n", &Change::Nothing), "MIT\n");
    }

    #[test]
    fn the_folder_has_the_files_of_the_packages() {
        names(&crate::checkout().join(FOLDER)).unwrap();
    }
}
