//! Python packages at the versions of a `requirements.txt`, in a virtual environment under target/.
//!
//! In: the stage, whose data folder has the list. Out: the environment's own interpreter. It is kept between runs and
//! made anew where the list has changed.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use harness::children::run_within;

/// What `python -m venv` needs on Debian.
pub(super) const PACKAGES: &[&str] = &["python3", "python3-venv"];

const INSTALL_MAX: Duration = Duration::from_secs(600);

/// The interpreter of an environment that has what the stage's `requirements.txt` names.
pub(super) fn interpreter(stage: &Stage<'_>, name: &str) -> Result<PathBuf> {
    let list = stage.data.join("requirements.txt");
    let wanted = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let folder = stage.root.join("target/realapp").join(name).join("python");
    let python = folder.join("bin/python");
    let installed = folder.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    run(Command::new("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r"])
        .arg(&list))?;
    fs::write(installed, wanted)?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let status = run_within(command.stdin(Stdio::null()), INSTALL_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
