//! Whether Redis has just let a look-up wait for its whole time limit.
//!
//! In: look-ups without a reply in time. Out: whether one ended so a moment ago. A request that has waited once does not wait a second time,
//! for the right to fetch: it fetches for itself. The moment is as long as the limit, and then one asks again.
//! Deliberately absent: which server it was. Where the nodes of a cluster are several, those that answer are not asked for the right for that moment either.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// See the head of the file.
pub(crate) struct Late {
    begun: Instant,
    /// For how long a look-up counts.
    moment: Duration,
    /// Milliseconds since `begun` at which the last one stops to count.
    until_ms: AtomicU64,
}

impl Late {
    pub(crate) fn new(moment: Duration) -> Self {
        Self { begun: Instant::now(), moment, until_ms: AtomicU64::new(0) }
    }

    fn since_begun_ms(&self, moment: Instant) -> u64 {
        u64::try_from(moment.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }

    /// A look-up had no reply in time.
    pub(crate) fn note(&self) {
        self.until_ms.store(self.since_begun_ms(Instant::now() + self.moment), Ordering::Relaxed);
    }

    /// Whether one had none a moment ago.
    pub(crate) fn is_now(&self) -> bool {
        self.since_begun_ms(Instant::now()) < self.until_ms.load(Ordering::Relaxed)
    }
}
