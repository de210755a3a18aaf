//! Programs in Go, built from modules that a folder of the checkout pins.
//!
//! In: the folder, and the package of a program. Out: the program below `target/tools`; or why it cannot be had on this machine, so that what
//! needs it can say that it is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::children::{on_path, run_within};

/// Longest build, with the modules fetched.
const BUILD_MAX: Duration = Duration::from_secs(1200);

/// A program, or why there is none here.
pub enum GoProgram {
    /// Where it is.
    At(PathBuf),
    /// There is no `go` that can build it.
    Unavailable(String),
}

/// Builds `package` as `name` from the modules that `pinned`, a folder of the checkout, has in its go.mod and go.sum. What is built already
/// is not built again.
///
/// # Errors
/// The build fails.
pub fn program(root: &Path, pinned: &str, package: &str, name: &str) -> Result<GoProgram> {
    let folder = root.join(pinned);
    if let Some(reason) = no_go(&folder)? {
        return Ok(GoProgram::Unavailable(reason));
    }
    let program = root.join("target/tools").join(name);
    let mut build = Command::new("go");
    build.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]).arg(&program).arg(package);
    // No other tool chain is fetched for it.
    build.env("GOTOOLCHAIN", "local").current_dir(&folder);
    let status = run_within(&mut build, BUILD_MAX).context("go build")?;
    ensure!(status.success(), "{name} could not be built: {status}");
    Ok(GoProgram::At(program))
}

/// Why what the folder pins cannot be built here, if so.
fn no_go(folder: &Path) -> Result<Option<String>> {
    if !on_path("go") {
        return Ok(Some("there is no `go` here".to_owned()));
    }
    let manifest = folder.join("go.mod");
    let manifest = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let wanted = manifest.lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.24");
    let mut version_of = Command::new("go");
    let output =
        version_of.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output().context("go env")?;
    let found = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("go").to_owned();
    let old = version(&found) < version(wanted);
    Ok(old.then(|| format!("go {found} is older than {wanted}")))
}

fn version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_go_is_told_from_a_newer() {
        assert!(version("1.9.1") < version("1.24"));
        assert!(version("1.26.8") >= version("1.26.0"));
        assert!(version("1.26.0") < version("1.26.8"));
    }
}
