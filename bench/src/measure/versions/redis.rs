//! A Redis with one page and its version, and who is asked for that page in front of it.
//!
//! In: how it is reached. Out: larder or nginx with this Redis beside it, whose CPU time counts as theirs, and a [`Place`] by which the Redis tells
//! how often it got each command. It runs on the servers' core: a setup takes what it takes of one core, with all that belongs to it.
//! Deliberately absent: a second Redis for bodies. Those who build it by hand have one.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{BYTES, TARGET};
use crate::measure::contender::{Contender, Kit, SERVER_CORE, Setup, larder, nginx, pinned};
use harness::children::{Server, free_port, pause};
use harness::origin::body;

const READY_MAX: Duration = Duration::from_secs(10);
const REPLY_MAX: Duration = Duration::from_secs(5);

/// How a Redis is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    UnixSocket,
    Tcp,
}

/// Where a Redis is.
#[derive(Clone)]
pub(super) enum Place {
    UnixSocket(PathBuf),
    Tcp(SocketAddr),
}

/// A Redis with the version and the body.
pub(super) struct Redis {
    pub(super) place: Place,
    folder: TempDir,
    server: Server,
}

impl Redis {
    /// Starts and fills it.
    pub(super) fn filled(by: By) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = pinned(SERVER_CORE);
        command.args(["redis-server", "--save", "", "--logfile", "redis.log", "--bind", "127.0.0.1"]);
        let place = match by {
            By::UnixSocket => Place::UnixSocket(folder.path().join("redis.sock")),
            By::Tcp => Place::Tcp(free_port()?),
        };
        match &place {
            Place::UnixSocket(path) => command.args(["--port", "0", "--unixsocket"]).arg(path),
            Place::Tcp(address) => command.args(["--port", &address.port().to_string()]),
        };
        let server = Server::start("redis-server", command.current_dir(folder.path()))?;
        let begun = Instant::now();
        while place.ask(&[b"PING"]).is_err() {
            ensure!(begun.elapsed() < READY_MAX, "redis-server does not answer after {READY_MAX:?}");
            pause();
        }
        place.ask(&[b"HSET", b"resource_versions", TARGET.as_bytes(), b"7"])?;
        place.ask(&[b"SET", format!("{TARGET}:version=7").as_bytes(), &body(BYTES)])?;
        Ok(Self { place, folder, server })
    }

    /// larder, with these lines of the store and the site. `REDIS` is its URL.
    pub(super) fn with_larder(
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
        let url = match &self.place {
            Place::UnixSocket(path) => format!("unix://{}", path.display()),
            Place::Tcp(address) => format!("redis://{address}"),
        };
        let launch = larder::configured(&kit.larder, setup, name, &config.replace("REDIS", &url))?;
        Ok(self.beside(launch.contender()?))
    }

    /// nginx, which asks for the version and then for the body, over connections that are kept.
    pub(super) fn with_nginx(self, setup: &Setup<'_>, name: &str) -> Result<Contender> {
        let place = match &self.place {
            Place::UnixSocket(path) => format!("\"unix:{}\"", path.display()),
            Place::Tcp(address) => format!("\"{}\", {}", address.ip(), address.port()),
        };
        let script = format!(
            "local redis = require \"nginx.redis\"\n\
             local red = redis:new()\n\
             red:set_timeout(200)\n\
             assert(red:connect({place}))\n\
             local version = red:hget(\"resource_versions\", ngx.var.request_uri)\n\
             local page = red:get(ngx.var.request_uri .. \":version=\" .. version)\n\
             red:set_keepalive(60000, 1024)\n\
             ngx.header[\"Content-Length\"] = #page\n\
             ngx.print(page)"
        );
        let locations = format!("location / {{\ncontent_by_lua_block {{\n{script}\n}}\n}}");
        let modules = format!("load_module {};\nload_module {};\n", nginx::NDK_MODULE, nginx::LUA_MODULE);
        Ok(self.beside(nginx::with_modules(setup, name, &modules, "", &locations)?.contender()?))
    }

    fn beside(self, contender: Contender) -> Contender {
        contender.with_server_beside(self.server).with_beside(self.folder)
    }
}

impl Place {
    /// How often each command was called so far, by its name in small letters: `client|tracking`.
    pub(super) fn calls(&self) -> Result<BTreeMap<String, u64>> {
        Ok(calls(&self.ask(&[b"INFO", b"commandstats"])?))
    }

    /// Sends one command, and returns the reply as it stands.
    fn ask(&self, words: &[&[u8]]) -> Result<String> {
        match self {
            Self::UnixSocket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(REPLY_MAX))?;
                exchange(stream, words)
            }
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(REPLY_MAX))?;
                exchange(stream, words)
            }
        }
    }
}

fn exchange(mut stream: impl Read + Write, words: &[&[u8]]) -> Result<String> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n", word.len()).bytes());
        request.extend_from_slice(word);
        request.extend(b"\r\n");
    }
    // The reply to this one ends the connection, and so what there is to read.
    request.extend(b"*1\r\n$4\r\nQUIT\r\n");
    stream.write_all(&request)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let reply = reply.strip_suffix("+OK\r\n").context("a reply without its end")?;
    ensure!(!reply.starts_with('-'), "redis-server: {}", reply.trim_end());
    Ok(reply.to_owned())
}

/// `cmdstat_get:calls=7,usec=...`, a line for each.
fn calls(told: &str) -> BTreeMap<String, u64> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    told.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_by_command() {
        let told = "$90\r\n# Commandstats\r\ncmdstat_get:calls=7,usec=9,usec_per_call=1.2\r\n\
                    cmdstat_client|tracking:calls=1,usec=9,usec_per_call=9.0\r\n";
        let expected = [("client|tracking", 1), ("get", 7)].map(|(name, count)| (name.to_owned(), count));
        assert_eq!(calls(told), BTreeMap::from(expected));
    }
}
