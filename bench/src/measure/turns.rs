//! Servers that take turns on one core: whoever is not on turn stands still.
//!
//! In: a running server. Out: a [`Turn`] at a time, for which it runs. Between its turns the kernel holds its processes
//! (STOP), so that its timers, health checks and cleaning take nothing from the others, and whatever it has left to do
//! is done at its own cost.
//! Deliberately absent: holding the origins. Nobody asks them meanwhile, and they have no timers.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::contender::Contender;

/// From a server's waking to its turn: it does what became due meanwhile, outside of what is counted.
const WAKING: Duration = Duration::from_millis(100);

/// A server that stands still but for its turns. Who ends it wakes it for that (orphans.rs).
pub(super) struct TakesTurns {
    contender: Contender,
    group: Pid,
}

/// A server's turn, which ends when it is dropped.
pub(super) struct Turn<'a>(&'a mut TakesTurns);

impl TakesTurns {
    /// The server stands still from here on.
    pub(super) fn new(contender: Contender) -> Result<Self> {
        let group =
            i32::try_from(contender.server.id()).ok().and_then(Pid::from_raw).context("a process id")?;
        kill_process_group(group, Signal::STOP).with_context(|| contender.name.clone())?;
        Ok(Self { contender, group })
    }

    /// Wakes the server.
    ///
    /// # Errors
    /// It is not there any more.
    pub(super) fn turn(&mut self) -> Result<Turn<'_>> {
        kill_process_group(self.group, Signal::CONT)?;
        wait(WAKING);
        self.contender.server.still_runs()?;
        Ok(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Who has ended is noticed at the next turn.
        let _ = kill_process_group(self.0.group, Signal::STOP);
    }
}

impl Deref for Turn<'_> {
    type Target = Contender;

    fn deref(&self) -> &Contender {
        &self.0.contender
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Contender {
        &mut self.0.contender
    }
}

/// Lets the servers work for so long.
#[expect(clippy::disallowed_methods, reason = "no worker here: a tool that waits for other programs")]
pub(super) fn wait(length: Duration) {
    std::thread::sleep(length);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;
    use std::process::Command;
    use std::time::Instant;

    use super::*;
    use crate::measure::contender::start;

    fn state(pid: u32) -> String {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').next().unwrap().to_owned()
    }

    fn becomes(pid: u32, stopped: bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while (state(pid) == "T") != stopped {
            assert!(Instant::now() < deadline, "{} after 30 s", state(pid));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_server_runs_on_its_turn_only_and_ends_when_it_is_dropped() {
        // The test listens in the place of a server that has nothing to do.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let contender = start("sleep", address, Command::new("sleep").arg("600")).unwrap();
        let pid = contender.server.id();
        let mut taking = TakesTurns::new(contender).unwrap();
        becomes(pid, true);
        let turn = taking.turn().unwrap();
        becomes(pid, false);
        drop(turn);
        becomes(pid, true);
        let began = Instant::now();
        drop(taking);
        // Sooner than the grace after which it would be killed.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
