//! What stands there: a Redis, the application's two processes, nginx with Lua, and larder, all on the same Redis and the same application.
//!
//! In: the stage, whose data folder has the application and nginx's configuration, and how Redis is reached. Out: a [`System`] with a client
//! for each proxy. Its parts can be taken away and put back. All of it ends when it is dropped.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::fetch::Client;
use super::super::stage::{CARELESS, Larder, Stage};
use harness::children::{Server, free_port, output_within, pause};

const READY_MAX: Duration = Duration::from_secs(20);
const COMMAND_MAX: Duration = Duration::from_secs(10);
/// Debian's own: its packages are for this interpreter.
const PYTHON: &str = "/usr/bin/python3";
/// As examples/versions.toml has it.
const ORIGIN: &str = "http://127.0.0.1:3000";
const REDIS: &str = "redis://127.0.0.1:6379/0";
const SITE: &str = "[[site]]\norigin = \"app\"\n";
/// The one file below the document root.
pub(super) const FILE: &str = "/hours.txt";
const FILE_CONTENT: &str = "Open from nine to five.\n";

/// How Redis is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    UnixSocket,
    Tcp,
}

/// What larder is told of the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// As the example and the guide have it.
    AsGuided,
    /// It keeps them for a while and knows nothing of versions: a check that finds nothing then finds nothing at all.
    Careless,
}

/// All of it.
pub(super) struct System {
    pub(super) nginx: Client,
    pub(super) larder: Larder,
    redis: Redis,
    application: Application,
    office: SocketAddr,
    site: Option<Server>,
    _servers: [Server; 2],
}

/// A Redis, which may be away.
struct Redis {
    by: By,
    folder: PathBuf,
    address: SocketAddr,
    server: Option<Server>,
}

/// How the application's processes are started.
struct Application {
    program: PathBuf,
    folder: PathBuf,
    redis: String,
    /// Where visitors are answered.
    address: SocketAddr,
}

impl System {
    /// Starts everything in a folder of its own.
    pub(super) fn start(stage: &Stage<'_>, (by, rule): (By, Rule)) -> Result<Self> {
        let folder = stage.work.join(format!("{by:?}-{rule:?}"));
        fs::create_dir_all(folder.join("public"))?;
        fs::write(folder.join("public").join(FILE.trim_start_matches('/')), FILE_CONTENT)?;
        let redis = Redis { by, folder: folder.clone(), address: free_port()?, server: None }.started()?;
        let application = Application {
            program: stage.data.join("app.py"),
            folder: folder.clone(),
            redis: redis.url(),
            address: free_port()?,
        };
        let office = free_port()?;
        // One after the other: the first lays out the database.
        let site = application.start("site", application.address)?;
        let office_server = application.start("office", office)?;
        let config = stage.example("versions.toml", ORIGIN, application.address)?;
        ensure!(config.contains(REDIS), "examples/versions.toml names another Redis than {REDIS}");
        ensure!(config.contains(SITE), "examples/versions.toml has another site");
        let root = format!("{SITE}root = \"{}\"\n", folder.join("public").display());
        let config = config.replace(REDIS, &redis.url()).replace(SITE, &root);
        let config = match rule {
            Rule::AsGuided => config,
            Rule::Careless => careless(&config)?,
        };
        let larder = stage.larder(&config)?;
        let address = free_port()?;
        let nginx_server = nginx(stage, &folder, [address, application.address], &redis.for_lua())?;
        Ok(Self {
            nginx: Client { address, host: larder.public, compressed: false },
            larder,
            redis,
            application,
            office,
            site: Some(site),
            _servers: [office_server, nginx_server],
        })
    }

    /// The application counts a record's changes up, and then the versions of its two pages. Returns the new count.
    pub(super) fn change(&self, record: usize) -> Result<u64> {
        let office = self.larder.client_of(self.office);
        let answer = office.curl(&format!("/foo/{record}"), &["-X", "POST"])?;
        ensure!(answer.status == 200, "a change of record {record} was answered {}", answer.status);
        answer.text().parse().context("no count of changes")
    }

    /// Whether visitors are answered by the application.
    pub(super) fn is_up(&self) -> bool {
        self.site.is_some()
    }

    /// Ends the process that answers visitors, or starts it again at the same address. The office goes on.
    pub(super) fn turn_site(&mut self) -> Result<()> {
        self.site = match self.site.take() {
            Some(server) => {
                server.kill();
                None
            }
            None => Some(self.application.start("site", self.application.address)?),
        };
        Ok(())
    }

    /// Ends Redis with all that it has, or starts an empty one.
    pub(super) fn turn_redis(&mut self) -> Result<()> {
        match self.redis.server.take() {
            Some(server) => server.kill(),
            None => self.redis.server = Some(self.redis.start()?),
        }
        Ok(())
    }

    /// What Redis answers; nothing stands for what is not there.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String> {
        self.redis.ask(words)
    }

    /// The key of a page's body under a version.
    pub(super) fn key(&self, target: &str, version: &str) -> String {
        format!("http://{}{target}:version={version}", self.larder.public)
    }
}

impl Redis {
    fn started(self) -> Result<Self> {
        let server = self.start()?;
        Ok(Self { server: Some(server), ..self })
    }

    /// Empty, and ready when this returns.
    fn start(&self) -> Result<Server> {
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--appendonly", "no", "--logfile", "redis.log", "--bind", "127.0.0.1"]);
        // As published: single pages are evicted, and the hash, which each request uses, last of all.
        command.args(["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]);
        match self.by {
            By::Tcp => command.args(["--port", &self.address.port().to_string()]),
            By::UnixSocket => command.args(["--port", "0", "--unixsocket"]).arg(self.socket()),
        };
        let mut server = Server::start("redis-server", command.current_dir(&self.folder))?;
        let deadline = Instant::now() + READY_MAX;
        while self.ask(&["PING"]).is_err() {
            server.still_runs()?;
            ensure!(Instant::now() < deadline, "redis-server does not answer after {READY_MAX:?}");
            pause();
        }
        Ok(server)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("redis.sock")
    }

    fn url(&self) -> String {
        match self.by {
            By::Tcp => format!("redis://{}", self.address),
            By::UnixSocket => format!("unix://{}", self.socket().display()),
        }
    }

    /// The arguments of `connect`.
    fn for_lua(&self) -> String {
        match self.by {
            By::Tcp => format!("\"{}\", {}", self.address.ip(), self.address.port()),
            By::UnixSocket => format!("\"unix:{}\"", self.socket().display()),
        }
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("redis-cli");
        command.arg("-e");
        match self.by {
            By::Tcp => command.args(["-p", &self.address.port().to_string()]),
            By::UnixSocket => command.arg("-s").arg(self.socket()),
        };
        Ok(output_within(command.args(words), COMMAND_MAX)?.trim_end().to_owned())
    }
}

impl Application {
    fn start(&self, role: &str, address: SocketAddr) -> Result<Server> {
        let mut command = Command::new(PYTHON);
        command.arg(&self.program).args([role, &address.port().to_string(), &self.redis]);
        command.arg(self.folder.join("records.db")).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
        let log = fs::File::options().append(true).create(true).open(self.folder.join("app.log"))?;
        let mut server = Server::start(role, command.stderr(log))?;
        server.wait_for(address, READY_MAX)?;
        Ok(server)
    }
}

/// The example without the lines about the application's pages.
fn careless(config: &str) -> Result<String> {
    let store = "store    = \"pages\"\nversions = { hash = \"resource_versions\", field = \"{target}\" }\n";
    ensure!(config.contains(store), "examples/versions.toml has another rule for the application's pages");
    Ok(config.replace(store, CARELESS))
}

fn nginx(
    stage: &Stage<'_>,
    folder: &std::path::Path,
    [listen, app]: [SocketAddr; 2],
    redis: &str,
) -> Result<Server> {
    let is_root = rustix::process::geteuid().is_root();
    let config = fs::read_to_string(stage.data.join("nginx.conf"))?
        .replace("{listen}", &listen.to_string())
        .replace("{app}", &app.to_string())
        .replace("{work}", &folder.display().to_string())
        // The files are in a folder that is root's then.
        .replace("{user}", if is_root { "user root;" } else { "" });
    let file = folder.join("nginx.conf");
    fs::write(&file, config)?;
    let script = fs::read_to_string(stage.data.join("pages.lua"))?.replace("{redis}", redis);
    fs::write(folder.join("pages.lua"), script)?;
    let mut command = Command::new("nginx");
    command.arg("-c").arg(&file).arg("-p").arg(folder).args(["-e", "stderr"]).stdin(Stdio::null());
    let mut server = Server::start("nginx", command.stdout(Stdio::null()))?;
    server.wait_for(listen, READY_MAX)?;
    Ok(server)
}
