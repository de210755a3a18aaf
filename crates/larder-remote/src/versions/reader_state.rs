//! What the thread that reads versions and all others share.
//!
//! In: what the thread has read and heard. Out: what is known, and whether asking is of use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::counters::VersionCounters;
use super::known::Known;
use super::name::VersionName;
use super::version::VersionReading;

/// What the thread and all others share.
pub(super) struct SharedVersions {
    pub(super) known: Known,
    /// The server does not answer, or is late: requests do not wait for it.
    pub(super) is_down: AtomicBool,
    pub(super) counters: VersionCounters,
    /// Why it does not answer.
    pub(super) failure: Mutex<Option<String>>,
}

/// Something for the thread to do.
pub(super) enum VersionAsk {
    /// These are to be read.
    Read { names: Vec<VersionName>, reply: oneshot::Sender<Vec<VersionReading>> },
    /// If it has no version, it is to have the server's time as one.
    Begin(VersionName),
}

impl SharedVersions {
    pub(super) fn new() -> Self {
        Self {
            known: Known::new(),
            is_down: AtomicBool::new(false),
            counters: VersionCounters::default(),
            failure: Mutex::default(),
        }
    }

    /// A sign of life was asked for at `asked`, and has come.
    pub(super) fn alive(&self, asked: Duration) {
        self.known.alive(asked);
        self.is_down.store(false, Ordering::Release);
    }
}
