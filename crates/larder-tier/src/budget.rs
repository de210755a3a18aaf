//! The cap on bytes, as a counter that is raised before memory is used and lowered when the last holder is gone.
//!
//! Owned by a store, shared with everything that holds its bytes. A [`Reservation`] is the right to hold a number of
//! bytes; dropping it gives them back, so no path (cancelled fill, slow reader, eviction) can forget to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cap and what is used of it.
#[derive(Debug)]
pub struct Budget {
    cap: AtomicU64,
    used: AtomicU64,
    high_water: AtomicU64,
}

impl Budget {
    /// A budget of `cap` bytes.
    pub fn new(cap: u64) -> Arc<Self> {
        Arc::new(Self { cap: AtomicU64::new(cap), used: AtomicU64::new(0), high_water: AtomicU64::new(0) })
    }

    /// Bytes that may be held.
    #[inline]
    pub fn cap(&self) -> u64 {
        self.cap.load(Ordering::Relaxed)
    }

    /// Changes the cap. A lower one takes nothing away from those who hold bytes already: the owner evicts.
    pub fn resize(&self, cap: u64) {
        self.cap.store(cap, Ordering::Relaxed);
    }

    /// Bytes held now.
    #[inline]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most that was ever held at once.
    pub fn high_water(&self) -> u64 {
        self.high_water.load(Ordering::Relaxed)
    }

    /// Reserves `bytes`, or nothing at all where they do not fit.
    #[inline]
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.raise(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }

    /// Counts `bytes` that are held already, whether they fit or not.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Reservation {
        let raised = self.used.fetch_add(bytes, Ordering::AcqRel).saturating_add(bytes);
        self.high_water.fetch_max(raised, Ordering::Relaxed);
        Reservation { budget: Arc::clone(self), bytes }
    }

    #[inline]
    fn raise(&self, bytes: u64) -> bool {
        // Nothing is always to be had, also while a lowered cap is still exceeded.
        if bytes == 0 {
            return true;
        }
        let cap = self.cap();
        let raised = self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|wanted| *wanted <= cap)
        });
        match raised {
            Ok(before) => {
                self.high_water.fetch_max(before + bytes, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }
}

/// The right to hold a number of bytes of a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    /// Bytes held.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes over the bytes of another reservation of the same budget.
    pub fn absorb(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.budget, &other.budget), "reservations of one budget only");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// The same bytes in a reservation of their own; this one is left with none.
    pub fn take(&mut self) -> Self {
        Self { budget: Arc::clone(&self.budget), bytes: std::mem::take(&mut self.bytes) }
    }

    /// So many bytes more of the same budget, in a reservation of their own; `None` where that much is not free.
    pub fn beside(&self, bytes: u64) -> Option<Self> {
        self.budget.reserve(bytes)
    }

    /// Keeps `bytes` and gives the rest back. Never grows.
    pub fn shrink_to(&mut self, bytes: u64) {
        if let Some(surplus) = self.bytes.checked_sub(bytes) {
            self.budget.used.fetch_sub(surplus, Ordering::AcqRel);
            self.bytes = bytes;
        }
    }
}

impl Drop for Reservation {
    #[inline]
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_never_exceeded_and_drops_give_back() {
        let budget = Budget::new(100);
        let first = budget.reserve(60).unwrap();
        assert!(budget.reserve(41).is_none());
        let second = budget.reserve(40).unwrap();
        assert_eq!(budget.used(), 100);
        drop(first);
        assert_eq!(budget.used(), 40);
        drop(second);
        assert_eq!((budget.used(), budget.high_water()), (0, 100));
    }

    #[test]
    fn what_is_beside_a_reservation_is_of_the_same_budget() {
        let budget = Budget::new(100);
        let first = budget.reserve(60).unwrap();
        assert!(first.beside(41).is_none());
        let second = first.beside(40).unwrap();
        drop(first);
        assert_eq!((second.bytes(), budget.used()), (40, 40));
    }

    #[test]
    fn an_overflowing_wish_is_refused() {
        let budget = Budget::new(u64::MAX);
        let _one = budget.reserve(10).unwrap();
        assert!(budget.reserve(u64::MAX).is_none());
    }

    #[test]
    fn absorbing_and_shrinking_keep_the_sum_right() {
        let budget = Budget::new(100);
        let mut one = budget.reserve(30).unwrap();
        one.absorb(budget.reserve(20).unwrap());
        assert_eq!((one.bytes(), budget.used()), (50, 50));
        one.shrink_to(10);
        assert_eq!((one.bytes(), budget.used()), (10, 10));
        one.shrink_to(40);
        assert_eq!(one.bytes(), 10);
    }
}
