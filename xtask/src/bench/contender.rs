//! Who is measured: larder and its peers, each with one worker on a core of its own.
//!
//! In: an origin's address, and the lines of configuration that a measurement is about. Out: a running [`Contender`],
//! ended when it is dropped. The rest of each configuration is here once, so that two measurements differ only in
//! what they say they differ in. Files lie in a scratch folder in memory: no disk takes part.
//! Deliberately absent: the load, which each measurement brings.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::children::{Server, free_port};

/// Servers run here, one after the other.
pub(crate) const SERVER_CORE: usize = 0;
/// The load runs here.
pub(crate) const LOAD_CORE: usize = 1;

const READY_MAX: Duration = Duration::from_secs(20);

/// A server under measurement.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
}

/// Builds what is measured: the release binary.
pub(crate) fn build_larder(root: &Path) -> Result<PathBuf> {
    let build = ["build", "--release", "-p", "larder"];
    let status = Command::new("cargo").args(build).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "larder could not be built");
    Ok(root.join("target/release/larder"))
}

/// How many cores there are; fails below two, for the server and the load would share one.
pub(crate) fn cores() -> Result<usize> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores >= 2, "two cores are needed, one for the server and one for the load");
    Ok(cores)
}

/// A folder for configurations and caches, on tmpfs where there is one.
pub(crate) fn scratch() -> Result<TempDir> {
    let shm = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(if shm.is_dir() { shm } else { Path::new("/tmp") })?;
    // nginx's and varnish's workers may run as somebody else.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(folder)
}

/// The beginning of a command that stays on one core.
pub(crate) fn pinned(core: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]);
    command
}

/// Starts `command` and waits until it listens at `address`.
pub(crate) fn start(name: &str, address: SocketAddr, command: &mut Command) -> Result<Contender> {
    let mut server = Server::start(name, command)?;
    server.wait_for(address, READY_MAX)?;
    Ok(Contender { name: name.to_owned(), address, server })
}

/// larder with the settings of one site (lines of TOML, `""` for none) and one worker.
pub(crate) fn larder(
    program: &Path,
    scratch: &Path,
    name: &str,
    site: &str,
    origin: SocketAddr,
) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let file = scratch.join("larder.toml");
    let config = format!(
        "[origins.app]\nservers = \"http://{origin}\"\n\n[stores.default]\nmemory = \"256MiB\"\n\n\
         [[site]]\norigin = \"app\"\n{site}\n"
    );
    fs::write(&file, config).context("larder.toml")?;
    let mut command = pinned(SERVER_CORE);
    command
        .arg(program)
        .args(["run", "--workers", "1", "-c"])
        .arg(&file)
        .args(["--listen", &address.to_string(), "--admin", &admin.to_string()])
        .stdout(Stdio::null());
    start(name, address, &mut command)
}

/// nginx with a cache zone named `pages` on tmpfs, keep-alive to the origin, one worker. `location` holds the lines
/// that say what is cached and how.
pub(crate) fn nginx(scratch: &Path, name: &str, location: &str, origin: SocketAddr) -> Result<Contender> {
    let address = free_port()?;
    let root_user = rustix::process::geteuid().is_root();
    let work = tempfile::tempdir_in(scratch)?.keep();
    let folder = work.display();
    let config = format!(
        "{user}daemon off; worker_processes 1; pid {folder}/pid; error_log stderr crit;\n\
         worker_rlimit_nofile 16384;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n\
         access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;\n\
         client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         proxy_cache_path {folder}/cache levels=1:2 keys_zone=pages:16m max_size=256m inactive=1h;\n\
         upstream app {{ server {origin}; keepalive 64; }}\n\
         server {{ listen {address} backlog=4096; location / {{\n\
         proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_cache pages;\n\
         {location}\n\
         }} }}\n\
         }}\n",
        user = if root_user { "user root;\n" } else { "" },
    );
    let file = work.join("nginx.conf");
    fs::write(&file, config).context("nginx.conf")?;
    let mut command = pinned(SERVER_CORE);
    command.arg("nginx").arg("-c").arg(&file).arg("-p").arg(&work).args(["-e", "stderr"]);
    start(name, address, &mut command)
}

/// Varnish with its defaults and 256 MiB of memory. `on_response` holds lines of `vcl_backend_response`.
pub(crate) fn varnish(
    scratch: &Path,
    name: &str,
    on_response: &str,
    origin: SocketAddr,
) -> Result<Contender> {
    let (address, admin) = (free_port()?, free_port()?);
    let work = tempfile::tempdir_in(scratch)?.keep();
    let file = work.join("default.vcl");
    let vcl = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
         sub vcl_backend_response {{ {on_response} }}\n",
        origin.ip(),
        origin.port()
    );
    fs::write(&file, vcl).context("default.vcl")?;
    let mut command = pinned(SERVER_CORE);
    command
        .args(["varnishd", "-F", "-s", "malloc,256m", "-T", &admin.to_string(), "-a", &address.to_string()])
        .arg("-n")
        .arg(&work)
        .arg("-f")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    start(name, address, &mut command)
}
