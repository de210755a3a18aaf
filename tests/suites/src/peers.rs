//! Caches that a suite compares: each on a free port before an origin.
//!
//! In: a peer's configuration with what differs from run to run in braces, or a command for larder; the origin's address. Out: a running
//! server, which ends with its folder when it is dropped.
//! Deliberately absent: what is configured. Each suite has its files beside its cases.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::built;
use harness::children::{Server, free_port};
use tempfile::TempDir;

const READY_MAX: Duration = Duration::from_secs(30);

/// A server.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    server: Server,
    _folder: TempDir,
    /// What it serves, where that is its own.
    _files: Option<TempDir>,
}

impl Running {
    /// Removes `files` once the server has ended.
    pub(crate) fn with_files(self, files: TempDir) -> Self {
        Self { _files: Some(files), ..self }
    }

    /// Fails when it has ended.
    pub(crate) fn still_runs(&mut self) -> Result<()> {
        self.server.still_runs()
    }
}

/// Varnish with this VCL, which does not name its version or a backend. Nothing is used stale without a confirmation, so that
/// a soft purge is seen at the origin at once.
pub(crate) fn varnish(config: &Path, origin: SocketAddr) -> Result<Running> {
    let (address, folder) = (free_port()?, tempfile::tempdir()?);
    let own = fs::read_to_string(config).with_context(|| config.display().to_string())?;
    let file = folder.path().join("default.vcl");
    let (ip, port) = (origin.ip(), origin.port());
    let backend = format!("vcl 4.1;\nbackend origin {{ .host = \"{ip}\"; .port = \"{port}\"; }}\n");
    fs::write(&file, backend + &own).context("default.vcl")?;
    let mut command = Command::new("varnishd");
    command
        .args(["-F", "-s", "malloc,16m", "-p", "default_grace=0", "-p", "default_keep=3600"])
        // Optimising takes most of the time of a start.
        .args(["-p", "cc_command=exec gcc -std=gnu11 -O0 -fPIC -shared -o %o %s"])
        .args(["-p", "thread_pools=1", "-p", "thread_pool_min=5"])
        .args(["-T", "none", "-a", &address.to_string()])
        .arg("-n")
        .arg(folder.path())
        .arg("-f")
        .arg(&file);
    start("varnish", command, address, folder)
}

/// nginx with this configuration. `more` are names in braces, beside those that every configuration may have, and what
/// stands for them.
pub(crate) fn nginx(config: &Path, origin: SocketAddr, more: &[(&str, &str)]) -> Result<Running> {
    // Workers of another user could not enter the folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let (address, folder) = (free_port()?, tempfile::tempdir()?);
    let file =
        filled_in(config, "nginx.conf", origin, address, &folder, &[more, &[("user", user)]].concat())?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder.path()).arg("-e").arg("stderr").arg("-c").arg(&file);
    start("nginx", command, address, folder)
}

/// Apache with this configuration, as [`nginx`]. It does not serve as root, so its folder is open to all.
pub(crate) fn apache(config: &Path, origin: SocketAddr, more: &[(&str, &str)]) -> Result<Running> {
    let user = if rustix::process::geteuid().is_root() { "User nobody\nGroup nogroup" } else { "" };
    let (address, folder) = (free_port()?, tempfile::tempdir()?);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let file =
        filled_in(config, "apache.conf", origin, address, &folder, &[more, &[("user", user)]].concat())?;
    let mut command = Command::new("apache2");
    command.args(["-D", "FOREGROUND", "-f"]).arg(&file);
    start("apache", command, address, folder)
}

/// larder with this configuration, which says neither where it listens nor how many workers it has.
pub(crate) fn larder(root: &Path, config: &str) -> Result<Running> {
    let (address, admin, folder) = (free_port()?, free_port()?, tempfile::tempdir()?);
    let file = folder.path().join("larder.toml");
    let listens = format!("listen = [\"{address}\"]\nadmin = \"{admin}\"\nworkers = 1\n\n");
    fs::write(&file, listens + config).context("larder.toml")?;
    let mut command = Command::new(built::larder(root)?);
    command.arg("run").arg("-c").arg(&file);
    start("larder", command, address, folder)
}

/// A configuration with `{listen}`, `{origin}`, `{folder}` and `more` replaced, in the server's own folder.
fn filled_in(
    config: &Path,
    name: &str,
    origin: SocketAddr,
    address: SocketAddr,
    folder: &TempDir,
    more: &[(&str, &str)],
) -> Result<PathBuf> {
    let mut text = fs::read_to_string(config).with_context(|| config.display().to_string())?;
    let (listen, origin, place) =
        (address.to_string(), origin.to_string(), folder.path().display().to_string());
    let known = [("listen", listen.as_str()), ("origin", origin.as_str()), ("folder", place.as_str())];
    for (name, value) in known.iter().chain(more) {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    let file = folder.path().join(name);
    fs::write(&file, text).with_context(|| name.to_owned())?;
    Ok(file)
}

fn start(name: &str, mut command: Command, address: SocketAddr, folder: TempDir) -> Result<Running> {
    let output = folder.path().join("output");
    let out = fs::File::create(&output).context("output")?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let mut server = Server::start(name, &mut command)?;
    server.wait_for(address, READY_MAX).with_context(|| fs::read_to_string(&output).unwrap_or_default())?;
    Ok(Running { address, server, _folder: folder, _files: None })
}
