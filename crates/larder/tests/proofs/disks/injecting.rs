//! System calls of a running larder that fail or wait, as strace makes them.
//!
//! In: a process, and what happens to which of its calls (`pwrite64:error=EIO:when=3+5`). Out: a value for as long as it happens.
//! `None` where there is no strace; one that may not attach has ended.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::mounted::skip;
use crate::support::{BOUND, Process, Signal};

/// strace on a process, until it is dropped.
pub(crate) struct Injecting(Child);

impl Injecting {
    pub(crate) fn into(larder: &Process, what: &str) -> Option<Self> {
        let traced = what.split_once(':')?.0;
        let strace = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-p", &larder.pid.to_string()])
            .args(["-e", &format!("trace={traced}"), "-e", &format!("inject={what}")])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        strace.ok().map(Self)
    }

    /// Lets several things happen, once every thread is traced. Where that cannot be, says so and gives `None`.
    pub(crate) async fn attached(larder: &Process, what: &[&str]) -> Option<Self> {
        let traced: Vec<&str> = what.iter().filter_map(|what| Some(what.split_once(':')?.0)).collect();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-p", &larder.pid.to_string()]);
        strace.args(["-e", &format!("trace={}", traced.join(","))]);
        for what in what {
            strace.args(["-e", &format!("inject={what}")]);
        }
        let Ok(child) = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn() else {
            skip("there is no strace");
            return None;
        };
        let mut injecting = Self(child);
        let started = Instant::now();
        while !is_traced(larder.pid) {
            if injecting.has_ended() {
                skip("strace cannot attach");
                return None;
            }
            assert!(started.elapsed() < BOUND, "strace does not attach");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Some(injecting)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }
}

/// Whether all threads of a process are traced.
fn is_traced(pid: u32) -> bool {
    let Ok(mut threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.all(|thread| {
        let status = thread.and_then(|thread| std::fs::read_to_string(thread.path().join("status")));
        // A thread that has just ended is traced by nobody, and need not be.
        status.map_or(true, |status| !status.lines().any(|line| line == "TracerPid:\t0"))
    })
}

impl Drop for Injecting {
    fn drop(&mut self) {
        // Asked to end it lets the process go on; killed it would as well, but in the middle of a call.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let _ = self.0.wait();
    }
}
