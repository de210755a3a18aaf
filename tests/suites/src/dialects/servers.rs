//! The caches of a world: its peer and larder, each on a free port before an origin.
//!
//! In: a world, its origin, and what will be stored. Out: a running cache, which ends with its folder when it is dropped. larder's
//! config is written here; those of the peers are in tests/dialects/peers, without what differs from run to run.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::built;
use harness::children::{Server, free_port};
use tempfile::TempDir;

use super::PEERS;
use super::stored::Stored;
use super::world::{Peer, World};

/// Where Debian has it.
pub(crate) const NGINX_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_cache_purge_module.so";

const READY_MAX: Duration = Duration::from_secs(30);

/// A cache.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    server: Server,
    _folder: TempDir,
}

impl Running {
    /// Fails when it has ended.
    pub(crate) fn still_runs(&mut self) -> Result<()> {
        self.server.still_runs()
    }
}

/// The world's peer.
pub(crate) fn peer(root: &Path, world: &World, origin: SocketAddr, _: &[Stored]) -> Result<Running> {
    match world.peer {
        Peer::Varnish(config) => varnish(&root.join(PEERS).join(config), origin),
        Peer::Nginx(config) => nginx(&root.join(PEERS).join(config), origin),
    }
}

/// Nothing is used stale without a confirmation, so that a soft purge is seen at the origin at once.
fn varnish(config: &Path, origin: SocketAddr) -> Result<Running> {
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

fn nginx(config: &Path, origin: SocketAddr) -> Result<Running> {
    let (address, folder) = (free_port()?, tempfile::tempdir()?);
    let text = fs::read_to_string(config).with_context(|| config.display().to_string())?;
    // Workers of another user could not enter the folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let text = text
        .replace("{user}", user)
        .replace("{module}", NGINX_MODULE)
        .replace("{listen}", &address.to_string())
        .replace("{origin}", &origin.to_string())
        .replace("{folder}", &folder.path().display().to_string());
    let file = folder.path().join("nginx.conf");
    fs::write(&file, text).context("nginx.conf")?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder.path()).arg("-e").arg("stderr").arg("-c").arg(&file);
    start("nginx", command, address, folder)
}

/// larder with a site of all hosts.
pub(crate) fn larder(root: &Path, world: &World, origin: SocketAddr, stored: &[Stored]) -> Result<Running> {
    let (address, admin, folder) = (free_port()?, free_port()?, tempfile::tempdir()?);
    let without_port = |stored: &'_ Stored| stored.host.split(':').next().unwrap_or_default().to_owned();
    let mut hosts: Vec<String> = stored.iter().map(without_port).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let tags: Vec<&str> =
        world.tags.iter().map(|(name, _)| *name).chain(world.more_tags.iter().copied()).collect();
    let tags = if tags.is_empty() { String::new() } else { format!("tags = {tags:?}\n") };
    // Requests say nothing of freshness here, as with the peers.
    let config = format!(
        "listen = [\"{address}\"]\nadmin = \"{admin}\"\nworkers = 1\n\n[origins.app]\nservers = [\"http://{origin}\"]\n\n\
         [[site]]\nhosts = {hosts:?}\norigin = \"app\"\nrequest_directives = \"ignore\"\npurge = {}\n{tags}",
        world.purge
    );
    let file = folder.path().join("larder.toml");
    fs::write(&file, config).context("larder.toml")?;
    let mut command = Command::new(built::larder(root)?);
    command.arg("run").arg("-c").arg(&file);
    start("larder", command, address, folder)
}

fn start(name: &str, mut command: Command, address: SocketAddr, folder: TempDir) -> Result<Running> {
    let output = folder.path().join("output");
    let out = fs::File::create(&output).context("output")?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let mut server = Server::start(name, &mut command)?;
    server.wait_for(address, READY_MAX).with_context(|| fs::read_to_string(&output).unwrap_or_default())?;
    Ok(Running { address, server, _folder: folder })
}
