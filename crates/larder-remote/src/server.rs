//! One server, as all workers of the process know it.
//!
//! In: what became of requests and connections. Out: whether it is asked, and the figures about it. A message tells each opening of
//! the breaker and each closing, once.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larder_observe::Diagnostics;
use tokio::time::Instant;

use crate::breaker::Breaker;
use crate::error::Failure;
use crate::label::Label;
use crate::metrics::Counters;

/// How a server is doing, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutlook {
    /// What it is and where, in words.
    pub told: String,
    /// The slot of the key that was asked about, in a cluster.
    pub slot: Option<u16>,
    /// Connections of this process that are open: of its workers, and of what writes.
    pub connections: usize,
    /// The time to the next probe, while the breaker is open: nothing is asked until then.
    pub probe_in: Option<Duration>,
}

/// State of a server that workers share.
pub(crate) struct Server {
    /// What it is, as messages call it: also their kind.
    kind: &'static str,
    label: Label,
    breaker: Breaker,
    counters: Counters,
    /// Connections that are open.
    connections: AtomicUsize,
    diagnostics: Diagnostics,
}

/// A connection that is open, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct OpenConnection<'a>(&'a Server);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub(crate) fn new(kind: &'static str, label: Label, diagnostics: Diagnostics) -> Self {
        let (breaker, counters) = (Breaker::default(), Counters::default());
        Self { kind, label, breaker, counters, connections: AtomicUsize::new(0), diagnostics }
    }

    /// What it is: `memcached` or `redis`.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its address as metrics show it.
    pub(crate) fn label(&self) -> Cow<'_, str> {
        self.label.text()
    }

    /// What it is and where, in words.
    pub(crate) fn told(&self) -> String {
        format!("{} {}", self.kind, self.label())
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A connection is open from now on.
    pub(crate) fn connected(&self) -> OpenConnection<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self)
    }

    /// How it is doing; `slot` is that of the key that it was asked about.
    pub(crate) fn outlook(&self, slot: Option<u16>) -> ServerOutlook {
        let probe_at = self.breaker.probe_at();
        ServerOutlook {
            told: self.told(),
            slot,
            connections: self.connections.load(Ordering::Relaxed),
            probe_in: probe_at.map(|at| at.saturating_duration_since(Instant::now())),
        }
    }

    pub(crate) fn may_ask(&self) -> bool {
        self.breaker.may_ask()
    }

    pub(crate) fn answered(&self) {
        self.breaker.succeeded();
    }

    /// A reply came after its caller had gone on. That was counted as a failure then.
    pub(crate) fn answered_late(&self) {
        self.counters.late();
    }

    /// So many requests have had no reply in time.
    pub(crate) fn timed_out(&self, requests: u32) {
        let now = Instant::now();
        for _ in 0..requests {
            if self.breaker.failed(now) {
                self.told_open(&Failure::TimedOut);
            }
        }
    }

    /// A connection ended with requests outstanding. It counts once, however many there were.
    pub(crate) fn broke(&self, failure: Failure) {
        // The fault is the value's alone, and whoever asks for it again must not take the server from all others. Or there is none:
        // the new server is asked from now on.
        let is_failing = !matches!(failure, Failure::TooLarge | Failure::Moved);
        self.diagnostics.warn(
            self.kind,
            &format!("{} {}", self.label(), failure.token()),
            format_args!("{} {}: a connection was closed: {failure}", self.kind, self.label()),
        );
        if is_failing && self.breaker.failed(Instant::now()) {
            self.told_open(&failure);
        }
    }

    pub(crate) fn connect_failed(&self, why: &str) {
        if self.breaker.connect_failed(Instant::now()) {
            self.told_open(&why);
        }
    }

    /// The server says that it cannot do something.
    pub(crate) fn refused(&self, text: &str) {
        let subject = format!("{} refused", self.label());
        self.diagnostics.warn(
            self.kind,
            &subject,
            format_args!("{} {} says: {text}", self.kind, self.label()),
        );
    }

    fn told_open(&self, why: &dyn fmt::Display) {
        let subject = format!("{} open", self.label());
        self.diagnostics.warn(
            self.kind,
            &subject,
            format_args!(
                "{} {} is left alone: {why}; its keys are misses until it is well again",
                self.kind,
                self.label()
            ),
        );
    }

    /// The probe found it well.
    pub(crate) fn recovered(&self) {
        self.breaker.probe_succeeded();
        let subject = format!("{} closed", self.label());
        self.diagnostics.info(
            self.kind,
            &subject,
            format_args!("{} {} is well again", self.kind, self.label()),
        );
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.label())
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}
