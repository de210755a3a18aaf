//! A breaker: a server that fails is left alone until a probe has found it well.
//!
//! In: what became of requests and of attempts to connect, and the time. Out: whether to ask. Workers share it.
//!
//! ```text
//!                5 failures in a row, or a failed connect
//!      closed ------------------------------------------> open, probe after 1 s
//!        ^                                                  |            ^
//!        |  the probe connects and has a reply              v   it fails |  2 s, 4 s .. 30 s
//!        +-------------------------------------------- one probe --------+
//! ```
//!
//! While it is open, a look-up costs one load. The task that looks after the server sends the probe; no request does, so none
//! waits for a server that is known to hang. What comes of requests from before it opened changes nothing.
//! Deliberately absent: a clock, and any I/O.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many failures in a row open it.
const FAILURES: u32 = 5;
/// From opening to the first probe.
const FIRST_PROBE: Duration = Duration::from_secs(1);
/// The longest time between two probes.
const PROBE_MAX: Duration = Duration::from_secs(30);

/// Whether a server is asked. See the head of the file.
#[derive(Debug, Default)]
pub struct Breaker {
    is_open: AtomicBool,
    failures: AtomicU32,
    opened: AtomicU64,
    /// Set while it is open. The lock orders opening and closing.
    probe: Mutex<Option<Probe>>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    at: Instant,
    wait: Duration,
}

impl Breaker {
    /// Whether the server is to be asked now.
    pub fn may_ask(&self) -> bool {
        !self.is_open.load(Ordering::Acquire)
    }

    /// A request had its reply in time.
    pub fn succeeded(&self) {
        // Mostly read, so that workers do not take the line from each other.
        if self.failures.load(Ordering::Relaxed) != 0 && self.may_ask() {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// A request had no reply in time, or its connection broke. True where this has opened the breaker.
    pub fn failed(&self, now: Instant) -> bool {
        self.may_ask() && self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES && self.open(now)
    }

    /// The server could not be connected. True where this has opened the breaker.
    pub fn connect_failed(&self, now: Instant) -> bool {
        self.open(now)
    }

    fn open(&self, now: Instant) -> bool {
        let mut probe = self.probe.lock();
        if probe.is_some() {
            return false;
        }
        *probe = Some(Probe { at: now + FIRST_PROBE, wait: FIRST_PROBE });
        self.is_open.store(true, Ordering::Release);
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
        true
    }

    /// When the next probe is due; `None` while the breaker is closed.
    pub fn probe_at(&self) -> Option<Instant> {
        self.probe.lock().map(|probe| probe.at)
    }

    /// The probe failed: the next one comes after twice the time.
    pub fn probe_failed(&self, now: Instant) {
        if let Some(probe) = self.probe.lock().as_mut() {
            probe.wait = probe.wait.saturating_mul(2).min(PROBE_MAX);
            probe.at = now + probe.wait;
        }
    }

    /// The probe found the server well: it is asked again.
    pub fn probe_succeeded(&self) {
        let mut probe = self.probe.lock();
        *probe = None;
        self.failures.store(0, Ordering::Relaxed);
        self.is_open.store(false, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// How often it has opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Waits until it is open, or until it is closed.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing.
    pub async fn until(&self, is_open: bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_open.load(Ordering::Acquire) == is_open {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_in_a_row_open_it_and_a_reply_between_them_begins_anew() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert!((0..4).all(|_| !breaker.failed(now)));
        breaker.succeeded();
        assert!((0..4).all(|_| !breaker.failed(now)));
        assert!(breaker.may_ask());
        assert!(breaker.failed(now));
        assert!(!breaker.may_ask());
        assert_eq!((breaker.opened(), breaker.probe_at()), (1, Some(now + FIRST_PROBE)));
    }

    #[test]
    fn one_failed_connect_opens_it() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert!(breaker.connect_failed(now));
        assert!(!breaker.may_ask());
        assert!(!breaker.connect_failed(now), "it opens once");
        assert_eq!(breaker.opened(), 1);
    }

    #[test]
    fn probes_come_after_twice_the_time_each_and_thirty_seconds_at_most() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.connect_failed(now);
        let waits: Vec<u64> = (0..7)
            .map(|_| {
                let wait = breaker.probe_at().map_or(0, |at| (at - now).as_secs());
                breaker.probe_failed(now);
                wait
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn requests_from_before_it_opened_neither_close_it_nor_put_off_its_probe() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        breaker.connect_failed(now);
        breaker.succeeded();
        assert!(!breaker.failed(now + PROBE_MAX) && !breaker.connect_failed(now + PROBE_MAX));
        assert!(!breaker.may_ask());
        assert_eq!(breaker.probe_at(), Some(now + FIRST_PROBE));
    }

    #[test]
    fn a_probe_that_succeeds_closes_it_and_begins_counting_anew() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        (0..5).for_each(|_| _ = breaker.failed(now));
        breaker.probe_succeeded();
        assert!(breaker.may_ask() && breaker.probe_at().is_none());
        assert!((0..4).all(|_| !breaker.failed(now)));
        assert!(breaker.failed(now));
        assert_eq!(breaker.opened(), 2);
    }

    #[tokio::test]
    async fn who_waits_for_a_change_learns_of_it() {
        let breaker = Breaker::default();
        breaker.until(false).await;
        tokio::join!(biased; breaker.until(true), async { _ = breaker.connect_failed(Instant::now()) });
        tokio::join!(biased; breaker.until(false), async { breaker.probe_succeeded() });
    }
}
