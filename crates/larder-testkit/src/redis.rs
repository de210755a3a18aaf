//! Debian's redis-server, started on a Unix socket of its own or on a free port.
//!
//! In: the program `redis-server` on the search path (`make units` installs it). Out: a server that a test may stop, kill and start
//! again, and a connection to it without any client. It keeps nothing on disks, and ends with its value.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::other_time::OtherTime;

/// A server on a Unix socket, ended with this value.
#[derive(Debug)]
pub struct RedisServer {
    child: Child,
    folder: TempDir,
    options: Vec<String>,
}

impl RedisServer {
    /// Starts it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further options, such as `--requirepass`.
    pub fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let child = spawn(folder.path(), &options);
        Self { child, folder, options }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// A connection of the test's own.
    pub fn raw(&self) -> RawRedis {
        RawRedis::over(UnixStream::connect(self.socket()).unwrap())
    }

    /// The names that a pattern matches, in order.
    pub fn names(&self, pattern: &str) -> Vec<String> {
        let names = self.raw().ask_list(&[b"KEYS", pattern.as_bytes()]).unwrap();
        let mut names: Vec<String> = names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
        names.sort();
        names
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, empty, at the same address.
    pub fn restart(&mut self) {
        std::fs::remove_file(self.socket()).unwrap();
        self.child = spawn(self.folder.path(), &self.options);
    }

    /// It accepts connections and bytes, and does nothing with them. Returns when all of its threads stand still.
    pub fn stop(&self) {
        stop(&self.child);
    }

    /// It goes on.
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on a TCP port that was free.
#[derive(Debug)]
pub struct RedisOnPort {
    child: Child,
    folder: TempDir,
    /// That port.
    pub port: u16,
}

impl RedisOnPort {
    /// Starts it. It cannot choose a port itself, so another one is tried where somebody else was faster.
    pub fn start() -> Self {
        Self::start_with("--port", &[])
    }

    /// The same with further options. `port` is the option that its port follows: `--port`, or `--tls-port`.
    pub fn start_with(port: &str, options: &[&str]) -> Self {
        Self::started(|command, number| {
            command.args(["--bind", "127.0.0.1", port, &number.to_string()]).args(options);
        })
    }

    /// Starts it so many seconds later, or earlier.
    pub fn start_in(time: &OtherTime, seconds: i64) -> Self {
        Self::started(|command, number| {
            command.args(["--bind", "127.0.0.1", "--port", &number.to_string()]);
            time.applies_to(command, seconds);
        })
    }

    /// Starts another program that takes the same options.
    pub fn of_program(OfProgram(program): OfProgram<'_>) -> Self {
        Self::started(|command, number| {
            let mut other = Command::new(program);
            other.args(command.get_args()).args(["--bind", "127.0.0.1", "--port", &number.to_string()]);
            other.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            *command = other;
        })
    }

    /// A node that is to become part of a cluster.
    pub fn start_node() -> Self {
        Self::start_node_with(&[])
    }

    /// The same with further options.
    pub fn start_node_with(further: &[&str]) -> Self {
        Self::started(|command, number| {
            // The port of the nodes among each other is otherwise 10 000 above, which is none for half of the free ports.
            let bus = free_port().to_string();
            command.args(["--bind", "127.0.0.1", "--port", &number.to_string()]);
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus]);
            command.args(["--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"]).args(further);
        })
    }

    /// A Sentinel that watches over the master `main` at this port, and takes it for dead after a second without an answer.
    pub fn start_sentinel(master: u16, quorum: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("sentinel.conf");
        let said = format!(
            "sentinel monitor main 127.0.0.1 {master} {quorum}\nsentinel down-after-milliseconds main 1000\n\
             sentinel failover-timeout main 5000\n"
        );
        std::fs::write(&config, said).unwrap();
        let mut sentinel = Self::started(|command, number| {
            *command = Command::new("redis-server");
            command.arg(&config).args(["--sentinel", "--bind", "127.0.0.1", "--port", &number.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        });
        sentinel.folder = folder;
        sentinel
    }

    fn started(say: impl Fn(&mut Command, u16)) -> Self {
        let folder = folder_in_memory();
        for _ in 0..20 {
            let (port, socket) = (free_port(), folder.path().join("socket"));
            let mut command = command(folder.path());
            say(&mut command, port);
            command.arg("--unixsocket").arg(&socket);
            let mut child = command.spawn().expect(MISSING);
            // Whoever accepts connections at the port may be another server that was faster. A reply at a socket that only this one knows
            // comes after it has all of its ports.
            let is_up = patiently(|| match child.try_wait().unwrap() {
                Some(_) => Some(false),
                None => replies(&socket).then_some(true),
            });
            if is_up {
                return Self { child, folder, port };
            }
        }
        panic!("no port is free");
    }

    /// A connection of the test's own.
    pub fn raw(&self) -> RawRedis<TcpStream> {
        RawRedis::over(TcpStream::connect(("127.0.0.1", self.port)).unwrap())
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Where it may leave files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// It accepts connections and bytes, and does nothing with them. Returns when all of its threads stand still.
    pub fn stop(&self) {
        stop(&self.child);
    }

    /// It goes on.
    pub fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }
}

/// Another program than Debian's `redis-server`, by its path.
#[derive(Clone, Copy, Debug)]
pub struct OfProgram<'a>(pub &'a Path);

/// twemproxy (Debian's package `nutcracker`) before a server: it knows the commands of one key, and closes connections at others.
#[derive(Debug)]
pub struct Twemproxy {
    child: Child,
    _folder: TempDir,
    /// Where it listens.
    pub port: u16,
}

impl Twemproxy {
    /// Starts it; `None` where it is not installed.
    pub fn start(server: u16) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            let port = free_port();
            let config = folder.path().join("nutcracker.yml");
            let said = format!(
                "pool:\n  listen: 127.0.0.1:{port}\n  redis: true\n  servers:\n   - 127.0.0.1:{server}:1\n"
            );
            std::fs::write(&config, said).unwrap();
            let mut command = Command::new("nutcracker");
            // It has figures on a port of their own.
            command
                .arg("-c")
                .arg(&config)
                .args(["-a", "127.0.0.1", "-s", &free_port().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let mut child = command.stderr(Stdio::null()).spawn().ok()?;
            let is_up = patiently(|| match child.try_wait().unwrap() {
                Some(_) => Some(false),
                None => TcpStream::connect(("127.0.0.1", port)).ok().map(|_| true),
            });
            if is_up {
                return Some(Self { child, _folder: folder, port });
            }
        }
        panic!("no port is free");
    }
}

impl Drop for Twemproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cluster's node writes its table through to the disk, and answers nobody meanwhile. A disk that a build keeps busy makes that seconds.
fn folder_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Whether a server replies at this socket, whatever it says.
fn replies(socket: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        stream.read(&mut [0; 64])
    };
    ask().is_ok_and(|read| read > 0)
}

/// A port that is free at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns when all threads of a process stand still.
fn stop(child: &Child) {
    let process = Pid::from_child(child);
    kill_process(process, Signal::STOP).unwrap();
    waitpid(Some(process), WaitOptions::UNTRACED).unwrap();
}

impl Drop for RedisOnPort {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection without a client.
#[derive(Debug)]
pub struct RawRedis<S = UnixStream> {
    stream: S,
    read: Vec<u8>,
}

impl<S: Read + Write> RawRedis<S> {
    fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Sends a command, and reads its reply (no list): a line, or the bytes of a string; `None` where there is no string.
    pub fn ask(&mut self, command: &[&[u8]]) -> Option<Vec<u8>> {
        let mut request = format!("*{}\r\n", command.len()).into_bytes();
        for word in command {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> Option<Vec<u8>> {
        let line = self.line();
        match line.strip_prefix('$') {
            Some("-1") => None,
            Some(length) => {
                let length: usize = length.parse().unwrap();
                while self.read.len() < length + 2 {
                    self.more();
                }
                Some(self.read.drain(..length + 2).take(length).collect())
            }
            None => Some(line.into_bytes()),
        }
    }

    /// Sends a command that is answered with a flat list of strings, and reads them.
    ///
    /// # Errors
    /// The text of the server's error.
    pub fn ask_list(&mut self, command: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
        let line = String::from_utf8(self.ask(command).unwrap()).unwrap();
        let Some(count) = line.strip_prefix('*') else { return Err(line) };
        let count: usize = count.parse().unwrap();
        Ok((0..count).map(|_| self.reply().unwrap()).collect())
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\r\n") {
                return String::from_utf8(self.read.drain(..end + 2).take(end).collect()).unwrap();
            }
            self.more();
        }
    }

    fn more(&mut self) {
        let mut piece = [0; 65_536];
        let read = self.stream.read(&mut piece).unwrap();
        assert!(read > 0, "the server has closed");
        self.read.extend_from_slice(&piece[..read]);
    }

    /// Puts a value there until it is removed.
    pub fn set(&mut self, key: &str, value: &[u8]) {
        assert_eq!(self.ask(&[b"SET", key.as_bytes(), value]).as_deref(), Some(&b"+OK"[..]));
    }

    /// Puts a value there for so many milliseconds.
    pub fn set_for(&mut self, key: &str, millis: u64, value: &[u8]) {
        let millis = millis.to_string();
        let command = [&b"SET"[..], key.as_bytes(), value, b"PX", millis.as_bytes()];
        assert_eq!(self.ask(&command).as_deref(), Some(&b"+OK"[..]));
    }

    /// The value that lies there.
    pub fn get(&mut self, key: &str) -> Option<String> {
        self.ask(&[b"GET", key.as_bytes()]).map(|value| String::from_utf8(value).unwrap())
    }

    /// Removes it.
    pub fn delete(&mut self, key: &str) {
        self.ask(&[b"DEL", key.as_bytes()]);
    }

    /// The milliseconds that it has left: -1 for ever, -2 where there is none.
    pub fn left(&mut self, key: &str) -> i64 {
        let line = String::from_utf8(self.ask(&[b"PTTL", key.as_bytes()]).unwrap()).unwrap();
        line.strip_prefix(':').unwrap().parse().unwrap()
    }

    /// Connections of the server, this one left out.
    pub fn others(&mut self) -> u32 {
        let told = String::from_utf8(self.ask(&[b"INFO", b"clients"]).unwrap()).unwrap();
        let line = told.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap();
        line.trim().parse::<u32>().unwrap() - 1
    }
}

const MISSING: &str = "redis-server, of Debian's package `redis-server`";

fn command(folder: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--dir"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn spawn(folder: &Path, options: &[String]) -> Child {
    let socket = folder.join("socket");
    let mut command = command(folder);
    command.args(["--port", "0", "--unixsocket"]).arg(&socket).args(options);
    let child = command.spawn().expect(MISSING);
    patiently(|| UnixStream::connect(&socket).ok());
    child
}

fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "redis-server does not start");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
