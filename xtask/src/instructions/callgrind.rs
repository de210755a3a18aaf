//! A larder whose instructions are counted.
//!
//! In: the program and its config. Out: an address to ask, and at the end the number of instructions that all of its
//! threads executed from the first to the last. Callgrind runs threads one at a time on a processor of its own making:
//! what it counts does not depend on other programs, but what larder does may, by the order in which things reach it.
//! So whoever speaks to it waits until every thread of it sleeps ([`Idle`]): no answer or request comes while it still
//! works on what came before, and each takes the same way.
//! Deliberately absent: who executed them. `callgrind_annotate` on a run by hand says that.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::children::{Server, sleeps};

/// Longest start.
const READY_MAX: Duration = Duration::from_secs(60);

/// Longest work on a single request.
const WORK_MAX: Duration = Duration::from_secs(20);

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
    pub(super) fn wait(&self) -> Result<()> {
        let pid = self.pid.load(Ordering::Relaxed);
        let deadline = Instant::now() + WORK_MAX;
        while pid != 0 && !sleeps(pid) {
            ensure!(Instant::now() < deadline, "larder is gone or does not come to rest");
            thread::yield_now();
        }
        Ok(())
    }
}

/// A larder under callgrind.
pub(super) struct Counted {
    server: Server,
    pub(super) idle: Idle,
    count: PathBuf,
}

impl Counted {
    /// Starts `program` with `config`, which has to listen at `listen`, and waits until it does. Callgrind writes
    /// into `folder`.
    pub(super) fn start(
        program: &Path,
        config: &Path,
        listen: SocketAddr,
        folder: &Path,
        idle: Idle,
    ) -> Result<Self> {
        let count = folder.join("callgrind.out");
        let mut server = Server::start(
            "larder under callgrind",
            Command::new("valgrind")
                .args(["--quiet", "--tool=callgrind"])
                .arg(format!("--callgrind-out-file={}", count.display()))
                .arg(program)
                .args(["run", "--workers", "1", "--listen", &listen.to_string(), "-c"])
                .arg(config)
                .stdout(Stdio::null()),
        )?;
        server.wait_listening(READY_MAX)?;
        idle.pid.store(server.id(), Ordering::Relaxed);
        Ok(Self { server, idle, count })
    }

    /// Ends it: the instructions of its whole life. Connections to it have to be closed, or it waits for them.
    pub(super) fn end(mut self) -> Result<u64> {
        self.idle.wait()?;
        self.server.still_runs()?;
        drop(self.server);
        let count = fs::read_to_string(&self.count).context("callgrind left no count")?;
        total(&count).context("no total in callgrind's output")
    }
}

/// The sum over everything that callgrind wrote.
fn total(count: &str) -> Option<u64> {
    let total = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
    count.lines().rev().find_map(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total("events: Ir\nsummary: 7\n\nfn=(1)\n2 3\n\ntotals: 41036189\n"), Some(41_036_189));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn without_a_process_nobody_waits() {
        assert!(Idle::default().wait().is_ok());
    }
}
