//! What the machine did during a run: time that the hypervisor took, and connections that were opened.
//!
//! In: /proc/stat and /proc/net/snmp at two moments. Out: the difference. Both are of the whole machine (of its network
//! namespace): what other programs do meanwhile is in it, and refuses a run as it should.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::contender::{LOAD_CORE, SERVER_CORE};

/// Counters at one moment.
pub(super) struct Moment {
    at: Instant,
    /// Of the servers' core and of the load's.
    steal: [Duration; 2],
    opened: u64,
}

/// What happened since a moment.
pub(super) struct Passed {
    /// Of the time that went by, what the hypervisor took from either core: the larger of both shares, in percent.
    pub(super) steal_percent: f64,
    /// TCP connections opened, by whomever.
    pub(super) opened: u64,
}

impl Moment {
    /// Now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(super) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let steal = |core| steal(&stat, core).with_context(|| format!("no steal of core {core}"));
        let snmp = fs::read_to_string("/proc/net/snmp").context("/proc/net/snmp")?;
        Ok(Self {
            at: Instant::now(),
            steal: [steal(SERVER_CORE)?, steal(LOAD_CORE)?],
            opened: opened(&snmp).context("no ActiveOpens")?,
        })
    }

    /// From this moment until now.
    pub(super) fn passed(&self) -> Result<Passed> {
        let now = Self::now()?;
        let length = now.at.duration_since(self.at).as_secs_f64();
        let share = |core: usize| {
            let [before, after] =
                [self, &now].map(|moment| moment.steal.get(core).copied().unwrap_or_default());
            100.0 * after.saturating_sub(before).as_secs_f64() / length
        };
        Ok(Passed { steal_percent: share(0).max(share(1)), opened: now.opened.saturating_sub(self.opened) })
    }
}

/// The eighth figure of a core's line: user, nice, system, idle, iowait, irq, softirq, steal.
fn steal(stat: &str, core: usize) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{core} ")))?;
    // In ticks of 1/100 s on every Linux (USER_HZ).
    Some(Duration::from_millis(10 * line.split_whitespace().nth(7)?.parse::<u64>().ok()?))
}

/// `ActiveOpens` of the two lines that begin with `Tcp:`, names and figures.
fn opened(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let place = lines.next()?.split(' ').position(|name| name == "ActiveOpens")?;
    lines.next()?.split(' ').nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_kernel_s_tables_are_read() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 80 0 0\ncpu10 1\n";
        assert_eq!(steal(stat, 0), Some(Duration::from_millis(80)));
        assert_eq!(steal(stat, 1), Some(Duration::from_millis(800)));
        assert_eq!(steal(stat, 10), None);
        assert_eq!(steal(stat, 2), None);
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 43 21\nUdp: 1\n";
        assert_eq!(opened(snmp), Some(43));
        assert_eq!(opened("Tcp: RtoMin\nTcp: 1\n"), None);
    }

    #[test]
    fn a_connection_is_seen_to_be_opened() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = Moment::now().unwrap();
        drop(std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        assert!(before.passed().unwrap().opened >= 1);
    }
}
