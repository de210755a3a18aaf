//! What retries may cost: each request earns a part of one, so an origin in trouble is never given twice the work.
//!
//! In: requests and the wish to repeat one. Out: yes or no. Shared by all workers and kept over reloads. Up to
//! [`SAVED_MAX`] retries are saved, and that many there are at the start, so that a site with little traffic can
//! repeat a request too.

use std::sync::atomic::{AtomicU64, Ordering};

/// Retries that can be saved.
const SAVED_MAX: u64 = 10;

/// One retry, in the unit in which they are earned: percents.
const RETRY: u64 = 100;

#[derive(Debug)]
pub(crate) struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicU64::new(SAVED_MAX * RETRY))
    }
}

impl Budget {
    /// A request earns `percent` of a retry.
    pub(crate) fn earn(&self, percent: u8) {
        let add = |saved: u64| Some(saved.saturating_add(u64::from(percent)).min(SAVED_MAX * RETRY));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// One that was taken out and not made.
    pub(crate) fn give_back(&self) {
        let add = |saved: u64| Some(saved.saturating_add(RETRY).min(SAVED_MAX * RETRY));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Takes one retry out, where there is one; none at 0 percent.
    pub(crate) fn spend(&self, percent: u8) -> bool {
        let take = |saved: u64| saved.checked_sub(RETRY);
        percent > 0 && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_part_of_requests_and_few_are_saved() {
        let budget = Budget::default();
        assert_eq!((0..1000).filter(|_| budget.spend(20)).count(), 10);
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn(20);
            retries += u32::from(budget.spend(20));
        }
        assert_eq!(retries, 200);
        (0..1000).for_each(|_| budget.earn(100));
        assert_eq!((0..1000).filter(|_| budget.spend(100)).count(), 10);
        budget.give_back();
        assert!(budget.spend(100) && !budget.spend(100));
        assert!(!Budget::default().spend(0));
    }
}
