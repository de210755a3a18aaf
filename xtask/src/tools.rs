//! What the make targets need beyond git, make, a C compiler, curl and cargo: one table for all of them.
//!
//! In: the name of a target, or of a measurement. Out: the tools it needs are on the search path; they were installed where that was
//! possible without asking (cargo, rustup, and apt for root), else the error names the package.
//! Deliberately absent: tools that only some machines can have. Go, for h2spec, is used where it exists.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::bench;
use crate::children::{on_path, run_within};

enum From {
    /// A Debian package.
    Apt(&'static str),
    /// A crate with a program, at a version that is known to work here.
    Cargo(&'static str, &'static str),
    /// A component of the tool chain.
    Rustup(&'static str),
}

struct Tool {
    program: &'static str,
    from: From,
    /// Make targets, and measurements by their names.
    targets: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool { program: "cargo-fmt", from: From::Rustup("rustfmt"), targets: &["check"] },
    Tool { program: "cargo-clippy", from: From::Rustup("clippy"), targets: &["check"] },
    Tool { program: "cargo-deny", from: From::Cargo("cargo-deny", "0.18.9"), targets: &["check", "audit"] },
    Tool { program: "curl", from: From::Apt("curl"), targets: CURL_FOR },
    Tool { program: "node", from: From::Apt("nodejs"), targets: &["test", "conformance"] },
    Tool { program: "npm", from: From::Apt("npm"), targets: &["test", "conformance"] },
    Tool { program: "cargo-fuzz", from: From::Cargo("cargo-fuzz", "0.13.2"), targets: &["fuzz"] },
    // libFuzzer is C++.
    Tool { program: "c++", from: From::Apt("g++"), targets: &["fuzz"] },
    Tool { program: "valgrind", from: From::Apt("valgrind"), targets: &["instructions"] },
    Tool { program: "strip", from: From::Apt("binutils"), targets: &["instructions"] },
    Tool { program: "taskset", from: From::Apt("util-linux"), targets: TASKSET_FOR },
    Tool { program: "nginx", from: From::Apt("nginx-light"), targets: NGINX_FOR },
    Tool { program: "varnishd", from: From::Apt("varnish"), targets: VARNISH_FOR },
    Tool {
        program: "ab",
        from: From::Apt("apache2-utils"),
        targets: &["connections", "microcache", "wordpress"],
    },
    Tool { program: "wrk", from: From::Apt("wrk"), targets: WRK_FOR },
    Tool { program: "haproxy", from: From::Apt("haproxy"), targets: HAPROXY_FOR },
    Tool { program: "h2o", from: From::Apt("h2o"), targets: H2O_FOR },
    Tool { program: "mkfs.ext4", from: From::Apt("e2fsprogs"), targets: DISKS_FOR },
    Tool { program: "losetup", from: From::Apt("mount"), targets: DISKS_FOR },
    Tool { program: "h2load", from: From::Apt("nghttp2-client"), targets: &["http2", "latency"] },
];

const CURL_FOR: &[&str] =
    &["test", "hit", "requests", "http2", "connections", "miss", "workers", "latency", "wordpress", "files"];
const TASKSET_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "connections",
    "miss",
    "workers",
    "latency",
    "memory",
    "idle",
    "microcache",
    "herd",
    "wordpress",
    "files",
    "placement",
    "large",
    "objects",
    "reclaim",
];
const NGINX_FOR: &[&str] = &[
    "hit",
    "requests",
    "http2",
    "connections",
    "miss",
    "workers",
    "latency",
    "idle",
    "microcache",
    "herd",
    "wordpress",
    "files",
    "placement",
    "large",
    "objects",
];
const VARNISH_FOR: &[&str] =
    &["hit", "requests", "http2", "connections", "miss", "latency", "idle", "microcache"];
const HAPROXY_FOR: &[&str] = &["hit", "requests", "http2", "connections", "miss", "latency"];
const H2O_FOR: &[&str] = &["hit", "requests", "http2", "connections", "latency"];
const WRK_FOR: &[&str] = &["hit", "requests", "connections", "miss", "workers", "files"];
/// They make disks.
const DISKS_FOR: &[&str] = &["placement", "large", "objects", "reclaim"];

/// Longest installation.
const INSTALL_MAX: Duration = Duration::from_secs(1200);

/// Longest fetch of the advisory database.
const FETCH_MAX: Duration = Duration::from_secs(120);

/// Makes sure that everything `target` needs is there.
pub(crate) fn need(root: &Path, target: &str) -> Result<()> {
    // A measurement may need none.
    let is_known = bench::NAMES.contains(&target) || TOOLS.iter().any(|tool| tool.targets.contains(&target));
    ensure!(is_known, "no target named `{target}` needs tools");
    for tool in TOOLS.iter().filter(|tool| tool.targets.contains(&target)) {
        if !on_path(tool.program) {
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
    }
    .with_context(|| format!("{} is missing and could not be installed", tool.program))
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

/// Known weaknesses in what larder is built from. Says why where the database cannot be had, and passes then: a
/// machine without a way out is no reason to fail.
pub(crate) fn audit(root: &Path) -> Result<()> {
    need(root, "audit")?;
    let fetched =
        run_within(Command::new("cargo").args(["deny", "fetch", "db"]).current_dir(root), FETCH_MAX);
    match fetched {
        Ok(status) if status.success() => {}
        Ok(status) => return skip(&format!("the advisory database could not be fetched ({status})")),
        Err(error) => return skip(&format!("the advisory database could not be fetched ({error:#})")),
    }
    let check = ["deny", "check", "--disable-fetch", "advisories"];
    let status = Command::new("cargo").args(check).current_dir(root).status().context("cargo deny")?;
    ensure!(status.success(), "advisories: see above");
    Ok(())
}

fn skip(reason: &str) -> Result<()> {
    println!("audit: skipped: {reason}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_for_a_target_or_a_measurement_that_exists() {
        let targets = ["check", "audit", "test", "conformance", "fuzz", "instructions"];
        for tool in TOOLS {
            for target in tool.targets {
                let exists = targets.contains(target) || bench::NAMES.contains(target);
                assert!(exists, "{}: {target}", tool.program);
            }
        }
    }

    #[test]
    fn a_measurement_without_peers_needs_none_of_them() {
        let needed = |name: &str| TOOLS.iter().filter(|tool| tool.targets.contains(&name)).count();
        assert_eq!((needed("scan"), needed("memory")), (0, 1));
        assert!(need(Path::new("."), "scan").is_ok());
        assert!(need(Path::new("."), "bench").is_err());
    }
}
