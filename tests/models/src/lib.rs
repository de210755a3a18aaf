//! Every order of events that shared numbers and locks allow, tried on the sources of the crates: invalidations, the lease of a member of a
//! fleet, and versions.
//!
//! In: files of other crates, compiled once more with loom's atomics and locks in place of the system's. Out: functions that try
//! every order of what threads do with them, as far as memory allows one, and panic where something does not hold. The tests call
//! them: loom's types work in a model only, so the files' own tests stay where they are.
//! Deliberately absent: everything that waits, and everything with a body.
// With the tests of those files it would be another crate.
#![cfg(not(test))]

mod clock;
pub mod fleet;
pub mod invalidation;
mod sync;
#[path = "../../../crates/larder-remote/src/until.rs"]
mod until;
pub mod versions;

/// Threads of a model are few, and so are their switches: beyond that, loom finds nothing more and takes for ever.
const SWITCHES_MAX: usize = 3;

fn every_order(of: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(SWITCHES_MAX);
    model.check(of);
}
