//! The owner's side of records: little of it, since nothing lies here.
//!
//! In: the end of the process, or a new cap. Out: the queue is written, within a bound; the cap holds for later responses.

use std::sync::atomic::Ordering;
use std::time::Duration;

use larder_tier::Run;
use larder_tier::tier::TierCaps;

use crate::{RECORD_MAX_BYTES, Records};

/// How long the end waits for the server.
const CLOSE_MAX: Duration = Duration::from_secs(10);

impl Run for Records {
    /// A store that a reload has opened was not told what was removed before.
    fn hears_from(&self, number: u64) {
        self.removed.forget_up_to(number);
    }

    fn resize(&self, caps: &TierCaps) {
        self.max_object.store(caps.max_object.min(RECORD_MAX_BYTES), Ordering::Relaxed);
    }

    fn close(&self) {
        self.servers.drained(CLOSE_MAX);
    }
}
