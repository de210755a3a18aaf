//! What the thread that reads versions and all others share.
//!
//! In: what the thread has read and heard. Out: what is known, until when that counts, and whether asking is of use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::counters::VersionCounters;
use super::name::VersionName;
use super::table::Table;
use super::version::VersionReading;

/// The longest that a server which cannot be heard any more is believed.
pub const TRACKING: Duration = Duration::from_secs(2);

/// What the thread and all others share.
pub(super) struct SharedVersions {
    pub(super) table: Table,
    /// Until when what is known counts, in nanoseconds of the clock.
    pub(super) until: AtomicU64,
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
            table: Table::new(),
            until: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            counters: VersionCounters::default(),
            failure: Mutex::default(),
        }
    }

    /// Until when what is known counts, where a sign of life was asked for at `asked`.
    pub(super) fn alive(&self, asked: Duration) {
        let until = (asked + TRACKING).as_nanos();
        self.until.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Release);
        self.is_down.store(false, Ordering::Release);
    }

    /// Nothing is known any more.
    pub(super) fn forget(&self) {
        self.until.store(0, Ordering::Release);
        self.table.changed(None);
    }
}

/// The clock in whole seconds, by which uses are noted.
pub(super) fn seconds(now: Duration) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
