//! What is counted of the versions at one server.
//!
//! In: what reads came to. Out: figures for people and metrics. What is known without asking is counted by workers, and not here.

use std::sync::atomic::{AtomicU64, Ordering};

use super::version::VersionReading;

/// How the versions at a server are doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionsReport {
    /// The address of the server.
    pub server: String,
    /// Why it cannot be asked. `None` where it can.
    pub failure: Option<String>,
    /// Versions that are known.
    pub known: usize,
    /// Versions that requests have read.
    pub read: u64,
    /// Those that had none.
    pub absent: u64,
    /// Those that could not be had.
    pub unknown: u64,
    /// How often one has become a lower number.
    pub went_back: u64,
}

#[derive(Debug, Default)]
pub(super) struct VersionCounters {
    read: AtomicU64,
    absent: AtomicU64,
    unknown: AtomicU64,
    went_back: AtomicU64,
}

impl VersionCounters {
    pub(super) fn count(&self, reading: &VersionReading) {
        let counter = match reading {
            VersionReading::Version(_) => &self.read,
            VersionReading::Absent => &self.absent,
            VersionReading::Unknown => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn went_back(&self) {
        self.went_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn report(&self, server: String, failure: Option<String>, known: usize) -> VersionsReport {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        VersionsReport {
            server,
            failure,
            known,
            read: of(&self.read),
            absent: of(&self.absent),
            unknown: of(&self.unknown),
            went_back: of(&self.went_back),
        }
    }
}
