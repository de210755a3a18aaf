//! What is allocated: by a hit, and for what is stored.
//!
//! One program, since every allocation of its process is counted. Its tests run one after the other ([`alone`]): what one allocates
//! would be counted by the other.
#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]
#![allow(clippy::unwrap_used)]

mod hits;
mod weight;

use std::alloc::System;

use parking_lot::{Mutex, MutexGuard};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A test's turn, for as long as this is held.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_TEST: Mutex<()> = Mutex::new(());
    ONE_TEST.lock()
}
