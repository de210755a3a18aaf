//! larder: with the settings that a measurement names, or with everything on that can be on at once.
//!
//! In: a [`Setup`] and the program. Out: larder at a free port. "Everything on" is bench/full.toml: the file of the
//! repository, with the origin's address and the log's path put in.
//! Deliberately absent: a larder tuned for a measurement. Every row that carries its plain name runs full.toml.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{Contender, Kit, Launch, Setup};
use harness::children::free_port;

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
    full_of(kit, &kit.larder, setup, name, log)
}

/// The same with another program.
pub(crate) fn full_of(
    kit: &Kit,
    program: &Path,
    setup: &Setup<'_>,
    name: &str,
    log: AccessLog,
) -> Result<Contender> {
    let folder = setup.folder()?;
    // The folder of files that one of its sites serves.
    fs::create_dir(folder.path().join("public"))?;
    let text = fs::read_to_string(kit.root.join(FULL)).context(FULL)?;
    let text = full_config(&text, setup.origin, log)?;
    fs::write(folder.path().join("larder.toml"), with_certificates(text, setup)?)?;
    run(program, setup, folder, name)
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

/// A config whose first and last sites have the setup's certificates, where it has any. The last one is for every host, and a client
/// that asks for an address names none in its handshake.
fn with_certificates(text: String, setup: &Setup<'_>) -> Result<String> {
    let Some(certificates) = setup.certificates else { return Ok(text) };
    let (cert, key) = (certificates.file("server.pem"), certificates.file("server.key"));
    let tls = format!("tls = {{ cert = {cert:?}, key = {key:?} }}");
    let sites: Vec<usize> = text.match_indices("\n[[site]]").map(|(at, _)| at + 1).collect();
    let (first, last) = (*sites.first().context("no site")?, *sites.last().context("no site")?);
    let mut lines = vec!["tls = { min_version = \"1.3\" }".to_owned()];
    let mut at = 0;
    for line in text.lines() {
        lines.push(line.to_owned());
        if at == first || at == last {
            lines.push(tls.clone());
        }
        at += line.len() + 1;
    }
    Ok(lines.join("\n") + "\n")
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

/// larder with this whole config, not started yet.
pub(crate) fn configured(program: &Path, setup: &Setup<'_>, name: &str, config: &str) -> Result<Launch> {
    let folder = setup.folder()?;
    fs::write(folder.path().join("larder.toml"), config).context("larder.toml")?;
    launch(program, setup, folder, name)
}

/// A store of 64 MiB in memory in front of these folders, of so many bytes each, for one site that heeds the origin's
/// fields: a config for [`configured`].
pub(crate) fn on_disks(origin: SocketAddr, folders: &[PathBuf], size: &str, layout: &str) -> String {
    let disk = |folder: &PathBuf| format!("{{ path = \"{}\", size = \"{size}\" }}", folder.display());
    let disks: Vec<String> = folders.iter().map(disk).collect();
    format!(
        "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{origin}\"\n\n\
         [stores.default]\nmemory = \"64MiB\"\ndisks = [{}]\nlayout = \"{layout}\"\n\n\
         [[site]]\norigin = \"app\"\n",
        disks.join(", ")
    )
}

/// A store of plain files in this folder, for one site that heeds the origin's fields: a config for [`configured`].
pub(crate) fn on_files(origin: SocketAddr, folder: &Path) -> String {
    format!(
        "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{origin}\"\n\n\
         [stores.default]\nfiles = \"{}\"\n\n[[site]]\norigin = \"app\"\n",
        folder.display()
    )
}

fn run(program: &Path, setup: &Setup<'_>, folder: TempDir, name: &str) -> Result<Contender> {
    launch(program, setup, folder, name)?.contender()
}

/// The listener speaks HTTP/1 and HTTP/2 alike.
fn launch(program: &Path, setup: &Setup<'_>, folder: TempDir, name: &str) -> Result<Launch> {
    let (address, admin) = (free_port()?, free_port()?);
    let mut listen = vec!["--listen".to_owned(), address.to_string()];
    if setup.certificates.is_some() {
        // The command line has no such listener.
        listen.clear();
        let file = folder.path().join("larder.toml");
        let config = fs::read_to_string(&file).context("larder.toml")?;
        fs::write(&file, format!("listen = [{{ address = \"{address}\", tls = true }}]\n{config}"))?;
    }
    let told = folder.path().join("told");
    let mut command = setup.command();
    command
        .arg(program)
        .args(["run", "--workers", &setup.workers.count.to_string(), "-c"])
        .arg(folder.path().join("larder.toml"))
        .args(listen)
        .args(["--admin", &admin.to_string()])
        .stdout(Stdio::null())
        // A line for each purge, among others.
        .stderr(fs::File::create(&told).context("a file for what larder tells")?);
    Ok(Launch { name: name.to_owned(), address, admin: Some(admin), told: Some(told), command, folder })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use larder_testkit::certificates::Certificates;

    #[test]
    fn the_file_with_everything_on_gets_this_origin_and_its_log() {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FULL)).unwrap();
        let origin = "127.0.0.1:45678".parse().unwrap();
        let quiet = full_config(&text, origin, AccessLog::Off).unwrap();
        assert!(!quiet.contains(FULL_ORIGIN) && quiet.contains("http://127.0.0.1:45678"));
        assert!(full_config(&text, origin, AccessLog::On).unwrap().contains("access = \"./access.log\""));
        assert!(full_config("", origin, AccessLog::Off).is_err());
    }

    #[test]
    fn the_first_and_the_last_site_get_the_certificates() {
        let kit = Certificates::new();
        let origin = "127.0.0.1:45678".parse().unwrap();
        let setup = Setup { certificates: Some(&kit), ..Setup::new(Path::new("/"), origin) };
        let text = "a = 1\n\n[[site]] # one\nb = 2\n[[site]]\nc = 3\n[[site.rule]]\nd = 4\n[[site]]\ne = 5\n";
        let config: toml::Table = with_certificates(text.to_owned(), &setup).unwrap().parse().unwrap();
        let secured: Vec<bool> =
            config["site"].as_array().unwrap().iter().map(|site| site.get("tls").is_some()).collect();
        assert_eq!(secured, [true, false, true]);
        assert!(with_certificates("a = 1\n".to_owned(), &setup).is_err());
    }

    #[test]
    fn a_store_on_two_disks_names_both() {
        let folders = [PathBuf::from("/a/one"), PathBuf::from("/b/two")];
        let config = on_disks("127.0.0.1:45678".parse().unwrap(), &folders, "8GiB", "hash");
        let config: toml::Table = config.parse().unwrap();
        let store = &config["stores"]["default"];
        assert_eq!(store["layout"].as_str(), Some("hash"));
        let disks = store["disks"].as_array().unwrap();
        let paths: Vec<_> = disks.iter().filter_map(|disk| disk["path"].as_str()).collect();
        assert_eq!(paths, ["/a/one", "/b/two"]);
        assert!(disks.iter().all(|disk| disk["size"].as_str() == Some("8GiB")));
    }
}
