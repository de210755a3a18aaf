//! A larder of its own process, watched from outside: what it says, what it counts, what it holds, how it ends.
//!
//! In: arguments. Out: a [`Process`] whose lines can be waited for and whose figures can be compared. Every wait is
//! on an event or a condition and has a bound; ports are free ones, read from what larder prints. A process is
//! signalled through its pidfd, so never another one that got its number, and is killed when the test ends.
#![allow(dead_code, reason = "each test target uses its own part")]

mod metrics;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use larder_testkit::client::{Connection, Request, Response};
use larder_testkit::origin::{Answer, PathScript};
use larder_testkit::seeded;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use tokio::sync::watch;

pub(crate) use metrics::Metrics;
pub(crate) use rustix::process::Signal;

/// The most that any single wait of these tests takes.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// What has to be as before once nothing runs any more.
const GAUGES: [&str; 6] = [
    "larder_connections_open",
    "larder_origin_connections",
    "larder_origin_in_flight",
    "larder_flights",
    "larder_flights_waiting",
    "larder_tasks",
];

/// Waits until `holds`, asking again and again; fails with `what` after [`BOUND`].
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    until_within(BOUND, what, holds).await;
}

/// The same for what other programs take longer for.
pub(crate) async fn until_within(bound: Duration, what: &str, holds: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < bound, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for `future`; fails with `what` after [`BOUND`].
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(BOUND, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long for {what}"),
    }
}

/// Lines as they come, and whether their end has come.
type Lines = watch::Receiver<(Vec<String>, bool)>;

fn collect(
    pipe: impl Read + Send + 'static,
    stall_after: Option<&'static str>,
) -> (Lines, watch::Sender<()>) {
    let (said, lines) = watch::channel((Vec::new(), false));
    let (hold, held) = watch::channel(());
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            let stall = stall_after.is_some_and(|end| text.contains(end));
            said.send_modify(|(lines, _)| lines.push(text));
            line.clear();
            if stall {
                // The pipe stays open and nobody reads it, until the process is let go.
                while held.has_changed().is_ok() {
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                return;
            }
        }
        said.send_modify(|(_, ended)| *ended = true);
    });
    (lines, hold)
}

/// A larder that runs, or ran.
pub(crate) struct Process {
    pub(crate) pid: u32,
    handle: OwnedFd,
    exit: watch::Receiver<Option<ExitStatus>>,
    out: Lines,
    err: Lines,
    _held: [watch::Sender<()>; 2],
    /// Where it listens first; port 0 before it has said so.
    pub(crate) addr: SocketAddr,
    pub(crate) admin: SocketAddr,
}

const NOWHERE: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0));
const GREETED: &str = "Ctrl-C ends";

impl Process {
    /// Starts the binary with `arguments`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(arguments);
        Self::spawn(command, None)
    }

    /// Starts it and waits until it has said where it is. Listeners and admin are on free ports.
    pub(crate) async fn run(arguments: &[&str]) -> Self {
        let free = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut process = Self::start(&[&["run"], arguments, &free].concat());
        process.greeted().await;
        process
    }

    /// The same with a config file, which says all of that itself.
    pub(crate) async fn run_config(path: &std::path::Path) -> Self {
        let mut process = Self::start(&["run", "-c", path.to_str().unwrap()]);
        process.greeted().await;
        process
    }

    /// The same, but nobody reads its standard output after the greeting.
    pub(crate) async fn run_unread(path: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["run", "-c", path.to_str().unwrap()]);
        let mut process = Self::spawn(command, Some(GREETED));
        process.greeted().await;
        process
    }

    /// Starts any command that becomes a larder by `exec`.
    pub(crate) fn spawn(mut command: Command, stall_after: Option<&'static str>) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::begin(command, stall_after)
    }

    /// The same, with outputs of the test's own. One that is not piped to here has no lines.
    pub(crate) fn spawn_with(mut command: Command, stdout: Stdio, stderr: Stdio) -> Self {
        command.stdout(stdout).stderr(stderr);
        Self::begin(command, None)
    }

    fn begin(mut command: Command, stall_after: Option<&'static str>) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        // Its copies of what the test gave it are the child's alone from here on.
        drop(command);
        let pid = child.id();
        let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let piped = |pipe: Option<Box<dyn Read + Send>>| pipe.unwrap_or_else(|| Box::new(std::io::empty()));
        let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as _);
        let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as _);
        let (out, out_held) = collect(piped(stdout), stall_after);
        let (err, err_held) = collect(piped(stderr), None);
        let (exited, exit) = watch::channel(None);
        std::thread::spawn(move || exited.send_replace(child.wait().ok()));
        Self { pid, handle, exit, out, err, _held: [out_held, err_held], addr: NOWHERE, admin: NOWHERE }
    }

    /// Waits for the end of the greeting and reads the addresses from it.
    pub(crate) async fn greeted(&mut self) {
        let mut out = self.out.clone();
        let greeted =
            |(lines, ended): &(Vec<String>, bool)| *ended || lines.iter().any(|line| line.contains(GREETED));
        let lines = within("the greeting", out.wait_for(greeted)).await.unwrap().0.clone();
        let address = |mark: &str| {
            let line = lines.iter().find_map(|line| Some(line.split_once(mark)?.1));
            let line =
                line.unwrap_or_else(|| panic!("no {mark:?} in {lines:?}; stderr: {:?}", self.stderr()));
            let line = line.trim_start_matches("http").trim_start_matches('s').trim_start_matches("://");
            let address = line.split([',', '/', ' ']).next().unwrap();
            address.parse().unwrap_or_else(|_| panic!("{address:?} is no address"))
        };
        (self.addr, self.admin) = (address("listens on "), address("admin: "));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.handle, signal).unwrap();
    }

    /// Has it stand still. Returns when all of its threads do.
    pub(crate) async fn stopped(&self) {
        self.signal(Signal::STOP);
        let stands = |status: String| status.lines().any(|line| line.starts_with("State:\tT"));
        let tasks = format!("/proc/{}/task", self.pid);
        until("it stands still", async || {
            let mut threads = std::fs::read_dir(&tasks).unwrap();
            threads.all(|thread| {
                std::fs::read_to_string(thread.unwrap().path().join("status")).is_ok_and(stands)
            })
        })
        .await;
    }

    /// Waits for its end: the exit code.
    pub(crate) async fn end(&mut self) -> i32 {
        let status = within("the end of larder", self.exit.wait_for(Option::is_some)).await;
        let status = status.unwrap().unwrap();
        for lines in [&mut self.out, &mut self.err] {
            // A stalled reader never says that the end has come.
            let _ =
                tokio::time::timeout(Duration::from_millis(500), lines.wait_for(|(_, ended)| *ended)).await;
        }
        status.code().unwrap_or_else(|| panic!("{status}; stderr: {:?}", self.stderr()))
    }

    /// Waits until it is gone, however it ended.
    pub(crate) async fn gone(&mut self) {
        within("the end of larder", self.exit.wait_for(Option::is_some)).await.unwrap();
    }

    pub(crate) fn is_running(&self) -> bool {
        self.exit.borrow().is_none()
    }

    pub(crate) fn stdout(&self) -> Vec<String> {
        self.out.borrow().0.clone()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.err.borrow().0.clone()
    }

    /// Waits for a line on stderr that contains `text`.
    pub(crate) async fn says(&self, text: &str) {
        said(&self.err, text).await;
    }

    /// Waits for a line on stdout that contains `text`.
    pub(crate) async fn prints(&self, text: &str) {
        said(&self.out, text).await;
    }

    /// The text of `/metrics`.
    pub(crate) async fn metrics(&self) -> Metrics {
        self.metrics_over(&mut connect(self.admin).await).await
    }

    async fn metrics_over(&self, admin: &mut Connection) -> Metrics {
        let response = admin.exchange(&asking("/metrics")).await.unwrap();
        assert_eq!(response.status, 200, "{response}");
        Metrics::read(String::from_utf8(response.body).unwrap())
    }

    /// The gauges of [`GAUGES`] and the number of descriptors, once that number has come to rest.
    pub(crate) async fn usage(&self) -> BTreeMap<&'static str, u64> {
        // It stays open until the descriptors are counted. Closed before, it would be counted or not, by how busy the
        // machine is; those of earlier scrapes were closed before this one was answered.
        let mut scrape = connect(self.admin).await;
        let metrics = self.metrics_over(&mut scrape).await;
        let mut usage: BTreeMap<_, _> =
            GAUGES.into_iter().map(|family| (family, metrics.sum(family))).collect();
        let (mut last, mut times) = (0, 0);
        // What else is on its way to be closed goes meanwhile.
        for _ in 0..400 {
            let now = self.descriptors();
            times = if now == last { times + 1 } else { 0 };
            last = now;
            if times == 8 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        usage.insert("descriptors", last);
        usage
    }

    /// What it has of the machine's memory at this moment.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }

    /// What it uses at the start, once every worker accepts. The first has tasks beside that: it looks after the origins.
    pub(crate) async fn idle_usage(&self) -> BTreeMap<&'static str, u64> {
        until("every worker accepts", async || {
            let metrics = self.metrics().await;
            let samples = metrics.samples();
            let of_family =
                |family: &'static str| samples.iter().filter(move |(name, _)| name.starts_with(family));
            let tending = 1.0 + of_family("larder_origin_in_flight{").count() as f64;
            of_family("larder_tasks{")
                .all(|(name, tasks)| *tasks >= 1.0 + if name.contains("\"0\"") { tending } else { 0.0 })
        })
        .await;
        self.usage().await
    }

    /// Waits until everything is as it was in `before`.
    pub(crate) async fn comes_back_to(&self, before: &BTreeMap<&'static str, u64>) {
        let started = Instant::now();
        loop {
            let now = self.usage().await;
            if now == *before {
                return;
            }
            assert!(started.elapsed() < BOUND, "leaked: {before:?} became {now:?}");
        }
    }

    /// Open ones, but for those that the store keeps of what is hot: they are bounded, and go with that.
    fn descriptors(&self) -> u64 {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).unwrap();
        let is_hot_body = |entry: &std::fs::DirEntry| {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            target.to_string_lossy().starts_with("/memfd:larder-body")
        };
        all.filter(|entry| !entry.as_ref().is_ok_and(is_hot_body)).count() as u64
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Where it has ended already there is nothing to kill.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

async fn said(lines: &Lines, text: &str) {
    let has = |(lines, _): &(Vec<String>, bool)| lines.iter().any(|line| line.contains(text));
    let mut watched = lines.clone();
    let told = tokio::time::timeout(BOUND, watched.wait_for(has)).await;
    assert!(matches!(told, Ok(Ok(_))), "nobody said {text:?}: {:?}", lines.borrow().0);
}

/// A connection to larder.
pub(crate) async fn connect(addr: SocketAddr) -> Connection {
    Connection::open(addr, BOUND).await.unwrap()
}

/// A plain GET, for a host that the admin takes as well.
pub(crate) fn asking(target: &str) -> Request {
    Request::new("GET", target, "localhost")
}

/// GET over a connection of its own.
pub(crate) async fn get(addr: SocketAddr, target: &str) -> Response {
    connect(addr).await.exchange(&asking(target)).await.unwrap()
}

/// Cache-Status as sent.
pub(crate) fn cache_status(response: &Response) -> &str {
    response.fields.first("cache-status").unwrap_or("")
}

/// A script for `path` that answers a cacheable body of `bytes`, derived from the target.
pub(crate) fn cacheable(path: &str, bytes: u64) -> PathScript {
    script(path, answer_of(&["Cache-Control: max-age=3600"], bytes))
}

pub(crate) fn answer_of(fields: &[&str], bytes: u64) -> Answer {
    Answer {
        fields: fields.iter().map(|&line| line.to_owned()).collect(),
        bytes: Some(bytes),
        ..Answer::default()
    }
}

pub(crate) fn script(path: &str, answer: Answer) -> PathScript {
    PathScript::new(path, [answer])
}

/// Whether `response` is the whole body of `bytes` bytes that belongs to `target`.
#[track_caller]
pub(crate) fn assert_whole(response: &Response, target: &str, bytes: u64) {
    assert_eq!(response.status, 200, "{target}: {response}");
    assert_eq!(response.end, larder_testkit::client::End::Complete, "{target}: {response}");
    assert!(response.body == seeded::bytes_of(target, 0, bytes), "{target}: another body: {response}");
}

/// A config with one origin on free ports; `top` are lines before the first table, `site` lines of the site.
/// Unused origin connections go soon, so that a test need not wait for them.
pub(crate) fn config(origin: &str, top: &str, site: &str) -> String {
    format!(
        "{top}\nlisten = [\"127.0.0.1:0\"]\nadmin = \"127.0.0.1:0\"\n\
         [origins.app]\nservers = [\"{origin}\"]\nidle = \"100ms\"\n[[site]]\norigin = \"app\"\n{site}\n"
    )
}

/// That config with `keys` in the table of the admin address.
pub(crate) fn with_admin(config: &str, keys: &str) -> String {
    config.replace("admin = \"127.0.0.1:0\"", &format!("admin = {{ address = \"127.0.0.1:0\", {keys} }}"))
}

/// A directory for the test's files, and a config in it.
pub(crate) fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("larder.toml");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}
