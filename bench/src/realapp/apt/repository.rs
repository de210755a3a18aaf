//! A Debian repository of a few packages, made on the spot, and signed by a key that is thrown away.
//!
//! In: a folder. Out: pool and dists beneath it, with lists by hash, as `apt-ftparchive` writes them. A new version of a
//! package is published as mirrors do it: the package first, then the lists, then what is signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use harness::children::{output_within, run_within};

const TOOL_MAX: Duration = Duration::from_secs(60);
const LISTS: &str = "dists/stable/main/binary-amd64";
/// How old everything looks. Without it no cache would take a file for lasting.
const AGE: &str = "30 days ago";

pub(super) struct Repository {
    pub(super) root: PathBuf,
    /// The public key, for apt.
    pub(super) key: PathBuf,
    keys: PathBuf,
    work: PathBuf,
}

impl Repository {
    /// An empty one with a key.
    pub(super) fn new(work: &Path) -> Result<Self> {
        let made = Self {
            root: work.join("repository"),
            key: work.join("key.asc"),
            keys: work.join("gnupg"),
            work: work.to_owned(),
        };
        for folder in [&made.root.join(LISTS), &made.root.join("pool/main"), &made.keys] {
            fs::create_dir_all(folder)?;
        }
        run(Command::new("chmod").arg("700").arg(&made.keys))?;
        run(made.gpg().args([
            "--quick-gen-key",
            "Real application <only@for.this.run>",
            "ed25519",
            "sign",
            "1d",
        ]))?;
        let key = output_within(made.gpg().args(["--armor", "--export"]), TOOL_MAX)?;
        fs::write(&made.key, key)?;
        Ok(made)
    }

    /// Adds a package with a file of `bytes` in it.
    pub(super) fn add(&self, name: &str, version: &str, bytes: usize) -> Result<()> {
        let tree = self.work.join(format!("{name}-{version}"));
        fs::create_dir_all(tree.join("DEBIAN"))?;
        fs::create_dir_all(tree.join("usr/share").join(name))?;
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Real application <only@for.this.run>\n\
             Description: a package of this run\n"
        );
        fs::write(tree.join("DEBIAN/control"), control)?;
        // Seeded by its name, so that it cannot be compressed away and is the same in each run.
        let seed = version.bytes().chain(name.bytes());
        let mut state = seed.fold(1_u64, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let content: Vec<u8> = (0..bytes)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state.to_be_bytes()[0]
            })
            .collect();
        fs::write(tree.join("usr/share").join(name).join("content"), content)?;
        let package = self.root.join(format!("pool/main/{name}_{version}_all.deb"));
        run(Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zgzip", "-z1", "--build"])
            .arg(&tree)
            .arg(&package))?;
        run(Command::new("touch").args(["-d", AGE]).arg(&package))
    }

    /// Writes the lists of what is there, and signs them.
    pub(super) fn publish(&self) -> Result<()> {
        let list = output_within(
            Command::new("apt-ftparchive").args(["packages", "pool"]).current_dir(&self.root),
            TOOL_MAX,
        )?;
        let lists = self.root.join(LISTS);
        fs::write(lists.join("Packages"), list)?;
        run(Command::new("gzip").args(["-9nkf"]).arg(lists.join("Packages")))?;
        for name in ["Packages", "Packages.gz"] {
            for (tool, kind) in [("sha256sum", "SHA256"), ("sha512sum", "SHA512")] {
                let sum = output_within(Command::new(tool).arg(lists.join(name)), TOOL_MAX)?;
                let sum = sum.split(' ').next().context("no sum")?;
                let by_hash = lists.join("by-hash").join(kind);
                fs::create_dir_all(&by_hash)?;
                fs::copy(lists.join(name), by_hash.join(sum))?;
            }
        }
        let dist = self.root.join("dists/stable");
        let options = [
            "Suite=stable",
            "Codename=stable",
            "Components=main",
            "Architectures=amd64",
            "Acquire-By-Hash=yes",
        ];
        let mut command = Command::new("apt-ftparchive");
        for option in options {
            command.args(["-o", &format!("APT::FTPArchive::Release::{option}")]);
        }
        let release = output_within(command.args(["release", "."]).current_dir(&dist), TOOL_MAX)?;
        fs::write(dist.join("Release"), release)?;
        let signed = output_within(
            self.gpg().arg("--clearsign").args(["-o", "-"]).arg(dist.join("Release")),
            TOOL_MAX,
        )?;
        fs::write(dist.join("InRelease"), signed)?;
        Ok(())
    }

    fn gpg(&self) -> Command {
        let mut command = Command::new("gpg");
        command.arg("--homedir").arg(&self.keys);
        command.args(["--batch", "--yes", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]);
        command
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        // The agent that gpg has started for this folder of keys.
        let _ = Command::new("gpgconf").arg("--homedir").arg(&self.keys).args(["--kill", "all"]).status();
    }
}

/// Runs a tool to its end.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let status = run_within(command.stdin(Stdio::null()).stdout(Stdio::null()), TOOL_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
