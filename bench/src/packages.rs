//! Debian packages that a real application is made of, installed together.
//!
//! In: names of packages. Out: all of them are installed, by apt when root; else the error names what is missing.
//! Unlike the tools of `need`, PHP's modules are no programs on the search path: dpkg is asked.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use harness::children::{on_path, run_within};

/// Longest installation; a browser is large.
const INSTALL_MAX: Duration = Duration::from_secs(900);

/// Installs those of `packages` that are missing.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    ensure!(on_path("dpkg-query"), "this runs on Debian and its relatives only");
    let missing: Vec<&str> = packages.iter().copied().filter(|name| version(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        bail!("install these Debian packages, or run this as root: {}", missing.join(" "));
    }
    println!("installing {}", missing.join(" "));
    let install = || {
        apt(Command::new("apt-get")
            .args(["install", "-y", "-q", "--no-install-recommends"])
            .args(&missing)
            // Keeps a package's service from being started.
            .env("RUNLEVEL", "1"))
    };
    // A fresh machine has no package lists yet.
    install().or_else(|_| apt(Command::new("apt-get").args(["update", "-q"])).and_then(|()| install()))
}

/// The installed version of a package.
pub(crate) fn version(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status} ${Version}", package])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.strip_prefix("installed ").map(str::to_owned)
}

fn apt(command: &mut Command) -> Result<()> {
    command.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    let status = run_within(command, INSTALL_MAX).context("apt-get")?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
