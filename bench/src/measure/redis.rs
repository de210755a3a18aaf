//! A Redis beside what is measured: its start, what it is asked by hand, and what it tells of itself.
//!
//! In: how it is reached, and the core that it runs on. Out: a running Redis without persistence; its [`Place`], by which it tells how often it got
//! each command and what they took, its CPU time and its memory. It can be made to stand still.
//! Deliberately absent: what lies in it, which each measurement brings.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::contender::pinned;
use harness::children::{Server, free_port, pause};

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

/// A running Redis.
pub(super) struct Redis {
    pub(super) place: Place,
    folder: TempDir,
    server: Server,
}

impl Redis {
    /// Starts it on this core, with its files in a folder of its own below `within`.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn start(within: &Path, by: By, core: usize) -> Result<Self> {
        let folder = tempfile::Builder::new().tempdir_in(within)?;
        let mut command = pinned(core);
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
        Ok(Self { place, folder, server })
    }

    /// The server, and the folder that is to be removed after it.
    pub(super) fn into_parts(self) -> (Server, TempDir) {
        (self.server, self.folder)
    }

    /// Has it stand still (SIGSTOP) until this is dropped.
    ///
    /// # Errors
    /// It is not there any more.
    pub(super) fn stand_still(&self) -> Result<StandsStill> {
        let group = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process_group(group, Signal::STOP).context("redis-server")?;
        Ok(StandsStill(group))
    }
}

/// See [`Redis::stand_still`].
pub(super) struct StandsStill(Pid);

impl Drop for StandsStill {
    fn drop(&mut self) {
        // Who has ended is noticed by what is asked next.
        let _ = kill_process_group(self.0, Signal::CONT);
    }
}

/// What became of one command so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Command {
    pub(super) calls: u64,
    /// CPU time of the calls, in microseconds.
    pub(super) us: u64,
}

impl Place {
    /// As larder's config has it.
    pub(super) fn url(&self) -> String {
        match self {
            Self::UnixSocket(path) => format!("unix://{}", path.display()),
            Self::Tcp(address) => format!("redis://{address}"),
        }
    }

    /// As the client for nginx's Lua takes it, as the arguments of `connect`.
    pub(super) fn lua(&self) -> String {
        match self {
            Self::UnixSocket(path) => format!("\"unix:{}\"", path.display()),
            Self::Tcp(address) => format!("\"{}\", {}", address.ip(), address.port()),
        }
    }

    /// Each command so far, by its name in small letters: `client|tracking`.
    pub(super) fn commands(&self) -> Result<BTreeMap<String, Command>> {
        Ok(commands(&self.ask(&[b"INFO", b"commandstats"])?))
    }

    /// User and system time of the server so far.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let told = self.ask(&[b"INFO", b"cpu"])?;
        let of = |name| number::<f64>(&told, name).map(Duration::from_secs_f64);
        Ok(of("used_cpu_sys")? + of("used_cpu_user")?)
    }

    /// What it has taken of its allocator, in bytes.
    pub(super) fn used_bytes(&self) -> Result<u64> {
        number(&self.ask(&[b"INFO", b"memory"])?, "used_memory")
    }

    /// Sends one command, and returns the reply as it stands.
    ///
    /// # Errors
    /// No reply, or one that is an error.
    pub(super) fn ask(&self, words: &[&[u8]]) -> Result<String> {
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
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let reply = reply.strip_suffix(b"+OK\r\n").context("a reply without its end")?;
    let reply = String::from_utf8_lossy(reply).into_owned();
    ensure!(!reply.starts_with('-'), "redis-server: {}", reply.trim_end());
    Ok(reply)
}

/// `cmdstat_get:calls=7,usec=9,...`, a line for each.
fn commands(told: &str) -> BTreeMap<String, Command> {
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, rest) = rest.split_once(",usec=")?;
        let us = rest.split(',').next()?.parse().ok()?;
        Some((name.to_owned(), Command { calls: calls.parse().ok()?, us }))
    };
    told.lines().filter_map(one).collect()
}

/// `used_memory:7`, a line for each.
fn number<T: std::str::FromStr>(told: &str, name: &str) -> Result<T> {
    let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).with_context(|| format!("no {name} in INFO"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn commands_are_read_by_name() {
        let told = "$90\r\n# Commandstats\r\ncmdstat_get:calls=7,usec=9,usec_per_call=1.2\r\n\
                    cmdstat_client|tracking:calls=1,usec=2,usec_per_call=9.0\r\n";
        let expected = [("client|tracking", 1, 2), ("get", 7, 9)];
        let expected = expected.map(|(name, calls, us)| (name.to_owned(), Command { calls, us }));
        assert_eq!(commands(told), BTreeMap::from(expected));
    }

    #[test]
    fn figures_are_read_by_their_whole_name() {
        let told = "$90\r\nused_memory_human:7M\r\nused_memory:7\r\nused_cpu_sys:1.25\r\n";
        assert_eq!(number::<u64>(told, "used_memory").unwrap(), 7);
        assert_eq!(number::<f64>(told, "used_cpu_sys").unwrap().to_bits(), 1.25_f64.to_bits());
        assert!(number::<u64>(told, "used").is_err());
    }
}
