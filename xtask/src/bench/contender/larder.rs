//! larder: with the settings that a measurement names, or with everything on that can be on at once.
//!
//! In: a [`Setup`] and the program. Out: larder at a free port. "Everything on" is bench/full.toml: the file of the
//! repository, with the origin's address and the log's path put in.
//! Deliberately absent: a larder tuned for a measurement. Every row that carries its plain name runs full.toml.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{Contender, Kit, Setup, start};
use crate::children::free_port;

/// The config with everything on.
const FULL: &str = "bench/full.toml";
const FULL_ORIGIN: &str = "http://127.0.0.1:3000";
const FULL_LOG: &str = "access = \"off\"";

/// Whether a line per exchange is written, to a file in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLog {
    Off,
    On,
}

/// larder with everything on.
pub(crate) fn full(kit: &Kit, setup: &Setup<'_>, name: &str, log: AccessLog) -> Result<Contender> {
    let folder = setup.folder()?;
    // The folder of files that one of its sites serves.
    fs::create_dir(folder.path().join("public"))?;
    let text = fs::read_to_string(kit.root.join(FULL)).context(FULL)?;
    fs::write(folder.path().join("larder.toml"), full_config(&text, setup.origin, log)?)?;
    run(&kit.larder, setup, folder, name)
}

/// full.toml for an origin at this address.
fn full_config(text: &str, origin: SocketAddr, log: AccessLog) -> Result<String> {
    for needed in [FULL_ORIGIN, FULL_LOG] {
        ensure!(text.contains(needed), "{FULL} does not say `{needed}`");
    }
    let text = text.replace(FULL_ORIGIN, &format!("http://{origin}"));
    Ok(match log {
        AccessLog::Off => text,
        AccessLog::On => text.replace(FULL_LOG, "access = \"./access.log\""),
    })
}

/// larder with the settings of one site (lines of TOML, `""` for none) and nothing else.
pub(crate) fn site(program: &Path, setup: &Setup<'_>, name: &str, site: &str) -> Result<Contender> {
    let folder = setup.folder()?;
    let config = format!(
        "[origins.app]\nservers = \"http://{}\"\n\n[stores.default]\nmemory = \"256MiB\"\n\n\
         [[site]]\norigin = \"app\"\n{site}\n",
        setup.origin
    );
    fs::write(folder.path().join("larder.toml"), config).context("larder.toml")?;
    run(program, setup, folder, name)
}

/// The listener speaks HTTP/1 and HTTP/2 alike.
fn run(program: &Path, setup: &Setup<'_>, folder: TempDir, name: &str) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let mut command = setup.command();
    command
        .arg(program)
        .args(["run", "--workers", &setup.workers.count.to_string(), "-c"])
        .arg(folder.path().join("larder.toml"))
        .args(["--listen", &address.to_string(), "--admin", &admin.to_string()])
        .stdout(Stdio::null());
    let contender = start(name, address, &mut command)?.owning(folder);
    Ok(Contender { admin: Some(admin), ..contender })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_file_with_everything_on_gets_this_origin_and_its_log() {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FULL)).unwrap();
        let origin = "127.0.0.1:45678".parse().unwrap();
        let quiet = full_config(&text, origin, AccessLog::Off).unwrap();
        assert!(!quiet.contains(FULL_ORIGIN) && quiet.contains("http://127.0.0.1:45678"));
        assert!(full_config(&text, origin, AccessLog::On).unwrap().contains("access = \"./access.log\""));
        assert!(full_config("", origin, AccessLog::Off).is_err());
    }
}
