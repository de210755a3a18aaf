//! What reading bytes allocates in all, counted, so that a length that is believed shows although no memory ran out.
//!
//! In: the work of a target, and how much it may take. Out: its result, or a panic with the figure. Counted is what is
//! allocated, by all threads, whether or not it is given back: a loop that allocates shows as well as one large buffer.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// For each byte of the input: it is copied and written again a few times, and small things have an overhead.
const PER_BYTE: usize = 256;
/// For what does not depend on the input.
const FIXED_BYTES: usize = 64 * 1024;

/// Does `work` on so many bytes of input.
///
/// # Panics
/// It allocates out of all proportion.
pub fn in_proportion<T>(input_bytes: usize, work: impl FnOnce() -> T) -> T {
    at_most(FIXED_BYTES + input_bytes * PER_BYTE, work)
}

/// Does `work`, which may allocate so many bytes in all.
///
/// # Panics
/// It allocates more.
pub fn at_most<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let region = Region::new(COUNTED);
    let done = work();
    let allocated = region.change().bytes_allocated;
    assert!(allocated <= bytes, "{allocated} bytes were allocated, of {bytes} that are plenty");
    done
}
