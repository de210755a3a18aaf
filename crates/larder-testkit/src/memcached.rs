//! Debian's memcached, started on a Unix socket of its own or on a port that the system chooses.
//!
//! In: the program `memcached` on the search path (`make units` installs it). Out: a server that a test may stop, kill and start
//! again, and a connection to it without any client. It ends with its value.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

/// A server on a Unix socket, ended with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts it.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = spawn(folder.path());
        Self { child, folder }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A connection of the test's own.
    pub fn raw(&self) -> Raw {
        Raw(UnixStream::connect(self.socket()).unwrap())
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, empty, at the same address.
    pub fn restart(&mut self) {
        std::fs::remove_file(self.socket()).unwrap();
        self.child = spawn(self.folder.path());
    }

    /// It accepts connections and bytes, and does nothing with them. Returns when all of its threads stand still.
    pub fn stop(&self) {
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::STOP).unwrap();
        waitpid(Some(process), WaitOptions::UNTRACED).unwrap();
    }

    /// It goes on.
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on a TCP port that the system chose.
#[derive(Debug)]
pub struct TcpServer {
    child: Child,
    _folder: TempDir,
    /// That port.
    pub port: u16,
}

impl TcpServer {
    /// Starts it.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ports = folder.path().join("ports");
        let mut command = command();
        command.args(["-l", "127.0.0.1", "-p", "-1"]).env("MEMCACHED_PORT_FILENAME", &ports);
        let child = command.spawn().expect(MISSING);
        let port = patiently(|| {
            let text = std::fs::read_to_string(&ports).ok()?;
            text.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.parse().ok())
        });
        Self { child, _folder: folder, port }
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection without a client.
#[derive(Debug)]
pub struct Raw(UnixStream);

impl Raw {
    /// Sends `request`, and reads up to the end of a line that is one of the ends of replies.
    pub fn ask(&mut self, request: &str) -> String {
        self.0.write_all(request.as_bytes()).unwrap();
        let (mut reply, mut piece) = (Vec::new(), [0; 65_536]);
        loop {
            let read = self.0.read(&mut piece).unwrap();
            assert!(read > 0, "the server has closed");
            reply.extend_from_slice(&piece[..read]);
            let ends =
                [&b"END\r\n"[..], b"STORED\r\n", b"DELETED\r\n", b"NOT_FOUND\r\n", b"OK\r\n", b"HD\r\n"];
            let is_meta = reply.starts_with(b"HD ") && reply.ends_with(b"\r\n");
            if is_meta || ends.iter().any(|end| reply.ends_with(end)) {
                return String::from_utf8_lossy(&reply).into_owned();
            }
        }
    }

    /// Puts a value there.
    pub fn set(&mut self, key: &str, flags: u32, expires: u64, value: &[u8]) {
        let head = format!("set {key} {flags} {expires} {}\r\n", value.len());
        self.0.write_all(head.as_bytes()).unwrap();
        self.0.write_all(value).unwrap();
        assert_eq!(self.ask("\r\n"), "STORED\r\n");
    }

    /// Connections of the server, this one left out.
    pub fn others(&mut self) -> u32 {
        let stats = self.ask("stats\r\n");
        let line = stats.lines().find_map(|line| line.strip_prefix("STAT curr_connections ")).unwrap();
        line.parse::<u32>().unwrap() - 1
    }
}

const MISSING: &str = "memcached, of Debian's package `memcached`";

fn command() -> Command {
    let mut command = Command::new("memcached");
    // Only root may say who it is, and has to.
    command.args(["-u", "root", "-U", "0", "-m", "64"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn spawn(folder: &Path) -> Child {
    let socket = folder.join("socket");
    let child = command().arg("-s").arg(&socket).spawn().expect(MISSING);
    patiently(|| UnixStream::connect(&socket).ok());
    child
}

fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "memcached does not start");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
