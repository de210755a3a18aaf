//! What is known of reads from disks, by which a body is worth its place in memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a memory store knows of promotions.
#[derive(Debug, Default)]
pub(crate) struct Promotions {
    /// Bytes of whole bodies that were begun to be read from disks: the clock by which reads are recent.
    pub(super) read_bytes: AtomicU64,
    pub(super) under_way_bytes: AtomicU64,
    pub(super) done: AtomicU64,
}

impl Promotions {
    /// Bodies that were put into memory.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// What a body knows of its own.
#[derive(Debug, Default)]
pub(crate) struct Worth {
    /// On the store's clock, when it was last read; zero is never.
    pub(super) last_read: AtomicU64,
    pub(super) is_under_way: AtomicBool,
}
