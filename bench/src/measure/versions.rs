//! Hits whose version an application keeps in Redis, beside the setup that people build for it by hand: nginx with Lua, which asks Redis for
//! the version and then for the body.
//!
//! In: one body of 8357 bytes, the version of its URL in a hash, and the body under a key with that version. Out: CPU time per request,
//! requests per second and waits: of larder with the response in memory, with and without versions; of larder with the application's
//! body; of nginx with both look-ups. Each has a Redis of its own, on a Unix socket and on the load's core; its time is nobody's.
//! Deliberately absent: the cost of a change, which the proofs count in commands.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::contender::{Contender, Kit, LOAD_CORE, Setup, larder, nginx};
use super::drive::Load;
use super::page::Page;
use super::runner::{Pace, Row, Scenario, run as measure};
use harness::children::{Server, pause};
use harness::origin::body;

const PLAIN: &str = "larder, no versions";
const KNOWN: &str = "larder, versions";
const BODIES: &str = "larder, versions and bodies in Redis";
const NGINX: &str = "nginx, Lua and Redis";
const SCENARIO: &str = "8357 B, 100 connections";
const BYTES: usize = 8357;
const TARGET: &str = "/page/8357";

/// CPU per request with a version over without.
const OF_PLAIN: f64 = 1.05;
/// The same over nginx's.
const OF_NGINX: f64 = 0.2;
const READY_MAX: Duration = Duration::from_secs(10);

/// Measures, prints the tables and writes them to bench/results.
pub(super) fn run(root: &Path) -> Result<()> {
    let kit = Kit::new(root)?;
    let outcome = measure(&kit, &[scenario(&kit)], Pace::USUAL)?;
    let judged = [
        outcome.cpu_at_most(SCENARIO, KNOWN, OF_PLAIN, PLAIN)?,
        outcome.cpu_at_most(SCENARIO, KNOWN, OF_NGINX, NGINX)?,
        outcome.cpu_at_most(SCENARIO, BODIES, OF_NGINX, NGINX)?,
    ];
    Page {
        name: "versions",
        title: "Versions in Redis",
        how: "One worker each, pinned to one core; `wrk -t1 -c100` with keep-alive on another; three interleaved rounds of 3 s, medians. Every \
              answer was the same 200, and the origin was not asked. Each server has a Redis on a Unix socket, on the load's core. In Redis lie \
              the version of the URL (a field of a hash) and the body (a string). nginx runs Lua with the client of Debian's `lua-nginx-redis`, \
              which keeps its connections, and asks for both each time. \"no versions\": larder with the response in memory. \"versions\": the same, \
              under a version that is known. \"bodies in Redis\": the response is a copy of the application's body."
            .to_owned(),
        programs: &[("rustc", "--version"), ("nginx", "-v"), ("redis-server", "--version"), ("wrk", "-v")],
    }
    .write(root, &outcome, &judged)
}

fn scenario(kit: &Kit) -> Scenario<'_> {
    let larder_row = |name: &'static str, store: &'static str, site: &'static str| {
        Row::new(name, move |setup| Redis::filled()?.with_larder(kit, setup, (name, store, site)))
    };
    let rows = vec![
        larder_row(PLAIN, "", ""),
        larder_row(
            KNOWN,
            "",
            "versions = { redis = \"REDIS\", hash = \"resource_versions\", field = \"{target}\" }",
        ),
        larder_row(
            BODIES,
            "redis = { url = \"REDIS\", key = \"{target}:version={version}\", default_type = \"text/plain\" }",
            "versions = { hash = \"resource_versions\", field = \"{target}\" }",
        ),
        Row::new(NGINX, |setup| Redis::filled()?.with_nginx(setup)),
    ];
    let mut scenario = Scenario::hit(SCENARIO, TARGET, body(BYTES), rows);
    scenario.load = Load::Wrk { connections: 100, script: None };
    scenario
}

/// A Redis with the version and the body.
struct Redis {
    socket: PathBuf,
    _folder: TempDir,
    _server: Server,
}

impl Redis {
    fn filled() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("redis.sock");
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            &LOAD_CORE.to_string(),
            "redis-server",
            "--port",
            "0",
            "--save",
            "",
            "--unixsocket",
        ]);
        command.arg(&socket).args(["--logfile", "redis.log"]).current_dir(folder.path());
        let server = Server::start("redis-server", &mut command)?;
        fill(&socket).context("redis-server")?;
        Ok(Self { socket, _folder: folder, _server: server })
    }

    /// larder, with these lines of the store and the site. `REDIS` is its URL.
    fn with_larder(
        self,
        kit: &Kit,
        setup: &Setup<'_>,
        (name, store, site): (&str, &str, &str),
    ) -> Result<Contender> {
        let config = format!(
            "[log]\naccess = \"off\"\n\n[origins.app]\nservers = \"http://{}\"\n\n[stores.default]\nmemory = \"256MiB\"\n{store}\n\n\
             [[site]]\norigin = \"app\"\n{site}\n",
            setup.origin
        );
        let config = config.replace("REDIS", &format!("unix://{}", self.socket.display()));
        let contender = larder::configured(&kit.larder, setup, name, &config)?.contender()?;
        Ok(contender.with_beside(self))
    }

    /// nginx, which asks for the version and then for the body.
    fn with_nginx(self, setup: &Setup<'_>) -> Result<Contender> {
        let script = format!(
            "local redis = require \"nginx.redis\"\n\
             local red = redis:new()\n\
             red:set_timeout(1000)\n\
             assert(red:connect(\"unix:{}\"))\n\
             local version = red:hget(\"resource_versions\", ngx.var.request_uri)\n\
             local page = red:get(ngx.var.request_uri .. \":version=\" .. version)\n\
             red:set_keepalive(60000, 200)\n\
             ngx.header[\"Content-Length\"] = #page\n\
             ngx.print(page)",
            self.socket.display()
        );
        let locations = format!("location / {{\ncontent_by_lua_block {{\n{script}\n}}\n}}");
        let modules = format!("load_module {};\nload_module {};\n", nginx::NDK_MODULE, nginx::LUA_MODULE);
        let contender = nginx::with_modules(setup, NGINX, &modules, "", &locations)?.contender()?;
        Ok(contender.with_beside(self))
    }
}

fn fill(socket: &Path) -> Result<()> {
    let began = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(error) => ensure!(began.elapsed() < READY_MAX, "{error}"),
        }
        pause();
    };
    let page = body(BYTES);
    let key = format!("{TARGET}:version=7");
    let commands: [&[&[u8]]; 2] =
        [&[b"HSET", b"resource_versions", TARGET.as_bytes(), b"7"], &[b"SET", key.as_bytes(), &page]];
    for words in commands {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).bytes());
            request.extend_from_slice(word);
            request.extend(b"\r\n");
        }
        stream.write_all(&request)?;
        let mut reply = [0; 5];
        let read = stream.read(&mut reply)?;
        let reply = reply.get(..read).unwrap_or_default();
        ensure!(reply.starts_with(b":1") || reply.starts_with(b"+OK"), "{}", reply.escape_ascii());
    }
    Ok(())
}
