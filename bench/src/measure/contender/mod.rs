//! Who is measured: larder, its peers and the floor, each on a core of its own; one file per server.
//!
//! In: a [`Setup`] (where the origin is, how many workers, which protocol), and the lines of configuration that a
//! measurement is about. Out: a running [`Contender`], ended when it is dropped, and its files with it. The rest of each
//! configuration is here once, so that two measurements differ only in what they say they differ in. Files lie in a
//! scratch folder in memory: no disk takes part. No server writes an access log unless its row says so.
//! Deliberately absent: the load, which each measurement brings.

pub(crate) mod caddy;
pub(crate) mod floor;
pub(crate) mod h2o;
pub(crate) mod haproxy;
pub(crate) mod larder;
pub(crate) mod nginx;
pub(crate) mod varnish;

use std::any::Any;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use harness::children::Server;
use harness::go::{self, GoProgram};
use harness::origin;
use harness::orphans::Watched;
use larder_testkit::certificates::{Certificates, SanType};

/// Servers run here, one after the other.
pub(crate) const SERVER_CORE: usize = 0;
/// The load runs here.
pub(crate) const LOAD_CORE: usize = 1;

const READY_MAX: Duration = Duration::from_secs(20);
/// What has to be free where caches lie. nginx passes on what it cannot store, and says so nowhere that a client sees.
const SCRATCH_FREE_MIN: u64 = 2 << 30;
/// What every scratch folder's name begins with.
const SCRATCH_PREFIX: &str = "larder-bench-";

/// A server under measurement. Dropping it ends the server, and then removes its folder.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Where it tells about itself; larder only.
    pub(crate) admin: Option<SocketAddr>,
    /// Ends before the server does.
    _beside: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) server: Server,
    /// Belongs to it, and its CPU time and memory count as this server's.
    server_beside: Option<Server>,
    last_check: Option<Check>,
    _folder: Option<TempDir>,
}

type Check = Box<dyn Fn(&Contender) -> Result<()> + Send + Sync>;

impl Contender {
    /// Removes `folder` once the server has ended.
    fn owning(self, folder: TempDir) -> Self {
        Self { _folder: Some(folder), ..self }
    }

    /// Has [`Self::check_at_last`] make this check.
    pub(crate) fn with_last_check(
        self,
        check: impl Fn(&Contender) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { last_check: Some(Box::new(check)), ..self }
    }

    /// Has it something beside it for as long as it runs, be it on turn or not.
    pub(crate) fn with_beside(self, beside: impl Send + Sync + 'static) -> Self {
        Self { _beside: Some(Box::new(beside)), ..self }
    }

    /// Has it another server beside it, which is a part of the same setup.
    pub(crate) fn with_server_beside(self, server: Server) -> Self {
        Self { server_beside: Some(server), ..self }
    }

    /// User and system time so far, with that of a server beside it.
    pub(crate) fn cpu_time(&self) -> Duration {
        self.server.cpu_time() + self.server_beside.as_ref().map(Server::cpu_time).unwrap_or_default()
    }

    /// What is in memory, with that of a server beside it.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.server.resident_bytes() + self.server_beside.as_ref().map_or(0, Server::resident_bytes)
    }

    /// What is to be true of it after its last run as well, where its row says anything.
    pub(crate) fn check_at_last(&self) -> Result<()> {
        self.last_check.as_ref().map_or(Ok(()), |check| check(self))
    }
}

/// A server that is not started yet, and can be started again on the same files after it was killed.
pub(crate) struct Launch {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Where it tells about itself; larder only.
    pub(crate) admin: Option<SocketAddr>,
    /// Where it writes what it has to tell, if not to where this program does.
    told: Option<PathBuf>,
    command: Command,
    folder: TempDir,
}

impl Launch {
    /// Starts it, and does not wait until it listens.
    pub(crate) fn start(&mut self) -> Result<Server> {
        Server::start(&self.name, &mut self.command)
    }

    /// Its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it for good, and waits until it listens, at its admin address as well: larder opens that one later.
    pub(crate) fn contender(mut self) -> Result<Contender> {
        let started = start(&self.name, self.address, &mut self.command).map_err(|error| {
            match self.told.as_ref().map(fs::read_to_string) {
                Some(Ok(told)) => error.context(told.trim_end().to_owned()),
                _ => error,
            }
        })?;
        let mut contender = started.owning(self.folder);
        if let Some(admin) = self.admin {
            contender.server.wait_for(admin, READY_MAX)?;
        }
        Ok(Contender { admin: self.admin, ..contender })
    }
}

/// What the listener speaks. Some servers speak one only on each port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Protocol {
    Http1,
    /// In clear text by prior knowledge, over TLS by agreement.
    Http2,
}

impl Protocol {
    /// Its name in a handshake of TLS (RFC 7301).
    pub(crate) fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }
}

/// How many workers a server has, and the cores that they share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Workers {
    pub(crate) count: usize,
    /// As `taskset -c` takes them.
    pub(crate) cores: &'static str,
}

impl Workers {
    /// One worker on the servers' core.
    pub(crate) const ONE: Self = Self { count: 1, cores: "0" };
    /// Two workers on both cores: none is left for the load alone, so only CPU per request can be compared.
    pub(crate) const TWO: Self = Self { count: 2, cores: "0,1" };
}

/// What every server has to know before it starts.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// Configurations and caches go here, each server's into a folder of its own.
    pub(crate) scratch: &'a Path,
    pub(crate) origin: SocketAddr,
    pub(crate) workers: Workers,
    pub(crate) protocol: Protocol,
    /// Over TLS 1.3 alone, with these.
    pub(crate) certificates: Option<&'a Certificates>,
}

impl<'a> Setup<'a> {
    /// One worker that speaks HTTP/1.
    pub(crate) fn new(scratch: &'a Path, origin: SocketAddr) -> Self {
        Self { scratch, origin, workers: Workers::ONE, protocol: Protocol::Http1, certificates: None }
    }

    /// A folder of the server's own.
    fn folder(&self) -> Result<TempDir> {
        readable_folder(self.scratch)
    }

    /// The beginning of a command that stays on the workers' cores.
    fn command(&self) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", self.workers.cores]);
        command
    }
}

/// The programs that are built here and not installed, and a folder in memory.
pub(crate) struct Kit {
    /// This checkout.
    pub(crate) root: PathBuf,
    pub(crate) larder: PathBuf,
    /// An older larder, to be measured beside it.
    pub(crate) before: Option<PathBuf>,
    pub(crate) floor: PathBuf,
    scratch: Scratch,
    certificates: OnceLock<Certificates>,
}

impl Kit {
    /// Builds what is measured as it is shipped (profile `dist`), and makes the folder.
    ///
    /// # Errors
    /// Fewer than two cores, or a build that fails.
    pub(crate) fn new(root: &Path) -> Result<Self> {
        cores()?;
        Ok(Self {
            root: root.to_path_buf(),
            larder: match std::env::var_os("LARDER_PROGRAM") {
                Some(program) => program.into(),
                None => build(root, "larder")?,
            },
            before: std::env::var_os("LARDER_BEFORE").map(PathBuf::from),
            floor: build(root, "larder-floor")?,
            scratch: scratch()?,
            certificates: OnceLock::new(),
        })
    }

    /// The folder in memory.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// ECDSA over P-256 for `localhost` and 127.0.0.1, made for this run.
    pub(crate) fn certificates(&self) -> &Certificates {
        self.certificates.get_or_init(|| {
            Certificates::with("localhost", |params| {
                params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
            })
        })
    }

    /// Caddy, which is built for it where this machine can: Debian's is of before ML-KEM.
    pub(crate) fn caddy(&self) -> Result<Option<PathBuf>> {
        const PACKAGE: &str = "github.com/caddyserver/caddy/v2/cmd/caddy";
        match go::program(&self.root, "bench/caddy", PACKAGE, "caddy")? {
            GoProgram::At(program) => Ok(Some(program)),
            GoProgram::Unavailable(reason) => {
                println!("without Caddy: {reason}");
                Ok(None)
            }
        }
    }

    /// One worker that speaks HTTP/1, in this kit's folder.
    pub(crate) fn setup(&self, origin: SocketAddr) -> Setup<'_> {
        Setup::new(self.scratch.path(), origin)
    }
}

/// Builds larder as it is shipped.
pub(crate) fn build_larder(root: &Path) -> Result<PathBuf> {
    build(root, "larder")
}

fn build(root: &Path, package: &str) -> Result<PathBuf> {
    let build = ["build", "--profile", "dist", "--locked", "-p", package];
    let status = Command::new("cargo").args(build).current_dir(root).status().context("cargo")?;
    ensure!(status.success(), "{package} could not be built");
    Ok(root.join("target/dist").join(package))
}

/// How many cores there are; fails below two, for the server and the load would share one.
pub(crate) fn cores() -> Result<usize> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(cores >= 2, "two cores are needed, one for the server and one for the load");
    Ok(cores)
}

/// A folder for configurations and caches, removed when it is dropped, or when this program ends without that.
pub(crate) struct Scratch {
    folder: TempDir,
    _watched: Watched,
}

impl Scratch {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A scratch folder, on tmpfs where there is one.
///
/// # Errors
/// There is not enough room for what the servers store.
pub(crate) fn scratch() -> Result<Scratch> {
    let shm = Path::new("/dev/shm");
    let place = if shm.is_dir() { shm } else { Path::new("/tmp") };
    let room = rustix::fs::statvfs(place).with_context(|| place.display().to_string())?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    ensure!(
        free >= SCRATCH_FREE_MIN,
        "{} has {} MB left; caches need {} (containers take --shm-size)",
        place.display(),
        free >> 20,
        SCRATCH_FREE_MIN >> 20
    );
    let folder = readable_folder(place)?;
    let watched = Watched::folder(folder.path());
    Ok(Scratch { folder, _watched: watched })
}

/// A folder that everybody may look into: the workers of nginx and Varnish may run as somebody else.
fn readable_folder(within: &Path) -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(SCRATCH_PREFIX).tempdir_in(within)?;
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
    let name = name.to_owned();
    Ok(Contender {
        name,
        address,
        admin: None,
        _beside: None,
        server,
        server_beside: None,
        last_check: None,
        _folder: None,
    })
}

/// Puts what the origin would answer for these targets (paths that end in a length) below `folder`, for servers of
/// files.
fn lay_out(folder: &Path, targets: &[String]) -> Result<()> {
    for target in targets {
        let length = target.rsplit('/').next().and_then(|last| last.parse().ok()).context("a length")?;
        let file = folder.join(target.trim_start_matches('/'));
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(&file, origin::body(length))?;
    }
    Ok(())
}
