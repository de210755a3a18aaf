//! A number that one thread writes and others read.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter or gauge. Only its worker's thread writes it, so that an add is a load and a store: two threads would lose
/// counts.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.value().wrapping_add(n), Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, n: u64) {
        self.0.store(self.value().wrapping_sub(n), Ordering::Relaxed);
    }

    /// Its value now.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
