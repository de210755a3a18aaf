//! Node's packages at the versions of a `package-lock.json`, in a folder under target/.
//!
//! In: the stage, whose data folder has an application with its package.json. Out: a copy of that folder with what the lock file
//! names beside it. The packages are kept between runs and installed anew where the lock file has changed; what is the
//! application's own is copied each time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use harness::children::run_within;

/// Debian's names for the programs; a machine may have them from elsewhere.
const PROGRAMS: [(&str, &str); 2] = [("node", "nodejs"), ("npm", "npm")];

const INSTALL_MAX: Duration = Duration::from_secs(600);

/// The folder of the stage's application, with its packages installed.
pub(super) fn application(stage: &Stage<'_>, name: &str) -> Result<PathBuf> {
    for (program, package) in PROGRAMS {
        if !harness::children::on_path(program) {
            crate::packages::install(&[package])?;
        }
    }
    let folder = stage.root.join("target/realapp").join(name).join("node");
    let (lock, installed) = (stage.data.join("package-lock.json"), folder.join("installed.json"));
    let wanted = fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;
    copy(&stage.data, &folder)?;
    if !fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        run(Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"])
            .current_dir(&folder))?;
        fs::write(installed, wanted)?;
    }
    Ok(folder)
}

/// Runs a command of the application to its end.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let status = run_within(command.stdin(Stdio::null()).stdout(Stdio::null()), INSTALL_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The version of a package that is installed in `folder`.
pub(super) fn version(folder: &Path, package: &str) -> Result<String> {
    let file = folder.join("node_modules").join(package).join("package.json");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let said: serde_json::Value = serde_json::from_str(&text)?;
    Ok(said.get("version").and_then(serde_json::Value::as_str).unwrap_or("?").to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}
