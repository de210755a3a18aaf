//! How questions who fetches for all larders have ended.
//!
//! In: the end of each. Out: how often each, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// How a question who fetches has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// This larder has fetched for all.
    Led,
    /// A record had come just before.
    Found,
    /// It has waited for the record of another one.
    Waited,
    /// Each for itself.
    Apart,
}

impl Ended {
    const ALL: [(Self, &str); 4] =
        [(Self::Led, "led"), (Self::Found, "found"), (Self::Waited, "waited"), (Self::Apart, "apart")];
}

/// How often each.
#[derive(Debug, Default)]
pub(crate) struct Leads([AtomicU64; Ended::ALL.len()]);

impl Leads {
    pub(crate) fn note(&self, ended: Ended) {
        let counter = self.0.get(ended as usize);
        counter.into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&'static str, u64)) {
        for ((_, token), counter) in Ended::ALL.iter().zip(&self.0) {
            visit(token, counter.load(Ordering::Relaxed));
        }
    }
}
