//! What the process knows of purges: who may, which were made, which are under way, and how many there were.
//!
//! In: orders as senders give them, purges as they are carried out. Out: predicates, receipts, counts. Carrying one out is a matter
//! of [`crate::objects`], which knows what is stored.

pub mod access;
mod audit;
mod counts;
mod dialect;
mod order;
mod refusal;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use audit::{Audit, PurgeEnd, Record, Uncounted, by_fields, first_of, text_of};
pub use audit::{AuditEntry, Sender};
use counts::Counts;
pub(crate) use counts::PurgePart;
pub use dialect::Dialect;
pub(crate) use order::here;
pub use order::{Order, SELECTORS_MAX, Wrong, WrongOrder};
pub(crate) use refusal::PurgeRefusal;

/// Why a purge is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// Something is wrong with what it names; nothing was purged.
    #[error("{}", _0.0.first().map_or_else(String::new, |(_, why)| why.to_string()))]
    Wrong(WrongOrder),
    /// As many are under way as may be; nothing was purged.
    #[error("too many purges are under way")]
    Busy,
    /// It is in force, and may not hold after a crash. It is tried on.
    #[error("purged, but not written down everywhere: {why}")]
    NotHeld {
        /// What was done.
        receipt: Box<AuditEntry>,
        /// Why.
        why: String,
    },
    /// It is in force here, and some other larder of the fleet may use old responses still. It goes on.
    #[error("purged here, but not everywhere: {why}")]
    Incomplete {
        /// What was done.
        receipt: Box<AuditEntry>,
        /// Who is missing, in words.
        why: String,
    },
    /// The task that did it is lost.
    #[error("the purge was lost")]
    Lost,
}

/// The purges of the process.
#[derive(Debug)]
pub(crate) struct Purges {
    pub(crate) audit: Audit,
    pub(crate) counts: Counts,
    last: AtomicU64,
    under_way: Arc<AtomicUsize>,
    under_way_max: AtomicUsize,
}

impl Default for Purges {
    fn default() -> Self {
        Self {
            audit: Audit::default(),
            counts: Counts::default(),
            last: AtomicU64::new(0),
            under_way: Arc::default(),
            under_way_max: AtomicUsize::new(Self::UNDER_WAY_MAX),
        }
    }
}

impl Purges {
    /// Purges under way at once, where the config says nothing else.
    pub(crate) const UNDER_WAY_MAX: usize = 1024;

    pub(crate) fn limit(&self, purges: usize) {
        self.under_way_max.store(purges, Ordering::Relaxed);
    }

    /// A place, where there is one.
    pub(crate) fn place(&self) -> Option<Place> {
        let under_way = Arc::clone(&self.under_way);
        let place = Place(under_way);
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        (before < self.under_way_max.load(Ordering::Relaxed)).then_some(place)
    }

    /// A name for a purge.
    pub(crate) fn id(&self, at_ms: u64) -> Box<str> {
        format!("{at_ms:x}-{}", self.last.fetch_add(1, Ordering::Relaxed) + 1).into()
    }

    /// A response was met and taken out that the purge with this number concerned.
    pub(crate) fn removed(&self, number: u64) {
        self.counts.objects(1);
        if let Some(record) = self.audit.with_number(number) {
            record.removed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One was met that it has made stale.
    pub(crate) fn softened(&self, number: u64) {
        self.counts.objects(1);
        if let Some(record) = self.audit.with_number(number) {
            record.softened.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A plain file by hand was met. It has no fields, so those of these purges that go by fields leave it where it is.
    pub(crate) fn met_by_hand(&self, host: &str, numbers: Uncounted) {
        self.audit.each_within(numbers, |record| {
            if record.by_fields.iter().any(|scope| scope.holds(host)) {
                record.by_hand.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// A place among the purges under way.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When the next walk through the tiers is due.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// In which state of the predicates the last one began.
    pub(crate) walked: u64,
    /// Not before this moment of the monotonic clock.
    pub(crate) next: Duration,
    /// How long it is from the end of the last one to that.
    pub(crate) pause: Duration,
    /// The last number of which what it made stale in tiers is counted.
    pub(crate) counted: u64,
}

/// Sweeps for what purges have left in memory, and walks through the tiers.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    /// When the last sweep of memory began (monotonic), and in which state of the predicates. Held for its length.
    pub(crate) last: Mutex<Option<(Duration, u64)>>,
    /// The last number of which what it made stale is counted.
    pub(crate) counted: AtomicU64,
    /// When the next walk is due.
    pub(crate) schedule: Mutex<Schedule>,
    pub(crate) is_walking: Arc<AtomicBool>,
    /// Heads that were read in tiers.
    pub(crate) heads: AtomicU64,
}
