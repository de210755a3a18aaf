//! Programs that a check starts: each in a process group of its own, each with a time limit, each ended by its id.
//!
//! In: a command. Out: a [`Server`] that is ended when it is dropped, or the exit status of a program that had to end
//! by itself. A group and not a single process, because `sh` and `make` have children of their own. What this program
//! cannot end any more, because it was killed, orphans.rs ends.
//! Deliberately absent: ending anything by name.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::orphans::{Watched, terminate};

/// How long a server may take to end after TERM before it is killed.
pub const GRACE: Duration = Duration::from_secs(10);

/// Where Debian has servers. They are not on the search path of an ordinary user, who may run them all the same.
const SERVER_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// A program that runs on until it is dropped.
pub struct Server {
    name: String,
    child: Child,
    _watched: Watched,
}

impl Server {
    /// Starts `command` in a process group of its own. `name` is for messages.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let (child, watched) = spawn(command).with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), child, _watched: watched })
    }

    /// Waits until somebody accepts connections at `address`.
    ///
    /// # Errors
    /// The server ended, or `limit` passed.
    pub fn wait_for(&mut self, address: SocketAddr, limit: Duration) -> Result<()> {
        self.wait_until(limit, |_| TcpStream::connect(address).is_ok())
    }

    /// Waits until a process of the group listens on any TCP port.
    ///
    /// # Errors
    /// The server ended, or `limit` passed.
    pub fn wait_listening(&mut self, limit: Duration) -> Result<()> {
        self.wait_until(limit, |group| members(group).iter().any(|pid| listens(*pid)))
    }

    fn wait_until(&mut self, limit: Duration, ready: impl Fn(u32) -> bool) -> Result<()> {
        let deadline = Instant::now() + limit;
        while !ready(self.child.id()) {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended before it was ready: {status}", self.name);
            }
            if Instant::now() > deadline {
                bail!("{} is not ready after {} s", self.name, limit.as_secs());
            }
            pause();
        }
        Ok(())
    }

    /// Fails when the server has ended.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself: {status}", self.name),
        }
    }

    /// Ends it as a crash would, with all of its group: KILL, and no word before. It is gone when this returns, or
    /// [`GRACE`] has passed.
    pub fn kill(mut self) {
        let (group, deadline) = (Pid::from_child(&self.child), Instant::now() + GRACE);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        // Children of the child are waited for by others.
        while !members(self.child.id()).is_empty() && Instant::now() < deadline {
            pause();
        }
    }

    /// The process that was started, which leads its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// User and system time of all processes of the group so far.
    pub fn cpu_time(&self) -> Duration {
        // The kernel reports in ticks of 1/100 s on every Linux (USER_HZ).
        let ticks: u64 = members(self.child.id()).iter().filter_map(|pid| ticks(*pid)).sum();
        Duration::from_millis(ticks * 10)
    }

    /// User and system time of each thread of the group so far.
    pub fn threads_cpu_time(&self) -> Vec<Duration> {
        let mut times = Vec::new();
        for pid in members(self.child.id()) {
            let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for thread in threads.flatten() {
                let ticks = stat_at(&thread.path().join("stat")).and_then(|fields| ticks_in(&fields));
                times.push(Duration::from_millis(ticks.unwrap_or(0) * 10));
            }
        }
        times
    }

    /// The same by the threads' names, to the nanosecond, where the kernel keeps such an account (`/proc/PID/schedstat`).
    pub fn named_threads_cpu_time(&self) -> Vec<(String, Duration)> {
        let mut times = Vec::new();
        for pid in members(self.child.id()) {
            let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for thread in threads.flatten() {
                let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
                let ran = read("schedstat").split(' ').next().and_then(|ns| ns.parse().ok());
                if let Some(ran) = ran {
                    times.push((read("comm").trim_end().to_owned(), Duration::from_nanos(ran)));
                }
            }
        }
        times
    }

    /// What all processes of the group have in memory together; a page that two of them share counts twice.
    pub fn resident_bytes(&self) -> u64 {
        members(self.child.id()).iter().filter_map(|pid| resident(*pid)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Starts `command` in a process group of its own, which does not outlive this program, and with the search path that
/// [`on_path`] looks through unless it has one of its own.
fn spawn(command: &mut Command) -> Result<(Child, Watched)> {
    if !command.get_envs().any(|(name, _)| name == "PATH") {
        command.env("PATH", search_path());
    }
    let child = command.process_group(0).spawn()?;
    let watched = Watched::group(child.id());
    Ok((child, watched))
}

/// Runs `command` to its end.
///
/// # Errors
/// It cannot be started, or runs longer than `limit`; its whole group has been ended then.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let (mut child, _watched) = spawn(command).with_context(|| format!("cannot start {command:?}"))?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            end(&mut child);
            bail!("still running after {} s", limit.as_secs());
        }
        pause();
    }
}

/// What `command` prints before it ends by itself, both streams one after the other where it fails.
///
/// # Errors
/// As for [`run_within`], and a status other than 0.
pub fn output_within(command: &mut Command, limit: Duration) -> Result<String> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let status = run_within(command, limit)?;
    let text = |file: &mut fs::File| -> Result<String> {
        file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let printed = text(&mut out)?;
    ensure!(status.success(), "{status}: {printed}{}", text(&mut err)?.trim_end());
    Ok(printed)
}

/// A port of the loopback interface that was free a moment ago.
pub fn free_port() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?)
}

fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let deadline = Instant::now() + GRACE;
    terminate(group);
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        pause();
    }
    // An error means that the group is gone already, which is what is wanted.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// A short rest between two looks at something.
#[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for other programs")]
pub fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The fields of /proc/PID/stat after the name, which may itself hold spaces: state is the first.
fn stat(pid: u32) -> Option<Vec<String>> {
    stat_at(Path::new(&format!("/proc/{pid}/stat")))
}

fn stat_at(file: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    let (_, after) = text.rsplit_once(") ")?;
    Some(after.split_whitespace().map(str::to_owned).collect())
}

fn members(group: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let group = group.to_string();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| stat(*pid).is_some_and(|fields| fields.get(2) == Some(&group)))
        .collect()
}

/// Whether every thread of `pid` waits for something. Not so for a process that is gone.
pub fn sleeps(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| after.starts_with('S'))
    })
}

fn ticks(pid: u32) -> Option<u64> {
    ticks_in(&stat(pid)?)
}

fn ticks_in(fields: &[String]) -> Option<u64> {
    let user: u64 = fields.get(11)?.parse().ok()?;
    let system: u64 = fields.get(12)?.parse().ok()?;
    Some(user + system)
}

/// `VmRSS`, in bytes.
fn resident(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Whether `pid` holds a listening TCP socket, read from its own network namespace.
fn listens(pid: u32) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let sockets: Vec<String> = open
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let link = link.to_str()?.strip_prefix("socket:[")?;
            Some(link.trim_end_matches(']').to_owned())
        })
        .collect();
    ["tcp", "tcp6"].iter().any(|table| {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let inode = columns.get(9).copied().unwrap_or_default();
            columns.get(3) == Some(&"0A") && sockets.iter().any(|socket| socket == inode)
        })
    })
}

/// Whether a program of this name is on the search path, or where servers are. A whole path is looked for as it stands.
pub fn on_path(program: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| is_file(&folder.join(program)))
}

/// The search path of this process, and after it the folders of servers.
fn search_path() -> OsString {
    with_server_folders(std::env::var_os("PATH").unwrap_or_default())
}

fn with_server_folders(mut path: OsString) -> OsString {
    for folder in SERVER_FOLDERS {
        if !std::env::split_paths(&path).any(|known| known == Path::new(folder)) {
            path.push(":");
            path.push(folder);
        }
    }
    path
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_that_runs_on_is_ended() {
        let mut command = Command::new("sh");
        let failed =
            run_within(command.args(["-c", "sleep 60 & wait"]), Duration::from_millis(50)).unwrap_err();
        assert!(failed.to_string().contains("still running"), "{failed}");
    }

    #[test]
    fn what_a_program_prints_is_had_and_its_failure_tells_why() {
        let shell =
            |script: &str| output_within(Command::new("sh").args(["-c", script]), Duration::from_secs(30));
        assert_eq!(shell("echo one; echo other >&2").unwrap(), "one\n");
        assert!(shell("echo reason >&2; false").unwrap_err().to_string().contains("reason"));
    }

    #[test]
    fn servers_are_found_where_an_ordinary_user_does_not_look() {
        let check = |path: &str, all: &str| assert_eq!(with_server_folders(path.into()), all);
        check("/usr/bin:/bin", "/usr/bin:/bin:/usr/sbin:/sbin");
        check("/sbin:/bin", "/sbin:/bin:/usr/sbin");
        check("/usr/sbin:/sbin", "/usr/sbin:/sbin");
        let mut command = Command::new("sh");
        let printed = output_within(command.args(["-c", "echo $PATH"]), Duration::from_secs(30)).unwrap();
        assert_eq!(printed.trim(), search_path().to_str().unwrap());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $PATH"]).env("PATH", "/nowhere");
        assert_eq!(output_within(&mut command, Duration::from_secs(30)).unwrap().trim(), "/nowhere");
    }

    #[test]
    fn a_server_that_stands_still_is_ended_all_the_same() {
        let mut command = Command::new("sleep");
        let server = Server::start("sleep", command.arg("60")).unwrap();
        kill_process_group(Pid::from_child(&server.child), Signal::STOP).unwrap();
        let (id, deadline) = (server.id(), Instant::now() + GRACE);
        while stat(id).is_none_or(|fields| fields.first().is_none_or(|state| state != "T")) {
            assert!(Instant::now() < deadline, "it does not stand still");
            pause();
        }
        let begun = Instant::now();
        drop(server);
        assert!(begun.elapsed() < GRACE);
    }

    #[test]
    fn a_server_that_is_killed_is_gone_with_its_children() {
        let mut command = Command::new("sh");
        let server = Server::start("sh", command.args(["-c", "trap '' TERM; sleep 60 & wait"])).unwrap();
        let (id, begun) = (server.id(), Instant::now());
        server.kill();
        assert!(begun.elapsed() < GRACE);
        assert_eq!(members(id), Vec::<u32>::new());
    }

    #[test]
    fn this_process_is_seen_to_listen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens(std::process::id()));
        drop(listener);
    }

    #[test]
    fn this_process_has_its_memory() {
        assert!(resident(std::process::id()).unwrap() > 1 << 20);
        assert_eq!(resident(u32::MAX), None);
    }

    #[test]
    fn a_server_that_ends_is_told_from_one_that_is_slow() {
        let mut server = Server::start("false", &mut Command::new("false")).unwrap();
        let failed = server.wait_listening(Duration::from_secs(30)).unwrap_err();
        assert!(failed.to_string().contains("ended before"), "{failed}");
    }
}
