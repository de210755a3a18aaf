//! A larder whose instructions are counted.
//!
//! In: the program and its config. Out: an address to ask, and the number of instructions that all of its threads
//! executed between two moments. Callgrind runs threads one at a time on a processor of its own making:
//! what it counts does not depend on other programs, but what larder does may, by the order in which things reach it.
//! So whoever speaks to it waits until every thread of it sleeps ([`Idle`]): no answer or request comes while it still
//! works on what came before, and each takes the same way. What has to be there all at once, a connection and its
//! request, comes while it is stopped. The environment stays outside: variables and files that valgrind, the
//! allocator or larder would read differ from one user to the next.
//! Deliberately absent: who executed them. `callgrind_annotate` on a run by hand says that.

use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use harness::children::{Server, run_within, sleeps};

/// Longest start.
const READY_MAX: Duration = Duration::from_secs(60);

/// Longest work on a single request.
const WORK_MAX: Duration = Duration::from_secs(20);

/// Between two looks at whether it still works.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// Longest wait for callgrind to do as it is told. It listens while larder works, and is interrupted where that sleeps.
const TOLD_MAX: Duration = Duration::from_secs(20);

/// What callgrind writes at the end, and when it is told to for the first time.
const COUNT: &str = "callgrind.out";
const DUMP: &str = "callgrind.out.1";

/// Waits for a process to have nothing to do; shared with the origin, which is there before the process is.
#[derive(Clone, Default)]
pub(super) struct Idle {
    /// 0 while there is none.
    pid: Arc<AtomicU32>,
}

impl Idle {
    /// Waits until every thread sleeps; at once where there is no process yet.
    ///
    /// # Errors
    /// The process is gone, or worked longer than [`WORK_MAX`].
    #[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for another program")]
    pub(super) fn wait(&self) -> Result<()> {
        let pid = self.pid.load(Ordering::Relaxed);
        let deadline = Instant::now() + WORK_MAX;
        while pid != 0 && !rests(pid) {
            ensure!(Instant::now() < deadline, "larder is gone or does not come to rest");
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Waits, and does `work` while larder is stopped: what the work sends is there as a whole when larder goes on.
    /// At that, its wait for events ends once without one.
    ///
    /// # Errors
    /// As [`Self::wait`], there is no process, or the work failed; larder goes on nevertheless.
    pub(super) fn stopped<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.wait()?;
        let number = self.pid.load(Ordering::Relaxed);
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw).context("no process to stop")?;
        kill_process(pid, Signal::STOP).context("cannot stop larder")?;
        let done = all_stop(number).and_then(|()| work());
        kill_process(pid, Signal::CONT).context("cannot let larder go on")?;
        done
    }
}

/// Whether there was a moment at which every thread of `pid` slept: one that was given a processor as often before it was
/// seen asleep as after it has slept since the first look at it. Asked about one after the other, a thread
/// could be seen asleep and then be woken by the next one. Mostly one of them works, which the first question finds out at less cost.
fn rests(pid: u32) -> bool {
    if !sleeps(pid) {
        return false;
    }
    let before = turns(pid);
    !before.is_empty() && sleeps(pid) && turns(pid) == before
}

/// How often each thread of `pid` was given a processor so far: the third number of proc(5)'s `schedstat`. The number of
/// switches in `status` says the same, among much else.
fn turns(pid: u32) -> Vec<(OsString, Option<u64>)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let number = |stat: String| stat.split_whitespace().nth(2)?.parse().ok();
    let of = |thread: DirEntry| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok();
        (thread.file_name(), stat.and_then(number))
    };
    threads.into_iter().flatten().flatten().map(of).collect()
}

/// Waits until every thread of `pid` is stopped, which each does by itself.
fn all_stop(pid: u32) -> Result<()> {
    let deadline = Instant::now() + WORK_MAX;
    let stopped = |thread: DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| after.starts_with('T'))
    };
    while !fs::read_dir(format!("/proc/{pid}/task")).context("larder is gone")?.flatten().all(stopped) {
        ensure!(Instant::now() < deadline, "larder does not stop");
        thread::yield_now();
    }
    Ok(())
}

/// A larder under callgrind.
pub(super) struct Counted {
    server: Server,
    pub(super) idle: Idle,
    folder: PathBuf,
}

impl Counted {
    /// Starts `program` with `config`, and waits until it listens. Callgrind writes into `folder`.
    pub(super) fn start(program: &Path, config: &Path, folder: &Path, idle: Idle) -> Result<Self> {
        let told = folder.join("told");
        let mut server = Server::start(
            "larder under callgrind",
            Command::new("valgrind")
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap_or_default())
                .args(["--command-line-only=yes", "--quiet", "--tool=callgrind"])
                .arg(format!("--callgrind-out-file={}", folder.join(COUNT).display()))
                .arg(prefix(folder))
                .arg(program)
                .args(["run", "--workers", "1", "-c"])
                .arg(config)
                .stdout(Stdio::null())
                // A line for each purge, among others: nobody reads them but where there is no start.
                .stderr(fs::File::create(&told).context("a file for what larder tells")?),
        )?;
        server
            .wait_listening(READY_MAX)
            .with_context(|| fs::read_to_string(&told).unwrap_or_default().trim_end().to_owned())?;
        idle.pid.store(server.id(), Ordering::Relaxed);
        Ok(Self { server, idle, folder: folder.to_owned() })
    }

    /// What comes from here on is counted, once every thread sleeps.
    pub(super) fn begin(&self) -> Result<()> {
        self.tell("zero")
    }

    /// The instructions since [`Self::begin`], once every thread sleeps.
    pub(super) fn counted(&mut self) -> Result<u64> {
        self.tell("dump")?;
        self.server.still_runs()?;
        let count = fs::read_to_string(self.folder.join(DUMP)).context("callgrind left no count")?;
        total(&count).context("no total in callgrind's output")
    }

    fn tell(&self, what: &str) -> Result<()> {
        self.idle.wait()?;
        let pid = format!("--pid={}", self.server.id());
        let mut tell = Command::new("vgdb");
        tell.arg(prefix(&self.folder)).args([&pid, what]).stdout(Stdio::null()).stderr(Stdio::null());
        let status = run_within(&mut tell, TOLD_MAX)?;
        ensure!(status.success(), "vgdb {what}: {status}");
        Ok(())
    }
}

/// Where valgrind listens for what it is told.
fn prefix(folder: &Path) -> String {
    format!("--vgdb-prefix={}", folder.join("vgdb").display())
}

/// The sum over everything that callgrind wrote.
fn total(count: &str) -> Option<u64> {
    let total = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
    count.lines().rev().find_map(total)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total("events: Ir\nsummary: 7\n\nfn=(1)\n2 3\n\ntotals: 41036189\n"), Some(41_036_189));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn without_a_process_nobody_waits_and_nothing_is_stopped() {
        assert!(Idle::default().wait().is_ok());
        assert!(Idle::default().stopped(|| Ok(())).is_err());
    }

    #[test]
    fn who_works_does_not_rest_and_who_waits_does() {
        assert!(!rests(std::process::id()), "the thread that asks works");
        assert!(!rests(u32::MAX), "nobody is there");
        let waits = Server::start("sleep", Command::new("sleep").arg("60")).unwrap();
        let idle = Idle { pid: Arc::new(waits.id().into()) };
        idle.wait().unwrap();
        assert!(turns(waits.id()).iter().all(|(_, number)| number.is_some()));
    }

    #[test]
    fn work_is_done_while_the_process_is_stopped_and_it_goes_on_after_it() {
        let waits = Server::start("sleep", Command::new("sleep").arg("60")).unwrap();
        let idle = Idle { pid: Arc::new(waits.id().into()) };
        idle.stopped(|| {
            ensure!(!sleeps(waits.id()), "it is stopped, not asleep");
            all_stop(waits.id())
        })
        .unwrap();
        assert!(idle.stopped(|| -> Result<()> { anyhow::bail!("failed") }).is_err());
        idle.wait().unwrap();
    }
}
