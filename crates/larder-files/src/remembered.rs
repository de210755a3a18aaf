//! Whether what was invalidated is written down, for the operator.
//!
//! In: what came of each try to write the journal. Out: a count of failures, whether it is behind, and one event for the log
//! when it falls behind and one when it has caught up.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use larder_tier::rank::RankedMutex;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    failures: AtomicU64,
    is_behind: AtomicBool,
    event: RankedMutex<Option<String>>,
}

impl Remembered {
    /// It was tried, and failed with this. `is_witnessed`: the next start is warned of that.
    pub(super) fn failed(&self, error: &io::Error, is_witnessed: bool) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if !self.is_behind.swap(true, Ordering::AcqRel) {
            let then = match is_witnessed {
                true => "until then a restart uses nothing that larder stored there before",
                false => "a restart before then may bring it back: purge again then",
            };
            *self.event.lock() = Some(format!(
                "what was invalidated cannot be written down: {error}; it is remembered as long as larder runs, and {then}"
            ));
        }
    }

    /// Everything is written down.
    pub(super) fn works(&self) {
        if self.is_behind.swap(false, Ordering::AcqRel) {
            *self.event.lock() = Some("what was invalidated is written down again".to_owned());
        }
    }

    /// Tries that failed so far.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether something is not written down.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// What is worth a line of log, once.
    pub(super) fn take_event(&self) -> Option<String> {
        self.event.lock().take()
    }
}
