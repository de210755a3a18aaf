//! The protocol under random histories.
//!
//! Members have clocks of different speed. Calls and replies come late or never. Servers restart with older data, are replaced by others
//! with older data, or lose everything. Members freeze, are cut off, are killed and come back.
//! Each member fetches, uses what it or another one has fetched, and purges. The model knows the true time of everything. A use is wrong
//! where the response was fetched before a purge of its key began and the receipt of that purge was complete before the use.
//! `LARDER_SEED` and `LARDER_SEEDS` choose the histories; of a single one it is said what happened.

#![allow(clippy::disallowed_macros, reason = "a test may panic where it cannot say how it went")]

pub(crate) mod server;
mod world;

use std::time::Instant;

use world::{Seen, World};

/// Histories in an ordinary run.
const HISTORIES: u64 = 10_000;
const STEPS: u64 = 400;

#[test]
fn nobody_uses_what_was_purged_once_the_receipt_is_complete() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (first, count) = (number("LARDER_SEED").unwrap_or(1), number("LARDER_SEEDS").unwrap_or(HISTORIES));
    let (mut all, began) = (Seen::default(), Instant::now());
    for seed in first..first + count {
        let mut world = World::new(seed, count == 1);
        for _ in 0..STEPS {
            world.step();
        }
        world.quiet();
        all.add(&world.seen);
    }
    println!("{count} histories in {:?}, {all:?}", began.elapsed());
    assert!(all.proves(count), "{all:?} proves little");
}
