//! One server, as all workers of the process know it.
//!
//! In: what became of requests and connections. Out: whether it is asked, and the figures about it. A message tells each opening of
//! the breaker and each closing, once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use larder_observe::Diagnostics;
use tokio::time::{Instant, sleep_until, timeout};

use super::dial::open;
use crate::address::{Address, Resolve};
use crate::breaker::Breaker;
use crate::error::Failure;
use crate::metrics::Counters;

/// State of a server that workers share.
pub(super) struct Server {
    address: Address,
    label: String,
    names: Arc<dyn Resolve>,
    breaker: Breaker,
    counters: Counters,
    diagnostics: Diagnostics,
}

/// The kind of the messages here.
const KIND: &str = "memcached";

impl Server {
    pub(super) fn new(address: Address, names: Arc<dyn Resolve>, diagnostics: Diagnostics) -> Self {
        let label = address.to_string();
        let (breaker, counters) = (Breaker::default(), Counters::default());
        Self { address, label, names, breaker, counters, diagnostics }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Its address as metrics show it.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn names(&self) -> &dyn Resolve {
        &*self.names
    }

    pub(super) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn may_ask(&self) -> bool {
        self.breaker.may_ask()
    }

    pub(super) fn answered(&self) {
        self.breaker.succeeded();
    }

    /// A reply came after its caller had gone on. That was counted as a failure then.
    pub(super) fn answered_late(&self) {
        self.counters.late();
    }

    /// So many requests have had no reply in time.
    pub(super) fn timed_out(&self, requests: u32) {
        let now = Instant::now();
        for _ in 0..requests {
            if self.breaker.failed(now) {
                self.told_open(&Failure::TimedOut);
            }
        }
    }

    /// A connection ended with requests outstanding. It counts once, however many there were.
    pub(super) fn broke(&self, failure: Failure) {
        // Nobody's fault but the value's: whoever asks for it again must not take the server from all others.
        let is_failing = failure != Failure::TooLarge;
        self.diagnostics.warn(
            KIND,
            &format!("{} {}", self.label, failure.token()),
            format_args!("memcached {}: a connection was closed: {failure}", self.label),
        );
        if is_failing && self.breaker.failed(Instant::now()) {
            self.told_open(&failure);
        }
    }

    pub(super) fn connect_failed(&self, why: &str) {
        if self.breaker.connect_failed(Instant::now()) {
            self.told_open(&why);
        }
    }

    /// The server says that it cannot do something.
    pub(super) fn refused(&self, text: &str) {
        let subject = format!("{} refused", self.label);
        self.diagnostics.warn(KIND, &subject, format_args!("memcached {} says: {text}", self.label));
    }

    fn told_open(&self, why: &dyn fmt::Display) {
        let subject = format!("{} open", self.label);
        self.diagnostics.warn(
            KIND,
            &subject,
            format_args!(
                "memcached {} is left alone: {why}; its keys are misses until it is well again",
                self.label
            ),
        );
    }

    /// While the breaker is open: connects when a probe is due, and has one reply. Never ends.
    pub(super) async fn probe(&self, limit: Duration) {
        loop {
            self.breaker.until(true).await;
            while let Some(at) = self.breaker.probe_at() {
                sleep_until(at).await;
                match timeout(limit, open(&self.address, &*self.names)).await {
                    Ok(Ok(_)) => {
                        self.breaker.probe_succeeded();
                        let subject = format!("{} closed", self.label);
                        let message = format_args!("memcached {} is well again", self.label);
                        self.diagnostics.info(KIND, &subject, message);
                    }
                    Ok(Err(_)) | Err(_) => self.breaker.probe_failed(Instant::now()),
                }
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.label)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}
